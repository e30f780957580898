import type { DomainEvent } from './decider.ts';
import type { JsonObject } from './json.ts';

/**
 * A process manager in the decider's shape (design §6). Its memory is its own stream of run events.
 *
 *   input ──► decide(state, input) ──► run events (appended at the expected revision) ──► evolve
 *                                                                    │
 *                                           pending(state) ◄─────────┘  what is still to be done
 *
 * `decide` records facts; `pending` derives from the recorded state what is outstanding: commands to issue,
 * effects to perform, timers to keep. Because `pending` is a function of durable state, a crash loses nothing:
 * the next incarnation folds the stream and asks again.
 */
export type Workflow<State, RunEvent extends DomainEvent = DomainEvent> = {
  /** Name of the workflow, also the category of its run streams: `<name>-<run id>`. */
  readonly name: string;
  /** Bump when `evolve` or the state's shape changes: folded states kept by the runner are then dropped. Default 1. */
  readonly stateVersion?: number;
  /** Types of domain events that are inputs, and the run that each belongs to (undefined: not ours). */
  readonly inputTypes: readonly string[];
  readonly runIdOf: (event: InputEvent) => string | undefined;
  readonly initialState: () => State;
  readonly evolve: (state: State, event: RunEvent) => State;
  /** Pure. Returns the facts to record; none when the input changes nothing (a duplicate, a late answer). */
  readonly decide: (state: State, input: WorkflowInput) => readonly RunEvent[];
  /** Pure. Everything outstanding in this state, in the order in which it should be started. */
  readonly pending: (state: State) => Pending;
  /**
   * Events that may unblock any open run (a hub was registered, capacity came free): the named timer of every open
   * run that keeps it counts as due.
   */
  readonly wakes?: { readonly types: readonly string[]; readonly timerId: string };
  /** The hub that the run works on, for the metadata of what it records and commands; undefined: none (yet). */
  readonly hubOf?: (state: State) => string | undefined;
  /** True when the run will never have anything to do again; its state may be forgotten. */
  readonly isClosed: (state: State) => boolean;
};

/** A domain event as a workflow sees it. */
export type InputEvent = {
  readonly type: string;
  readonly data: JsonObject;
  readonly stream: string;
  readonly revision: number;
  readonly position: string;
  readonly tenant: string;
};

export type WorkflowInput =
  | { readonly kind: 'event'; readonly event: InputEvent; readonly now: string }
  | {
      readonly kind: 'effect-result';
      readonly effectId: string;
      readonly outcome: EffectOutcome;
      readonly now: string;
    }
  /** What the far side shows, unasked (a watch) or asked (a timed read, an observation after an unknown outcome). */
  | { readonly kind: 'observation'; readonly observation: JsonObject; readonly now: string }
  | { readonly kind: 'timer-due'; readonly timerId: string; readonly now: string }
  | {
      readonly kind: 'command-result';
      readonly commandKey: string;
      readonly result: CommandResult;
      readonly now: string;
    };

export type CommandResult =
  | {
      readonly accepted: true;
      readonly events: readonly { readonly type: string; readonly data: JsonObject }[];
    }
  | { readonly accepted: false; readonly code: string; readonly message: string };

/** How an effect ended, in the words of management-cluster.md §10.4. */
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
  /** Unique within the run and the same for every attempt: the command id is UUIDv5(run, key). */
  readonly key: string;
  readonly aggregate: string;
  readonly id: string;
  readonly command: { readonly type: string } & JsonObject;
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
  /** What goes first when its lane cannot do everything at once. Default: `read` for a timed read, else `work`. */
  readonly priority?: 'deletion' | 'work' | 'read';
  /** ISO time before which it must not start (backoff), if any. */
  readonly notBefore?: string;
  /** What of that stands although its lane works again: not the rest after a failure. */
  readonly firmUntil?: string;
  /**
   * A timed read (`mode` is `observe`): performed as soon as it is pending and again this many milliseconds after
   * each answer, as long as it stays pending. It changes nothing on the far side, so the runner appends no
   * `EffectStarted` for it; each answer goes to `decide` as an `observation` (which records only what changed).
   */
  readonly everyMs?: number;
};

export type PendingTimer = { readonly timerId: string; readonly dueAt: string };
