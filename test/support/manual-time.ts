import type { Clock, Timers } from '../../src/app/ports.ts';

/** Time that passes only when it is told to; timers fire in order of their time. */
export type ManualTime = {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Lets `ms` milliseconds pass and everything that follows from them happen. */
  pass(ms: number): Promise<void>;
  /** Timers that neither fired nor were cancelled. */
  waiting(): number;
};

export const manualTime = (start = '2026-01-01T00:00:00.000Z'): ManualTime => {
  let now = 0;
  let sequence = 0;
  const waiting = new Map<number, { at: number; run: () => void }>();
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const next = (until: number): { id: number; at: number; run: () => void } | undefined =>
    [...waiting]
      .map(([id, timer]) => ({ id, ...timer }))
      .filter((timer) => timer.at <= until)
      .toSorted((left, right) => left.at - right.at || left.id - right.id)[0];
  return {
    clock: {
      now: () => new Date(Date.parse(start) + now).toISOString(),
      monotonicMs: () => now,
    },
    timers: {
      after: (ms, run) => {
        sequence += 1;
        const id = sequence;
        waiting.set(id, { at: now + ms, run });
        return () => void waiting.delete(id);
      },
    },
    pass: async (ms) => {
      const until = now + ms;
      await settle();
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        waiting.delete(timer.id);
        now = timer.at;
        timer.run();
        await settle();
      }
      now = until;
      await settle();
    },
    waiting: () => waiting.size,
  };
};
