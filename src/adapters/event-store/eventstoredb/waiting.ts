/** Small helpers for waiting with a limit. Every timer and listener they set is gone when they settle. */

/** No answer within the time that was given for it. */
export class Silence extends Error {
  override readonly name = 'Silence';
  constructor(what: string, ms: number) {
    super(`${what}: no answer within ${Math.max(0, Math.round(ms))} ms`);
  }
}

/** Settles as `promise` does; rejects with Silence after `ms`, and with the signal's reason when that comes first. */
export const timed = async <T>(
  what: string,
  promise: Promise<T>,
  ms: number,
  signal?: AbortSignal,
): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  let abort = (): void => {};
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Silence(what, ms)), Math.max(0, ms));
    abort = () => reject(signal?.reason as Error);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
};

/** Resolves after `ms`, or at once when one of the signals is aborted. */
export const pause = (ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, ms));
    for (const signal of signals) signal?.addEventListener('abort', done, { once: true });
    if (signals.some((signal) => signal?.aborted)) done();
  });

/** Full jitter over an exponential: between half and all of `base · 2^failures`, at most `max`. */
export const backoff = (failures: number, base: number, max: number): number =>
  Math.min(max, base * 2 ** Math.min(failures, 16)) * (0.5 + Math.random() / 2);
