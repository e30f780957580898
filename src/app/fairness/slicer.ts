import type { Clock } from '../ports.ts';

/**
 * Keeps work from holding the thread, which also answers HTTP. Work that waits only on memory never leaves
 * the microtask queue by itself: after some milliseconds of it the next turn of the event loop is waited for.
 */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Beside it in one turn come requests, answers of the log and of hubs, and a page of the log. */
const SLICE_MS = 2;
/** So many steps at least: on a crowded machine the time may be up before the thread has had any of it. */
const SLICE_STEPS = 4;

/**
 * Runs steps of one kind of work; a promise is to be waited for before the next one. Only the steps' own time
 * counts, so that what others do in the same turn does not slow this work down.
 */
export const createSlices = (clock: Clock): ((step: () => void) => Promise<void> | undefined) => {
  let used = 0;
  let steps = 0;
  return (step) => {
    const before = clock.monotonicMs();
    step();
    used += clock.monotonicMs() - before;
    steps += 1;
    if (used < SLICE_MS || steps < SLICE_STEPS) return undefined;
    used = 0;
    steps = 0;
    return nextTurn();
  };
};

/**
 * The same for work of several callers that waits itself, as the mapping of many topics does: each asks after
 * a step, and all wait for the same turn. Undefined: go on.
 */
export const createTurns = (clock: Pick<Clock, 'monotonicMs'>): (() => Promise<void> | undefined) => {
  let began = clock.monotonicMs();
  let next: Promise<void> | undefined;
  return () => {
    if (next === undefined && clock.monotonicMs() - began < SLICE_MS) return undefined;
    next ??= nextTurn().then(() => {
      next = undefined;
      began = clock.monotonicMs();
    });
    return next;
  };
};

export type SlicerOptions = {
  /** The next step of what waits, which may ask how long it may go on; undefined: nothing waits. */
  readonly take: () => ((hasTime: () => boolean) => void) | undefined;
  readonly nowMs: () => number;
  /** Milliseconds of a turn after which no step is begun in it. */
  readonly sliceMs: number;
  /** Steps of a turn that are begun all the same. Default 1. */
  readonly atLeast?: number;
  /** True: what was begun in a turn counts until it is over, also if nothing waits. Default false. */
  readonly keepsTurn?: boolean;
  /** Calls back in the next turn of the loop. */
  readonly nextTurn?: ((go: () => void) => void) | undefined;
};

/** Takes steps in order, each when all that the one before set off is done, and some in each turn. */
export const createSlicer = ({
  take,
  nowMs,
  sliceMs,
  atLeast = 1,
  keepsTurn = false,
  nextTurn: later = (go) => void setImmediate(go),
}: SlicerOptions) => {
  /** While there is one, a call of `step` or `begin` is on its way. */
  let slice: { readonly until: number; steps: number } | undefined;
  const hasTime = (): boolean => slice !== undefined && (slice.steps < atLeast || nowMs() < slice.until);

  const begin = (): void => {
    slice = { until: nowMs() + sliceMs, steps: 0 };
    step(slice);
  };
  const step = (current: { steps: number }): void => {
    const work = take();
    if (work === undefined) {
      if (keepsTurn && current.steps > 0) later(begin);
      else slice = undefined;
      return;
    }
    current.steps += 1;
    work(hasTime);
    afterMicrotasks(() => (hasTime() ? step(current) : later(begin)));
  };

  return {
    /** Begins now with what waits, unless it is at it already. */
    serve: (): void => {
      if (slice === undefined) begin();
    },
    /** True: this turn has time for a step that does not wait. To be asked while nothing waits. */
    passes: (): boolean => {
      if (slice !== undefined) return hasTime();
      slice = { until: nowMs() + sliceMs, steps: 1 };
      later(begin);
      return true;
    },
  };
};

/** A tick that a microtask asks for comes after all other microtasks, also those that they cause. */
const afterMicrotasks = (go: () => void): void => queueMicrotask(() => process.nextTick(go));

/** Of one turn, to hand out answers of a batch: whoever gets one goes on in the same turn. */
const PART_MS = 3;

/** Calls `step` for 0 to `count` - 1. */
export type InParts = (count: number, step: (i: number) => void) => void;

/** Steps in the order in which they were given, also those of several calls. */
export const createParts = ({
  nowMs = () => performance.now(),
  nextTurn: later,
}: Partial<Pick<SlicerOptions, 'nowMs' | 'nextTurn'>> = {}): InParts => {
  const calls: { readonly count: number; readonly step: (i: number) => void; next: number }[] = [];
  const { serve } = createSlicer({
    take: () => {
      const [call] = calls;
      if (call === undefined) return undefined;
      const i = call.next;
      call.next += 1;
      if (call.next >= call.count) calls.shift();
      return () => call.step(i);
    },
    nowMs,
    sliceMs: PART_MS,
    atLeast: SLICE_STEPS,
    nextTurn: later,
  });
  return (count, step) => {
    if (count === 0) return;
    calls.push({ count, step, next: 0 });
    serve();
  };
};

/** Milliseconds of one turn that tasks may use; requests are served between two. */
export const TASK_SLICE_MS = 4;

type Task = { readonly work: Generator<void, void>; readonly failed: (error: unknown) => void };

/**
 * Carries tasks out: generators that yield after each small piece, and take turns, a slice each. One that
 * throws is over, and `failed` is told. `restMs`: milliseconds of pause after a slice that was used up, so
 * that much work at once leaves most of the thread to others.
 */
export const createTasks = (
  nowMs: () => number,
  restMs = 0,
): ((work: Generator<void, void>, failed: (error: unknown) => void) => void) => {
  const tasks = new Set<Task>();
  const isOver = ({ work, failed }: Task, hasTime: () => boolean): boolean => {
    try {
      do if (work.next().done === true) return true;
      while (hasTime());
      return false;
    } catch (error) {
      failed(error);
      return true;
    }
  };
  const { serve } = createSlicer({
    take: () => {
      const [task] = tasks;
      if (task === undefined) return undefined;
      tasks.delete(task);
      return (hasTime) => {
        if (!isOver(task, hasTime)) tasks.add(task); // behind the others
      };
    },
    nowMs,
    sliceMs: TASK_SLICE_MS,
    ...(restMs > 0 && { nextTurn: (go: () => void) => void setTimeout(go, restMs) }),
  });
  return (work, failed) => {
    tasks.add({ work, failed });
    if (tasks.size === 1) setImmediate(serve);
  };
};
