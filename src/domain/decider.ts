/**
 * The shape of every aggregate: three pure functions (no clock, no random, no I/O).
 *
 * - `evolve` accepts every event ever stored and never throws: history cannot be refused.
 * - `decide` is the only place that says no. A decision that changes nothing returns no events.
 */
export type DomainEvent<Type extends string = string, Data = unknown> = {
  readonly type: Type;
  readonly data: Data;
};

/** What events of a type hold. */
export type DataOf<Event extends DomainEvent, Type extends Event['type']> = Extract<
  Event,
  { readonly type: Type }
>['data'];

export type Decider<State, Command, Event extends DomainEvent> = {
  readonly initialState: () => State;
  readonly evolve: (state: State, event: Event) => State;
  readonly decide: (state: State, command: Command) => Decision<Event>;
};

/** Either the events to append (none: nothing changes), or the reason why not. */
export type Decision<Event> = readonly Event[] | Rejection;

/** What kind of "no" it is; surfaces map it to their own codes (HTTP stays out of the domain). */
export type RejectionKind =
  | 'invalid' // the request itself is wrong
  | 'not-found' // there is no such thing (or not for this caller)
  | 'already-exists' // an id or name is taken
  | 'failed-precondition' // right request, wrong state
  | 'conflict' // the caller's version is stale
  | 'denied'; // not allowed to this caller

export type Rejection = {
  readonly rejected: true;
  readonly kind: RejectionKind;
  /** Stable machine-readable code in CONSTANT_CASE, part of the public contract. */
  readonly code: string;
  /** One sentence for a person: what is wrong and what to do. Never holds a secret. */
  readonly message: string;
  /** Path of the offending field as the caller wrote it, for example `spec.node_sets.workers.size`. */
  readonly field?: string;
  readonly facts?: { readonly [name: string]: string | number | boolean };
};

export const reject = (
  kind: RejectionKind,
  code: string,
  message: string,
  more: Pick<Rejection, 'field' | 'facts'> = {},
): Rejection => ({ rejected: true, kind, code, message, ...more });

/** The request itself is wrong, in this field of it. */
export const invalid = (code: string, field: string, message: string): Rejection =>
  reject('invalid', code, message, { field });

export const isRejection = (decision: Decision<unknown>): decision is Rejection =>
  !Array.isArray(decision) && (decision as Rejection).rejected === true;

/** The same question of any value that a check may refuse with. A map with a key `rejected` is no rejection. */
export const isRefused = (value: object): value is Rejection => (value as Rejection).rejected === true;
