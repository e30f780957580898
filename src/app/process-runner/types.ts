import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { AnyWorkflow, EffectOutcome, PendingCommand, PendingEffect } from '../../domain/workflow.ts';
import type { Aggregate, CommandContext, CommandOutcome, CommandRunner } from '../commands/command.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { EventStore, Position } from '../log/event-store.ts';
import type { Ownership } from '../deployment/ownership.ts';
import type { EventMetadata } from '../log/metadata.ts';
import type { Runtime } from '../ports.ts';
import type { FailingOrder } from './lane-failures.ts';
import type { Pacing } from '../fairness/token-bucket.ts';

export type { AnyWorkflow };

/** What an effect port learns about the call besides operation and arguments. */
export type EffectCall = {
  /** Unique within the service: `<run stream>/<effect id of the workflow>`; label and journal entry on the far side. */
  readonly effectId: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** When the first attempt was started (ISO): what any of them did is not older. Absent when that is not known. */
  readonly firstStartedAt?: string;
  /** `observe`: an earlier attempt may have happened, so look before (or instead of) repeating. */
  readonly mode: 'perform' | 'observe';
  /** Milliseconds this attempt may take; past it the outcome counts as unknown. */
  readonly deadlineMs: number;
  /** Aborted at the deadline and when the process stops. */
  readonly signal: AbortSignal;
  readonly workflow: string;
  readonly runId: string;
  readonly tenant: string;
  readonly project: string;
  readonly correlationId: string;
  /** Id of the run event that started this attempt. */
  readonly causationId: string;
  /** For which request. */
  readonly asked?: Asked;
};

/** Who made a request, with its ticket and its trace; what is not known is left out. */
export type Asked = Pick<EventMetadata, 'ticket' | 'traceparent'> & { readonly onBehalfOf?: string };

/** Performs one kind of effect. Expected failures are values; a throw counts as an unknown outcome and is logged. */
export type EffectPort = (operation: string, args: JsonObject, call: EffectCall) => Promise<EffectOutcome>;

/** What the runner needs of the schema registry. */
export type RunCodec = Pick<EventCodec, 'encodeAll' | 'decode'>;

/** Any aggregate by the name that workflows use in `PendingCommand.aggregate`. */
export type Aggregates = { readonly [name: string]: Aggregate<unknown, { type: string }, DomainEvent> };

/** Carries out a command on something that is more than its aggregate, for example a resource that owns names. */
export type CommandTarget = (
  id: string,
  command: PendingCommand['command'],
  context: CommandContext,
) => Promise<CommandOutcome<unknown>>;

export const DEFAULT_SETTINGS = {
  /** Effects of one lane that may be in flight at once. */
  laneConcurrency: 16,
  /** Consecutive failures that open a lane's circuit breaker. */
  breakerFailures: 5,
  /** Milliseconds until an open breaker lets one effect through to try. */
  breakerHalfOpenMs: 60_000,
  /** Milliseconds an attempt of an effect may take before its outcome counts as unknown. */
  effectDeadlineMs: 30_000,
  /** Runs that may decide and append at once. */
  concurrency: 64,
  /** Inputs that may wait in memory before the subscription is held back. */
  maxQueuedInputs: 5_000,
  /** Milliseconds that a stop waits for effects in flight; their outcome is observed by the next start. */
  stopGraceMs: 10_000,
  /** Milliseconds between two comparisons of wall clock and monotonic clock. */
  clockCheckMs: 5_000,
  /** Milliseconds by which the clocks may differ before it is recorded. */
  clockToleranceMs: 5_000,
  /** Runs whose folded state is kept in memory; the others are read from the index. */
  cachedRuns: 2_000,
};
export type ProcessRunnerSettings = Readonly<typeof DEFAULT_SETTINGS>;

/** Called as things happen; for metrics. None may throw. */
export type ProcessHooks = {
  readonly effectFinished?: (effect: {
    readonly workflow: string;
    readonly port: string;
    readonly operation: string;
    readonly lane: string;
    readonly outcome: EffectOutcome['outcome'];
    readonly reason?: string;
    readonly seconds: number;
  }) => void;
  readonly commandFinished?: (command: {
    readonly workflow: string;
    readonly aggregate: string;
    readonly command: string;
    readonly outcome: 'accepted' | 'rejected' | 'failed';
  }) => void;
  readonly laneChanged?: (lane: LaneStatus) => void;
  readonly timersFired?: (count: number) => void;
  readonly runParked?: (run: string, error: string) => void;
  readonly clockDiverged?: (deltaMs: number) => void;
};

/** Named points at which a test or the simulation may stop the process. */
export type Failpoint = (name: FailpointName) => void | Promise<void>;
export const FAILPOINTS = [
  'before-run-append',
  'after-run-append',
  'before-command',
  'after-command-before-record',
  'before-effect-started',
  'after-effect-started',
  'after-effect-before-record',
  'before-timer',
] as const;
export type FailpointName = (typeof FAILPOINTS)[number];

export type ProcessRunnerOptions = {
  readonly store: EventStore;
  readonly codec: RunCodec;
  readonly commandRunner: CommandRunner;
  readonly aggregates: Aggregates;
  /** Where a command on this aggregate goes instead of to the command runner. */
  readonly commandTargets?: { readonly [aggregate: string]: CommandTarget };
  readonly workflows: readonly AnyWorkflow[];
  /** Types of the events in run streams; the subscription's filter, with those of the workflows' subjects. */
  readonly runEventTypes: readonly string[];
  readonly effectPorts: { readonly [port: string]: EffectPort };
  /** Ports whose attempts may take longer than `effectDeadlineMs`: milliseconds by port. */
  readonly effectDeadlinesMs?: { readonly [port: string]: number };
  /** Name of this process incarnation, unique among all runners of the store. */
  readonly instance: string;
  readonly ownership: Ownership;
  /** The disposable index; `:memory:` rebuilds it from the log at every start. */
  readonly dataFile: string;
  /** How fast a lane may go, asked before each effect; undefined: as fast as it has slots. Default: no lane is paced. */
  readonly lanePacing?: (lane: string) => Pacing | undefined;
  /** Effects that must not be tried now, without an event: they are looked at again after a while. Default: none. */
  readonly isHeldBack?: (effect: PendingEffect) => boolean;
  /** Runs beside the workflows while this instance owns them and has caught up, for example the hub observer. */
  readonly whileLive?: (signal: AbortSignal) => Promise<void>;
  /** Lanes that people hold back, read when this instance begins to own the processes. Default: none. */
  readonly pausedLanes?: () => Promise<ReadonlyMap<string, LanePause>>;
  readonly hooks?: ProcessHooks;
  readonly failpoint?: Failpoint;
  readonly settings?: Partial<ProcessRunnerSettings>;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

/** The same for the parts of a runner, with nothing left to default. */
export type PartOptions = Omit<ProcessRunnerOptions, 'hooks' | 'failpoint' | 'settings'> & {
  readonly hooks: ProcessHooks;
  readonly failpoint: Failpoint;
  readonly settings: ProcessRunnerSettings;
};

/** Who holds a lane back, since when (ISO) and why. */
export type LanePause = { readonly by: string; readonly at: string; readonly reason: string };

export type LaneStatus = {
  readonly lane: string;
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** True when an operator paused it. */
  readonly paused: boolean;
  readonly pause?: LanePause;
  readonly inFlight: number;
  /** Effects that wait for a slot; with an open breaker or a pause they are parked. */
  readonly waiting: number;
  /** Failures in a row that count against the lane. */
  readonly consecutiveFailures: number;
  /** Orders whose last attempt failed: those that failed last, and how many there are. */
  readonly failing: readonly FailingOrder[];
  readonly failingOrders: number;
  /** While the breaker is not closed: the failure that opened it. */
  readonly openedBy?: { readonly order: string; readonly reason: string; readonly message: string };
  /** Reason of the last failure, if it has not recovered since. */
  readonly lastReason?: string;
};

export type ProcessRunnerStatus = {
  /** `standby`: another instance owns the processes. `failed`: it broke down and starts again after a while. */
  readonly state: 'stopped' | 'standby' | 'catching-up' | 'live' | 'failed';
  readonly error?: string;
  readonly epoch: number | undefined;
  /** Everything up to here was taken in by its run. */
  readonly position: Position | undefined;
  /** Seconds since the recorded time of the last event taken in, when behind; 0 when caught up. */
  readonly lagSeconds: number;
  readonly openRuns: number;
  readonly closedRuns: number;
  readonly queuedInputs: number;
  readonly effectsInFlight: number;
  readonly timersDue: number;
  /** How late the oldest due timer is, in seconds; 0 when none is due. */
  readonly timerLatenessSeconds: number;
  readonly lanes: readonly LaneStatus[];
  /** Runs that a bug or an unreadable event stopped; the rest goes on. */
  readonly parkedRuns: readonly { readonly run: string; readonly error: string }[];
  /** Times that wall clock and monotonic clock were seen to part by more than the tolerance. */
  readonly clockDivergences: number;
};

export type ProcessRunner = {
  /** Resolves when the runner has stopped for good: its signal was aborted and the work in flight has ended. */
  start(signal: AbortSignal): Promise<void>;
  status(): ProcessRunnerStatus;
  /** Feeds what the far side shows. False: ignored, since no such run is known or this instance is not the owner. */
  observe(workflow: string, runId: string, observation: JsonObject): boolean;
  /**
   * Somebody says that something changed on the far side: its timed reads are made at once. False: no such run is open, or
   * this instance is not the owner.
   */
  lookNow(workflow: string, runId: string): boolean;
  /** True when the run is known to be closed; false also while this instance is not the owner. */
  isClosed(workflow: string, runId: string): boolean;
  /** True when no such run was ever; false also while this instance is not the owner. */
  isUnknown(workflow: string, runId: string): boolean;
  /** Operator: parks a lane, or lets it go on at once (also closes its breaker). */
  pauseLane(lane: string, pause?: LanePause): void;
  resumeLane(lane: string): void;
  /**
   * True when a lane is paused, or its breaker open and nothing new should come: nothing should be placed there.
   * `order`: the
   * one that asks; where it fails itself, it should not come either.
   */
  laneBlocked(lane: string, order?: string): boolean;
  /** The far side seems to work again: a lane with an open breaker tries one effect at once instead of later. */
  probeLane(lane: string): void;
  /** Effects of a lane in the last hour, and how many failed; undefined when there were none. */
  laneCalls(lane: string): { readonly attempts: number; readonly failures: number } | undefined;
  /** Operator: looks at a parked run again. False when there is no such run. */
  retryRun(workflow: string, runId: string): Promise<boolean>;
  /** Why a run is parked; undefined when it is not, or while this instance is not the owner. */
  parkedFor(workflow: string, runId: string): string | undefined;
};
