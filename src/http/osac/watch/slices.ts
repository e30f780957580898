/** Milliseconds that one turn of the event loop may be used; requests are served between two. */
export const SLICE_MS = 4;

export type Slices = {
  /** Carries a task out; one that throws is over, and `failed` is told. */
  readonly add: (task: Generator<void, void>, failed: (error: unknown) => void) => void;
};

/**
 * Carries work out in slices, so that the HTTP thread is never held. A task is a generator that
 * yields after each small piece; tasks take turns. `restMs`: milliseconds of pause after a slice that was used up, so
 * that much work at once leaves most of the thread to others. Default 0.
 */
export const createSlices = (nowMs: () => number, restMs = 0): Slices => {
  const tasks = new Map<Generator<void, void>, (error: unknown) => void>();
  let scheduled = false;

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
    scheduled = false;
    const until = nowMs() + SLICE_MS;
    let usedUp = false;
    for (const [task, failed] of tasks) {
      tasks.delete(task);
      if (!work(task, failed, until)) tasks.set(task, failed); // behind the others
      usedUp = nowMs() >= until;
      if (usedUp) break;
    }
    if (tasks.size > 0) schedule(usedUp ? restMs : 0);
  };
  const schedule = (ms: number): void => {
    if (scheduled) return;
    scheduled = true;
    if (ms > 0) setTimeout(turn, ms);
    else setImmediate(turn);
  };
  return {
    add: (task, failed) => {
      tasks.set(task, failed);
      schedule(0);
    },
  };
};
