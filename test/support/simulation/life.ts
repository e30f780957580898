import type { Agenda, Owner } from './agenda.ts';
import type { Random } from './random.ts';

/** Moments at which an incarnation may die: around each append, around each call of a hub, at each failpoint. */
export type Moment = 'before append' | 'after append' | 'before effect' | 'after effect' | `at ${string}`;

/**
 * One incarnation of the service as its ports see it. When it has died nothing answers it any more, its timers never
 * fire, and what it had sent may still arrive.
 */
export type Life = {
  readonly name: string;
  /** Answers to it, and its timers. */
  readonly owner: Owner;
  /** What it has sent and what has not arrived yet. */
  readonly network: Owner;
  readonly random: Random;
  readonly agenda: Agenda;
  isAlive(): boolean;
  /** Says that this moment has come. False: it died of it, or is dead already. */
  survives(moment: Moment): boolean;
  /** Aborted when it dies: ends what only looks for it. */
  readonly ended: AbortSignal;
  /** Never resolves; rejects when the simulation is over, so that what waits for an answer can be cleared away. */
  readonly never: Promise<never>;
  note(what: string): void;
};

/** An answer: `run` is called after `ms`, unless the incarnation has died. */
export const answer = ({ agenda, owner }: Life, ms: number, run: () => void): void =>
  void agenda.after(owner, ms, run);

/** Waits for an answer without content; ends at once with the signal's reason. */
export const roundTrip = (life: Life, ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const cancel = life.agenda.after(life.owner, ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    const abort = (): void => {
      cancel();
      reject(signal?.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    if (signal?.aborted === true) return abort();
    signal?.addEventListener('abort', abort, { once: true });
  });

/** Milliseconds on the way: mostly a few, sometimes long. */
export const latency = (random: Random, slow: number): number =>
  random.chance(slow) ? random.int(50, 1_500) : random.int(0, 3);
