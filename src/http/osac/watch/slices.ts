/** Milliseconds that one turn of the event loop may be used; requests are served between two. */
export const SLICE_MS = 4;

export type Slices = {
  /** Carries a task out; one that throws is over, and `failed` is told. */
  readonly add: (task: Generator<void, void>, failed: (error: unknown) => void) => void;
  readonly stop: () => void;
};

/**
 * Carries work out in slices, so that the HTTP thread is never held (design §5, Threads). A task is a generator that
 * yields after each small piece; tasks take turns.
 */
export const createSlices = (nowMs: () => number): Slices => {
  const tasks = new Map<Generator<void, void>, (error: unknown) => void>();
  let scheduled: NodeJS.Immediate | undefined;

  /** True when nothing is left of it. */
  const work = (task: Generator<void, void>, failed: (error: unknown) => void, until: number): boolean => {
    try {
      do if (task.next().done === true) return true;
      while (nowMs() < until);
      return false;
    } catch (error) {
      failed(error);
      return true;
    }
  };
  const turn = (): void => {
    scheduled = undefined;
    const until = nowMs() + SLICE_MS;
    for (const [task, failed] of tasks) {
      tasks.delete(task);
      if (!work(task, failed, until)) tasks.set(task, failed); // behind the others
      if (nowMs() >= until) break;
    }
    if (tasks.size > 0) scheduled ??= setImmediate(turn);
  };
  return {
    add: (task, failed) => {
      tasks.set(task, failed);
      scheduled ??= setImmediate(turn);
    },
    stop: () => {
      clearImmediate(scheduled);
      scheduled = undefined;
      tasks.clear();
    },
  };
};
