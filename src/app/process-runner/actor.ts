import type { JsonObject } from '../../domain/json.ts';
import type { CommandResult, EffectOutcome } from '../../domain/workflow.ts';
import type { RecordedEvent } from '../event-store.ts';
import type { Slot } from './lanes.ts';
import type { InputRef } from './run-index.ts';

/** What waits in the mailbox of a run. A run takes its items one after the other; many runs work at once. */
export type Item =
  | {
      readonly kind: 'event';
      readonly ref: InputRef;
      /** Absent: read again when its turn comes. */
      readonly body?: RecordedEvent;
      /** Called once the run took it in (or has no use for it): the checkpoint may pass it. */
      readonly settled: () => void;
    }
  /** The newest one alone waits, in its own place: an older one that was not looked at yet is of no use. */
  | { readonly kind: 'observation'; readonly observation: JsonObject }
  | { readonly kind: 'timer'; readonly timerId: string }
  | {
      readonly kind: 'effect-result';
      readonly effectId: string;
      readonly attempt: number;
      readonly outcome: EffectOutcome;
      /** It was a timed read. */
      readonly read: boolean;
    }
  | { readonly kind: 'command-result'; readonly key: string; readonly result: CommandResult }
  | { readonly kind: 'start-effect'; readonly effectId: string; readonly slot: Slot }
  /** The run's stream holds more than was folded: what somebody else wrote, or our own append that is still on its way. */
  | { readonly kind: 'refresh'; readonly revision?: number; readonly settled?: () => void }
  /** See what is outstanding. */
  | { readonly kind: 'look'; readonly settled?: () => void };

/** What is going on with one run in this process. It is forgotten as soon as nothing is. */
export type Actor = {
  readonly key: string;
  readonly mailbox: Item[];
  driving: boolean;
  /** Effects that wait for their lane or are being performed. */
  readonly busy: Map<string, 'waiting' | 'running'>;
  /** Key of the command being carried out. */
  command: string | undefined;
  /** Key of the last command whose result was taken in. */
  answered: string | undefined;
  /** How often in a row the same command was still wanted after its result. */
  repeats: number;
  delayed: boolean;
  /** Wall clock minus monotonic clock when this process last recorded something: what its times were made with. */
  offset: number | undefined;
  /** Timed reads that were just answered: their next one is due after their interval. */
  readonly read: Set<string>;
};

export const newActor = (key: string): Actor => ({
  key,
  mailbox: [],
  driving: false,
  busy: new Map(),
  command: undefined,
  answered: undefined,
  repeats: 0,
  delayed: false,
  offset: undefined,
  read: new Set(),
});

/** Something was started whose end is still to be recorded. */
export const underWay = (actor: Actor): boolean =>
  actor.command !== undefined || actor.busy.values().some((stage) => stage === 'running');

/** Nothing would be lost by forgetting it. */
export const isSpent = (actor: Actor): boolean =>
  actor.busy.size === 0 && actor.command === undefined && !actor.delayed;
