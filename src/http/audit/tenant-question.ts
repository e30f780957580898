import { ACCESS_ASKED, type Asked } from '../../domain/audit/events.ts';
import { own, sameJson } from '../../domain/json-tools.ts';
import { eventTypes } from '../../domain/registry.ts';
import { encodeId } from '../../domain/stream-name.ts';
import type { AuditServices } from './services.ts';
import { isEventThere, isThere, type Question } from './event-presence.ts';

/** Event types of which tenants may know that there are such. */
export const TENANTS_TYPES: ReadonlySet<string> = new Set(
  eventTypes.filter(({ audience }) => audience === 'tenant').map(({ type }) => type),
);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Looks whose `id` is that of an event. */
const OF_EVENTS: readonly string[] = ['event', 'proof'];

/** The question in the words of `Asked`: of one event, where it is one. */
const wordsOf = ({ what, query }: Pick<Question, 'what' | 'query'>): Asked => {
  const { kind, id, resource_id: resource = id, type, ...others } = query;
  const words: { [name: string]: unknown } = { ...others, types: type };
  if (typeof kind === 'string' && kind !== '') Object.assign(words, { kind, resource_id: resource });
  else if (OF_EVENTS.includes(what)) Object.assign(words, { event: id });
  return Object.fromEntries(
    ACCESS_ASKED.flatMap((name) => {
      const value = own(words, name);
      // Sizes of the tree, which `from` and `to` are of proofs, are of nobody's history.
      const says = name === 'types' ? Array.isArray(value) : typeof value === 'string' && value !== '';
      return says ? [[name, value]] : [];
    }),
  ) as Asked;
};

const withoutOthers = ({ types, ...asked }: Asked): Asked => {
  const known = (types ?? []).filter((type) => TENANTS_TYPES.has(type));
  return { ...asked, ...(known.length === 0 ? {} : { types: known }) };
};

/**
 * What a look asked for, as far as the tenant in whose history it stands may know it: whose reach is wider than that tenant
 * may have asked for things of others. No text that somebody has only typed is in it: it may be anything, and tenants and
 * their streams show it in clear. That it was asked for before is nothing that has happened to it.
 */
export const askedAtHome = (
  { tenants, ...question }: Question,
  home: string,
  services: Pick<AuditServices, 'reader'>,
): Asked => {
  const { subject, kind, resource_id: id, event, ...times } = withoutOthers(wordsOf(question));
  if (home === '' || tenants === 'all' || !sameJson([...tenants], [home])) return times;
  return {
    ...times,
    ...(subject === undefined ? {} : { subject }),
    ...(kind === undefined ? {} : { kind }),
    ...(id !== undefined && isThere(`${kind ?? ''}-${encodeId(id)}`, 0, { tenants }, services)
      ? { resource_id: id }
      : {}),
    ...(event !== undefined && (isEventThere(event, { tenants }, services) ?? UUID.test(event))
      ? { event }
      : {}),
  };
};

/**
 * The same for a tenant of whose history the look of somebody else has shown something: the subject and the event are those
 * of what was shown; of which object, the notice says itself.
 */
export const askedOfOthers = (question: Pick<Question, 'what' | 'query'>): Asked => {
  const { kind: _kind, resource_id: _id, ...asked } = withoutOthers(wordsOf(question));
  return asked;
};
