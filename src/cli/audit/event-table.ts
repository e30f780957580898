import type { AuditEvent } from '../../http/audit/answers.ts';
import { printable, table } from '../output.ts';
import { detailsOf } from './event-details.ts';

export const AUDIT = '/api/audit/v1';

/** `wide`: with the ids of those who did it. */
export const eventTable = (events: readonly AuditEvent[], { wide }: { readonly wide: boolean }): string => {
  const whoOf = namesIn(events);
  return table(
    [
      'recorded',
      'tenant',
      'who',
      ...(wide ? ['subject'] : []),
      'type',
      'about',
      'outcome',
      'event',
      'details',
    ],
    events.map((event) => [
      event.recorded_at,
      event.tenant,
      printable(`${whoOf(event)}${sayingSo(event)}`),
      ...(wide ? [printable(event.actor.subject)] : []),
      event.type,
      event.kind === undefined ? '' : printable(`${event.kind}/${event.resource_id ?? ''}`),
      event.outcome,
      printable(event.event),
      printable(detailsOf(event)),
    ]),
  );
};

/** Somebody of another issuer, of whom nobody but this one has said so, is not that one's subject of the same name. */
const sayingSo = ({ actor: { vouched_by: by } }: AuditEvent): string =>
  by === undefined ? '' : ` by the word of ${by}`;

/** Begins with so much of the subject's id where two people of a table have the same name. */
const SHORT = 8;

/**
 * One spelling for one person in a whole table: the user name where any event of it tells that, else the subject's id. Not every
 * event tells the name: those of the provider's people do not tell tenants. What was recorded before an erasure has no name any
 * more, though the person may have come back and later events tell one.
 */
const namesIn = (events: readonly AuditEvent[]): ((event: AuditEvent) => string) => {
  const names = new Map<string, string>();
  const erasedTo = new Map<string, string>();
  for (const { actor, recorded_at: at } of events) {
    const { personal = {} } = actor;
    if ('erased' in personal) {
      if (at > (erasedTo.get(actor.subject) ?? '')) erasedTo.set(actor.subject, at);
    } else if (personal.user_name !== undefined) names.set(actor.subject, personal.user_name);
  }
  const shared = new Set([...names.values()].filter((name, i, all) => all.indexOf(name) !== i));
  return ({ actor: { subject, personal = {} }, recorded_at: at }) => {
    const isNamed = 'user_name' in personal && personal.user_name !== undefined;
    if (!isNamed && at <= (erasedTo.get(subject) ?? '')) return `${subject} (erased)`;
    const name = names.get(subject);
    if (name === undefined) return subject;
    return shared.has(name) ? `${name} (${subject.slice(0, SHORT)})` : name;
  };
};
