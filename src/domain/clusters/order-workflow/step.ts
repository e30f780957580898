import type { JsonObject } from '../../json.ts';
import { BACKOFF, OWN_BACKOFF, type Backoff } from '../../process/effects.ts';
import type { ClusterCommand } from '../commands.ts';
import type { OpenRun } from './run.ts';

/**
 * The cluster order as a table (fleet-and-networks.md §2.1, §2.2): one row per step, with what it waits for, what it
 * does and how long it may take. A step is added by a row. Steps that our own aggregates will do (agents, l2, l3 …)
 * go between `start-dispatch` and `apply`; until then `StepsAssigned` records whose they are.
 *
 * A step is active while its phase applies, it is needed, everything it comes after is done, and it is not done itself.
 * Undoing is not a list of its own: a deletion has rows too, and what must be undone is read off the state.
 */
export type Step = {
  readonly name: string;
  /** `forward`: not while a refusal halts the order; `live`: until deletion; `deletion`: from then on. */
  readonly phase: 'forward' | 'live' | 'deletion';
  readonly after: readonly string[];
  readonly needed?: (run: OpenRun) => boolean;
  readonly done: (run: OpenRun) => boolean;
  /** What to do while it is active; absent: it is only observed. */
  readonly work?: (run: OpenRun, since: string) => Work | undefined;
  readonly deadline?: {
    readonly ms: number;
    /**
     * Absent: the look that follows a passed deadline says it all. `since`: when the step became active; `at`: when the
     * look found it not done, which is the time of what is told.
     */
    readonly onOverdue?: (
      run: OpenRun,
      times: { readonly since: string; readonly at: string },
    ) => ClusterCommand;
  };
};

export type Work =
  | { readonly kind: 'command'; readonly instance: string; readonly command: ClusterCommand }
  | EffectWork
  /** A timed read, every so often while the step is active. */
  | ({ readonly kind: 'read'; readonly effect: 'read' | 'job'; readonly everyMs: number } & Call);

export type EffectWork = {
  readonly kind: 'effect';
  readonly effect: string;
  readonly instance: string;
  /** Not before this time, whatever becomes of earlier attempts. */
  readonly notBefore?: string;
} & Call;

export type Call = {
  readonly port: 'scheduler' | 'management-cluster' | 'automation';
  readonly operation: string;
  readonly args: JsonObject;
  readonly lane: string;
};

/** Per kind of effect: how it is repeated, after how many attempts people are told, and whether it may be refused. */
export const EFFECT_RULES: {
  readonly [kind: string]: {
    readonly backoff: Backoff;
    readonly attempts: number;
    readonly mayBeRefused: boolean;
  };
} = {
  place: { backoff: OWN_BACKOFF, attempts: 10, mayBeRefused: true },
  resize: { backoff: OWN_BACKOFF, attempts: 10, mayBeRefused: true },
  apply: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  check: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  prepare: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  trigger: { backoff: BACKOFF, attempts: 10, mayBeRefused: true },
  cancel: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  undo: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  status: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  finish: { backoff: BACKOFF, attempts: 30, mayBeRefused: false },
  delete: { backoff: BACKOFF, attempts: 10, mayBeRefused: false },
  release: { backoff: OWN_BACKOFF, attempts: 10, mayBeRefused: false },
};

const MINUTE = 60_000;
/** No phase after this: the hub does not accept (operator-run.md §4.1). */
export const ACCEPT_DEADLINE_MS = 30_000;
/** Anchors of fleet-and-networks.md §2.2, step 12. */
export const CONTROL_PLANE_DEADLINE_MS = 30 * MINUTE;
export const NODES_DEADLINE_MS = 30 * MINUTE;
export const READY_DEADLINE_MS = 60 * MINUTE;
/** An automation that cannot be asked about a job for so long is told of. */
export const JOB_STATUS_DEADLINE_MS = 5 * MINUTE;
/** How often the hub is read besides its watch: changes are expected, or only degradation and loss. */
export const READ_BUSY_MS = 10_000;
export const READ_READY_MS = 60_000;
/** From the deletion until the HostedCluster is gone, and from there until nothing is left (§2.2, step D). */
export const TEARDOWN_DEADLINE_MS = 120 * MINUTE;
export const CLEANUP_DEADLINE_MS = 20 * MINUTE;
/** Each change is a full run of the automation (operator-run.md §4.6): a burst of changes is sent at its end. */
export const QUIET_MS = 2_000;
export const LONGEST_QUIET_MS = 10_000;
