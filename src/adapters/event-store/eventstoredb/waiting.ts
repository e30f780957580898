/** Small helpers for waiting with a limit. Every timer and listener they set is gone when they settle. */

/** No answer within the time that was given for it. */
export class Silence extends Error {
  override readonly name = 'Silence';
  /** Milliseconds that were waited. */
  readonly ms: number;
  constructor(what: string, ms: number) {
    super(`${what}: no answer within ${Math.max(1, Math.round(ms))} ms`);
    this.ms = ms;
  }
}

/**
 * Thousands of calls may wait on one signal, and a signal looks through all of its listeners to take one away. It gets
 * a single one for all of them.
 */
const waiters = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `wake` when the signal is aborted, at once when it is already. Returns how to stop waiting. */
export const onAbort = (signal: AbortSignal | undefined, wake: () => void): (() => void) => {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    wake();
    return () => {};
  }
  const known = waiters.get(signal);
  const waiting = known ?? new Set();
  if (known === undefined) {
    waiters.set(signal, waiting);
    signal.addEventListener('abort', wakeAll);
  }
  // Two waits may share one function.
  const entry = (): void => wake();
  waiting.add(entry);
  return () => {
    if (!waiting.delete(entry) || waiting.size > 0) return;
    waiters.delete(signal);
    signal.removeEventListener('abort', wakeAll);
  };
};
function wakeAll(this: AbortSignal): void {
  const waiting = waiters.get(this) ?? [];
  waiters.delete(this);
  for (const wake of waiting) wake();
}

/** Settles as `promise` does; rejects with Silence after `ms`, and with the signal's reason when that comes first. */
export const timed = async <T>(
  what: string,
  promise: Promise<T>,
  ms: number,
  signal?: AbortSignal,
): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  let stop = (): void => {};
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Silence(what, ms)), Math.max(0, ms));
    stop = onAbort(signal, () => reject(signal?.reason as Error));
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    stop();
  }
};

/** Resolves after `ms`, or at once when one of the signals is aborted. */
export const pause = (ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> =>
  new Promise((resolve) => {
    if (signals.some((signal) => signal?.aborted)) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      for (const stop of stops) stop();
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, ms));
    const stops = signals.map((signal) => onAbort(signal, done));
  });

/** Full jitter over an exponential: between half and all of `base · 2^failures`, at most `max`. */
export const backoff = (failures: number, base: number, max: number): number =>
  Math.min(max, base * 2 ** Math.min(failures, 16)) * (0.5 + Math.random() / 2);

/** Silence in milliseconds from which on a connection may count as dead: a second, of which sending takes a little. */
const DEAD_AFTER_MS = 990;

/**
 * Whether a connection is dead on which this was not answered: not after a moment, which says nothing, nor when others
 * were answered meanwhile. `lastAnswerAt`: on that connection, as `performance.now()`.
 */
export const isDead = (error: unknown, lastAnswerAt: number): boolean =>
  error instanceof Silence &&
  error.ms >= DEAD_AFTER_MS &&
  // Timers may be early by a millisecond.
  lastAnswerAt <= performance.now() - error.ms + 1;
