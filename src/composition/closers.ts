import type { Timers } from '../app/ports.ts';

/** What was opened, closed in the opposite order. */
export type Closers = {
  push(close: () => Promise<void> | void): void;
  /** One part that cannot close does not keep the others open; the first such error is thrown at the end. */
  closeAll(): Promise<void>;
};

export const createClosers = (): Closers => {
  const closers: (() => Promise<void> | void)[] = [];
  return {
    push: (close) => {
      closers.push(close);
    },
    closeAll: async () => {
      const errors: unknown[] = [];
      for (const close of closers.splice(0).toReversed()) {
        try {
          await close();
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
};

export class StartStopped extends Error {
  override readonly name = 'StartStopped';
}

/** Rejects when the signal fires. */
export const stopped = (stop: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    const end = (): void => reject(new StartStopped('told to stop during the start'));
    if (stop?.aborted === true) end();
    stop?.addEventListener('abort', end, { once: true });
  });

/** What the work comes to; rejects when that takes longer than `ms` milliseconds. */
export const within = async (ms: number, timers: Timers, work: Promise<void>): Promise<void> => {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(ms, () => reject(new Error(`not within ${ms} ms`)));
  });
  await Promise.race([work, late]).finally(() => cancel());
};
