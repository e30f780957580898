import type { DomainEvent } from './decider.ts';
import type { JsonObject } from './json.ts';

/**
 * A process manager in the decider's shape. A run is folded from two streams: its subject's (what is wanted, decided and
 * observed) and its own (what was tried, and what people decided). Nothing of one is copied into the other.
 *
 *   subject's stream ──┐                ┌─► pending(state)        what is still to be done
 *                      ├─► evolve ──► state
 *   own stream ────────┘                └─► decide(state, input)  what to record, and what to tell the subject
 *
 * Because `pending` is a function of durable state, a crash loses nothing: the next incarnation folds both and asks again.
 */
export type Workflow<State, RunEvent extends DomainEvent = DomainEvent> = {
  /** Name of the workflow, also the category of its run streams: `<name>-<id of the subject>`. */
  readonly name: string;
  /** Bump when `evolve` or the state's shape changes: folded states kept by the runner are then dropped. Default 1. */
  readonly stateVersion?: number;
  /** Category of the streams that runs are about: `<subject>-<id>`. */
  readonly subject: string;
  /** Types of the subject's events: all of them are folded. */
  readonly subjectTypes: readonly string[];
  readonly initialState: () => State;
  /**
   * Folds an event of either stream; accepts everything ever stored. An own event comes after those of the subject that it
   * was appended upon; the subject's others come last.
   */
  readonly evolve: (state: State, event: FoldedEvent) => State;
  /** Pure. Nothing when the input changes nothing (a duplicate, a late answer). */
  readonly decide: (state: State, input: WorkflowInput) => Reaction<RunEvent>;
  /** Pure. Everything outstanding in this state, in the order in which it should be started. */
  readonly pending: (state: State) => Pending;
  /**
   * Events that may unblock any open run (a hub was registered, capacity came free): the named timer of every open
   * run that keeps it counts as due. `perStream`: only of runs whose timer is `<timerId>:<id of the event's stream>`, and
   * of so many of them for each event, the oldest first. `perHolder`: only of runs whose timer is `<timerId>:<id of the holder
   * in the event's data>`.
   */
  readonly wakes?: readonly {
    readonly types: readonly string[];
    readonly timerId: string;
    readonly perStream?: number;
    readonly perHolder?: true;
  }[];
  /** The hub that the run works on, for the metadata of what it records and commands; undefined: none (yet). */
  readonly hubOf?: (state: State) => string | undefined;
  /** True when the run will never have anything to do again; its state may be forgotten. */
  readonly isClosed: (state: State) => boolean;
};

/** An event of the subject or of the run itself, as it was stored. */
export type FoldedEvent = {
  readonly of: 'subject' | 'run';
  readonly id: string;
  readonly type: string;
  readonly data: JsonObject;
  readonly revision: number;
  /** Id of the event that led to it. */
  readonly causationId: string;
  readonly tenant: string;
};

/** What an input leads to. */
export type Reaction<RunEvent extends DomainEvent = DomainEvent> = {
  /** Appended to the run's stream, together. */
  readonly events: readonly RunEvent[];
  /** Carried out before anything else of the run is looked at. Losing one does no harm: its input comes again. */
  readonly commands: readonly PendingCommand[];
};

/** A workflow whose type parameters are of no interest to whoever walks over all of them. */
export type AnyWorkflow = Workflow<unknown, DomainEvent>;

export const NO_REACTION: Reaction<never> = { events: [], commands: [] };

export type WorkflowInput =
  /** Events of the subject were folded, or the runner has just started: what follows from the state by itself. */
  | { readonly kind: 'settle'; readonly now: string }
  | {
      readonly kind: 'effect-result';
      readonly effectId: string;
      readonly outcome: EffectOutcome;
      readonly now: string;
    }
  /** What the far side shows, unasked (a watch) or asked (a timed read). */
  | { readonly kind: 'observation'; readonly observation: JsonObject; readonly now: string }
  | { readonly kind: 'timer-due'; readonly timerId: string; readonly now: string }
  | {
      readonly kind: 'command-result';
      readonly commandKey: string;
      readonly result: CommandResult;
      /** The input that the command was the reaction to; absent for a pending command. */
      readonly to?: Exclude<WorkflowInput, { kind: 'command-result' }>;
      readonly now: string;
    };

export type CommandResult =
  /** `changed`: it left events. They were folded before this input. */
  | { readonly accepted: true; readonly changed: boolean }
  | { readonly accepted: false; readonly code: string; readonly message: string };

/** How an effect ended. */
export type EffectOutcome =
  | { readonly outcome: 'done'; readonly result: JsonObject }
  /** Will never succeed as it is: a 422, a foreign object of our name. */
  | { readonly outcome: 'refused'; readonly reason: string; readonly message: string }
  /** Did certainly not happen; may be tried again (not before `retryAfterMs`). */
  | {
      readonly outcome: 'failed';
      readonly reason: string;
      readonly message: string;
      readonly retryAfterMs?: number;
    }
  /** May have happened: must be observed before it is repeated. */
  | { readonly outcome: 'unknown'; readonly reason: string; readonly message: string };

export type Pending = {
  readonly commands: readonly PendingCommand[];
  readonly effects: readonly PendingEffect[];
  readonly timers: readonly PendingTimer[];
};

export type PendingCommand = {
  /**
   * Names one carrying out of one command: the command id is UUIDv5(run, key), so that a repetition under the same key is
   * recognised. A reaction to an observation has none: the runner makes it from what was observed upon which revision.
   */
  readonly key?: string;
  readonly aggregate: string;
  readonly id: string;
  readonly command: { readonly type: string } & JsonObject;
  /**
   * Id of the event that it follows from, for the causation of what it records. Default: the newest folded event of either
   * stream but for starts of effects, since what follows from such a start is the success of that effect.
   */
  readonly cause?: string;
};

export type PendingEffect = {
  /** Unique within the run, the same for every attempt: the far side holds at most one object per effect id. */
  readonly effectId: string;
  /** Which adapter performs it, for example `management-cluster`. */
  readonly port: string;
  readonly operation: string;
  readonly args: JsonObject;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** `observe`: an earlier attempt may have happened, so look before (or instead of) repeating. */
  readonly mode: 'perform' | 'observe';
  /** Lane key: effects of one lane share a circuit breaker; an open one parks them (for example `hub:<id>`). */
  readonly lane: string;
  /** What the run wants to remember of what it sent, recorded with the start of the attempt. */
  readonly facts?: JsonObject;
  /** What goes first when its lane cannot do everything at once. Default: `read` for a timed read, else `work`. */
  readonly priority?: 'deletion' | 'work' | 'read';
  /** ISO time before which it must not start (backoff), if any. */
  readonly notBefore?: string;
  /** What of that stands although its lane works again: not the rest after a failure. */
  readonly firmUntil?: string;
  /**
   * A timed read (`mode` is `observe`): performed as soon as it is pending and again this many milliseconds after
   * each answer, as long as it stays pending. It changes nothing on the far side, so the runner appends no
   * `EffectStarted` for it; each answer goes to `decide` as an `observation`.
   */
  readonly everyMs?: number;
  /**
   * Of a timed read: the operation of its port that compares many at once. It takes `{reads}`, the arguments of each, and
   * answers `{unchanged}`: the indexes of those that show what their last read showed. One that is not among them is read
   * by itself.
   */
  readonly together?: string;
};

export type PendingTimer = { readonly timerId: string; readonly dueAt: string };
