import type { Timers } from '../../app/ports.ts';

/**
 * Waits for `work` until the deadline or an abort signal. What then happened to a write nobody knows; a read simply
 * failed: `failure` makes the error of either.
 */
export const withPatience = <T>(
  work: Promise<T>,
  options: {
    readonly timers: Timers;
    readonly deadlineMs: number;
    readonly signals: readonly AbortSignal[];
    readonly failure: (reason: string) => Error;
  },
): Promise<T> =>
  new Promise((resolve, reject) => {
    const giveUp = (reason: string): void => {
      finish();
      reject(options.failure(reason));
    };
    const cancel = options.timers.after(options.deadlineMs, () =>
      giveUp(`no answer within ${options.deadlineMs} ms`),
    );
    const onAbort = (): void => giveUp('given up by the caller');
    const finish = (): void => {
      cancel();
      for (const signal of options.signals) signal.removeEventListener('abort', onAbort);
    };
    for (const signal of options.signals) signal.addEventListener('abort', onAbort);
    if (options.signals.some((signal) => signal.aborted)) return onAbort();
    work.then(
      (value) => {
        finish();
        resolve(value);
      },
      (error: unknown) => {
        finish();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
