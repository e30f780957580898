import { printable, table } from '../output.ts';
import { detailsOf } from './event-details.ts';

export const AUDIT = '/api/audit/v1';

/** An event as `/api/audit/v1` shows it. */
export type AuditEvent = {
  readonly id: string;
  readonly event: string;
  readonly type: string;
  readonly tenant: string;
  readonly kind?: string;
  readonly resource_id?: string;
  readonly outcome: string;
  readonly occurred_at: string;
  readonly recorded_at: string;
  readonly command?: string;
  readonly actor: {
    readonly subject: string;
    /** Who says so, where that is not whose subject it is. */
    readonly vouched_by?: string;
    readonly personal?: { readonly user_name?: string; readonly erased?: true };
  };
  readonly data: { readonly [name: string]: unknown };
};

export type Page = {
  readonly items: readonly AuditEvent[];
  readonly next_cursor?: string;
  /** Id of the subject that was asked for. */
  readonly subject?: string;
};

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
    const name = actor.personal?.user_name;
    if (name !== undefined) names.set(actor.subject, name);
    if (actor.personal?.erased === true && at > (erasedTo.get(actor.subject) ?? ''))
      erasedTo.set(actor.subject, at);
  }
  const shared = new Set([...names.values()].filter((name, i, all) => all.indexOf(name) !== i));
  return ({ actor: { subject, personal }, recorded_at: at }) => {
    if (personal?.user_name === undefined && at <= (erasedTo.get(subject) ?? ''))
      return `${subject} (erased)`;
    const name = names.get(subject);
    if (name === undefined) return subject;
    return shared.has(name) ? `${name} (${subject.slice(0, SHORT)})` : name;
  };
};
