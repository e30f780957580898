/** Runs tasks of one key one after another, tasks of different keys side by side. */
export type StreamQueue = {
  run<T>(key: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when no task is running or waiting. */
  idle(): Promise<void>;
};

export const createStreamQueue = (): StreamQueue => {
  const tails = new Map<string, Promise<void>>();
  return {
    run: (key, task) => {
      const previous = tails.get(key);
      const result = previous === undefined ? task() : previous.then(task);
      const settled = result.then(ignore, ignore);
      tails.set(key, settled);
      void settled.then(() => {
        if (tails.get(key) === settled) tails.delete(key);
      });
      return result;
    },
    idle: async () => {
      while (tails.size > 0) await Promise.all(tails.values());
    },
  };
};

const ignore = (): void => undefined;
