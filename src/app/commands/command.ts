import type { Decider, DomainEvent, Rejection } from '../../domain/decider.ts';
import type { Appended, ExpectedRevision, Position, ReadForward } from '../log/event-store.ts';
import type { CommandContext } from '../log/metadata.ts';

export type { CommandContext } from '../log/metadata.ts';

/** What the command runner needs to know of an aggregate. */
export type Aggregate<State, Command extends { readonly type: string }, Event extends DomainEvent> = {
  /** Stream category, `[a-z][a-zA-Z0-9]*`; the stream is `<category>-<encoded id>`. */
  readonly category: string;
  readonly decider: Decider<State, Command, Event>;
  /** Bump when `evolve` or the state's shape changes: snapshots of another version are ignored. */
  readonly stateVersion: number;
};

/** A folded stream. */
export type Loaded<State> = {
  readonly state: State;
  readonly revision: ExpectedRevision;
  /** OSAC's `metadata.version`: appends that changed the document, minus one; -1 for an empty stream. */
  readonly version: number;
  /** Type of the last event; absent: there is none. */
  readonly lastType?: string;
  readonly position?: Position;
};

export type CommandOutcome<State> =
  | {
      readonly outcome: 'accepted';
      readonly loaded: Loaded<State>;
      /** The new events; empty when the command changed nothing. */
      readonly events: readonly DomainEvent[];
      /** True when this command id had been carried out before: `loaded` is the state as of then. */
      readonly replayed: boolean;
    }
  | { readonly outcome: 'rejected'; readonly rejection: Rejection; readonly loaded: Loaded<State> };

/** An append of a command that the store may not have answered yet. */
export type SentAppend = {
  /** As the store returned it, for `AppendOptions.after`. */
  readonly first: Promise<Appended>;
  /** The same, once repeated where its outcome was not known. */
  readonly settled: Promise<Appended>;
};

/** An append that the command's own follows. */
export type AppendAhead = SentAppend & {
  /** Asked when nothing was stored because that append found a conflict: what came of it in the end. */
  readonly outcome: () => Promise<Rejection | undefined>;
};

export type ExecuteOptions<State, Event extends DomainEvent> = {
  /**
   * Runs after every decision that appends something, with the state that it was taken from, and before the append,
   * which succeeds only at that state's revision. Whatever it makes sure of (a reserved name) therefore holds for
   * this append. A returned rejection refuses the command; a returned append need not be stored yet, and this one is
   * stored after it or not at all. Must not run a command on the same stream: it would wait for itself.
   */
  readonly beforeAppend?: (
    loaded: Loaded<State>,
    events: readonly Event[],
  ) => Promise<Rejection | AppendAhead | undefined>;
  /** Called with each append as it is given to the store. */
  readonly onSent?: (sent: SentAppend) => void;
  /** True: the stream most likely does not exist, so that reading it first would be wasted. Only a hint. */
  readonly likelyNew?: boolean;
  /** True: a step of a larger command; its rejection is not recorded on its own. */
  readonly step?: boolean;
  /** Milliseconds that the append may wait for others (`AppendOptions`). Default 0. */
  readonly patienceMs?: number;
  /**
   * True: need not wait for the commit of the commands before it on the same stream (see `AppendLines`). For streams that
   * many write at the same time. Default false.
   */
  readonly inLine?: boolean;
};

export type CommandRunner = {
  /**
   * Load, decide, append; on a conflict reload and decide again (at most 5 times).
   * Throws OutcomeUnknown, StoreUnavailable, EventTooLarge, and IdempotencyMismatch when the command id
   * was used before with another request hash.
   */
  execute<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    command: C,
    context: CommandContext,
    options?: ExecuteOptions<S, E>,
  ): Promise<CommandOutcome<S>>;
  /**
   * Folds a stream: cached state, snapshot and tail. `asOfRevision` folds only up to there, uncached; with `read` every event
   * of it, as read there, and nothing that was folded before.
   */
  load<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    options?: { asOfRevision?: number; signal?: AbortSignal; read?: ReadForward },
  ): Promise<Loaded<S>>;
  /**
   * Folds a stream up to where its document last had a version. Undefined: it never had it, an earlier object with the
   * same id had it, or the store no longer has its events.
   */
  loadVersion<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    version: number,
    options?: { signal?: AbortSignal },
  ): Promise<Loaded<S> | undefined>;
  /**
   * The state of a stream without waiting for commands under way on it, so that commands on other streams may ask. With
   * `remembered`, what is in memory is good enough, although another instance may have written since; with `asOf`,
   * when it holds all that the log does up to there.
   */
  peek<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    options?: { remembered?: boolean; asOf?: Position | undefined; signal?: AbortSignal | undefined },
  ): Promise<Loaded<S>>;
  /**
   * Where a stream says that this command was carried out on it, also while no index knows of it yet; waits for one
   * that is being carried out. Undefined: it was not.
   */
  find<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    commandId: string,
    options?: { signal?: AbortSignal },
  ): Promise<{ readonly revision: number; readonly requestHash: string } | undefined>;
};

export class IdempotencyMismatch extends Error {
  override readonly name = 'IdempotencyMismatch';
  readonly commandId: string;
  constructor(commandId: string) {
    super(`the idempotency key was used before with another request (command ${commandId})`);
    this.commandId = commandId;
  }
}
