/**
 * One piece of work at a time, which somebody else may break off. Nothing of a piece is kept once it has ended: a promise
 * that lives as long as the connection would keep a reaction for each piece that was ever raced against it.
 */
export type Breakable = {
  /** What the work comes to, or what it is broken off with; the work itself goes on then, and nobody waits for it. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  isRunning(): boolean;
  /** What runs fails with this, and so does all that is asked for later. */
  breakOff(error: Error): void;
};

export const createBreakable = (): Breakable => {
  let running: ((error: Error) => void) | undefined;
  let broken: Error | undefined;
  return {
    run: async <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (running !== undefined) throw new TypeError('another piece of work runs');
      if (broken !== undefined) throw broken;
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      running = reject;
      try {
        work().then(resolve, reject);
        return await promise;
      } finally {
        running = undefined;
      }
    },
    isRunning: () => running !== undefined,
    breakOff: (error) => {
      broken ??= error;
      running?.(broken);
    },
  };
};
