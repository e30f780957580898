import type { JsonObject } from '../../domain/json.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import type { RecordedEvent } from '../log/event-store.ts';
import type { Slot } from './lanes.ts';
import type { Revisions } from './run-index.ts';

/** What waits in the mailbox of a run. A run takes its items one after the other; many runs work at once. */
export type Item =
  /** `settled`: called once it is folded, or of no use to the run: the checkpoint may pass it. */
  | { readonly kind: 'subject'; readonly event: RecordedEvent; readonly settled: () => void }
  /** The newest one alone waits, in its own place: an older one that was not looked at yet is of no use. */
  | { readonly kind: 'observation'; readonly observation: JsonObject }
  | { readonly kind: 'timer'; readonly timerId: string }
  | {
      readonly kind: 'effect-result';
      readonly effectId: string;
      readonly attempt: number;
      readonly outcome: EffectOutcome;
      /** It was a timed read, begun upon these revisions; absent: it was not. */
      readonly read?: Revisions;
    }
  | { readonly kind: 'start-effect'; readonly effectId: string; readonly slot: Slot }
  /**
   * The run's stream holds more than was folded: what somebody else wrote, or our own append that is on its way.
   * No `revision`: what was folded is out of order, or stopped by a bug.
   */
  | { readonly kind: 'refold'; readonly revision?: number; readonly settled: () => void }
  /**
   * See what is outstanding. `start`: also what follows from the state by itself; `read`: this timed read is due; `now`: all
   * of them are.
   */
  | { readonly kind: 'look'; readonly start?: true; readonly read?: string; readonly now?: true };

/** What is going on with one run in this process. It is forgotten as soon as nothing is. */
export type Actor = {
  readonly key: string;
  readonly mailbox: Item[];
  driving: boolean;
  /** Effects that wait for their lane or are being performed. */
  readonly busy: Map<string, 'waiting' | 'running'>;
  /** Key of the last command that was carried out because it was outstanding. */
  answered: string | undefined;
  /** How often in a row the same command was still wanted after its result. */
  repeats: number;
  delayed: boolean;
  /** Wall clock minus monotonic clock when this process last recorded something: what its times were made with. */
  offset: number | undefined;
  /** Timed reads that were just answered (their next one is due after their interval), or are due by themselves. */
  readonly read: Map<string, 'idle' | 'news' | 'due'>;
};

export const newActor = (key: string): Actor => ({
  key,
  mailbox: [],
  driving: false,
  busy: new Map(),
  answered: undefined,
  repeats: 0,
  delayed: false,
  offset: undefined,
  read: new Map(),
});

/** Something was started whose end is still to be recorded. */
export const underWay = (actor: Actor): boolean => actor.busy.values().some((stage) => stage === 'running');

/** Nothing would be lost by forgetting it. */
export const isSpent = (actor: Actor): boolean => actor.busy.size === 0 && !actor.delayed;
