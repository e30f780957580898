import type { z } from 'zod';
import { differences } from '../../app/audit/document-diff.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import { revealing } from '../../domain/personal.ts';
import { ApiError, invalid } from '../errors.ts';
import type { LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { BEFORE_EVERYTHING } from '../past-moments.ts';
import { documentAsOf } from '../osac/as-of.ts';
import { readRfc3339 } from '../times.ts';
import type { AuditDiff } from './answers.ts';
import { lookAt, reaches, type Look, type Reach, type Seen } from './access.ts';
import { kindNamed } from './events.ts';
import { noSuchKind } from './names.ts';
import { AS_OF_QUERY, DIFF_QUERY } from './operations.ts';
import { assertSomeReach, reachText } from './reach.ts';
import type { AuditServices } from './services.ts';

/** What objects were like: at any time or position, and what differs between two. */
export const auditResourceRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  lookAt(services, 'resources/{kind}/{id}', show, AS_OF_QUERY),
  lookAt(services, 'resources/{kind}/{id}/diff', diff, DIFF_QUERY),
];

/** A moment as the query says it; none: now. Throws ApiError 400. */
const momentOf = async (
  text: string | undefined,
  name: string,
  { past, store }: AuditServices,
): Promise<string> =>
  text === undefined ? ((await store.lastPosition()) ?? BEFORE_EVERYTHING) : past.moments.resolve(text, name);

/** As it is recorded. */
const asked = (query: { readonly [name: string]: string | undefined }): JsonObject =>
  Object.fromEntries(
    Object.entries(query).flatMap(([name, text]) => (text === undefined ? [] : [[name, text.slice(0, 100)]])),
  );

/** Kinds are no secret: one that does not exist is told from an object that is not there. */
type Named = { readonly kind: AnyKind; readonly id: string };

/** Throws ApiError 403 or 404. */
const namedIn = ({ path, principal }: LedgerCall, reach: Reach): Named => {
  assertSomeReach(reach, principal);
  const kind = kindNamed(path['kind'] ?? '');
  if (kind === undefined) throw new ApiError('NOT_FOUND', noSuchKind(path['kind'] ?? ''));
  return { kind, id: path['id'] ?? '' };
};

/** What the caller may see of it; undefined: nothing, whatever the reason. */
const documentAt = async (
  { kind, id }: Named,
  reach: Reach,
  position: string,
  { past, words }: AuditServices,
  shows: Seen['shows'],
  { signal }: LedgerCall,
): Promise<JsonObject | undefined> => {
  const surface = reach.audience === 'provider' ? 'private' : 'public';
  if (kind.methods[surface].length === 0) return undefined;
  const shown = await documentAsOf(revealing(kind, { open: words.open }), id, {
    surface,
    position,
    past,
    visible: (tenant) => reaches(reach, tenant),
    signal,
  });
  if (shown === undefined) return undefined;
  // What only the provider may see of a tenant, the tenant is not told of either.
  if (kind.methods.public.length > 0) shows(shown.tenant, { kind: kind.kind, id });
  return JSON.parse(shown.text) as JsonObject;
};

/** One answer for what is not there, not there yet or any more, and not theirs. `when`: of which moments that is said. */
const notSeen = ({ kind, id }: Named, reach: Reach, when: 'now' | 'at that moment' | 'at either moment') => {
  const what = `${kind.words} '${id.slice(0, 200)}'`;
  const at = when === 'now' ? '' : ` ${when}`;
  return new ApiError(
    'NOT_FOUND',
    `${what} not found${at} ${reachText(reach)}: check its id, and when it was made and deleted`,
  );
};

const placed = (position: string, { positions }: AuditServices): { readonly position?: string } =>
  position === BEFORE_EVERYTHING ? {} : { position: positions.format(position) };

const show = async (
  call: LedgerCall,
  reach: Reach,
  services: AuditServices,
  query: z.infer<typeof AS_OF_QUERY>,
): Promise<Look> => {
  const named = namedIn(call, reach);
  const { id } = named;
  const { kind } = named.kind;
  const position = await momentOf(query.as_of, 'as_of', services);
  return {
    what: 'resource',
    query: { kind, id, ...asked(query) },
    answer: async ({ shows }) => {
      const document = await documentAt(named, reach, position, services, shows, call);
      if (document === undefined)
        throw notSeen(named, reach, query.as_of === undefined ? 'now' : 'at that moment');
      return { json: { kind, id, as_of: placed(position, services), document } };
    },
  };
};

/** Between two times nothing may lie that was stored: their moments are the same then, whichever comes first. */
const areReversed = (query: z.infer<typeof DIFF_QUERY>): boolean => {
  const [from, to] = [query.from, query.to ?? ''].map(readRfc3339);
  return from !== undefined && to !== undefined && from > to;
};

const diff = async (
  call: LedgerCall,
  reach: Reach,
  services: AuditServices,
  query: z.infer<typeof DIFF_QUERY>,
): Promise<Look> => {
  const named = namedIn(call, reach);
  const { id } = named;
  const { kind } = named.kind;
  const from = await momentOf(query.from, 'from', services);
  const to = await momentOf(query.to, 'to', services);
  if (from > to || areReversed(query))
    throw invalid("query parameter 'from' must not be later than 'to'", 'from');
  return {
    what: 'diff',
    query: { kind, id, ...asked(query) },
    answer: async ({ shows }) => {
      const before = await documentAt(named, reach, from, services, shows, call);
      const after = await documentAt(named, reach, to, services, shows, call);
      if (before === undefined && after === undefined) throw notSeen(named, reach, 'at either moment');
      const json: AuditDiff = {
        kind,
        id,
        from: { ...placed(from, services), exists: before !== undefined },
        to: { ...placed(to, services), exists: after !== undefined },
        changes: differences(before ?? {}, after ?? {}),
      };
      return { json };
    },
  };
};
