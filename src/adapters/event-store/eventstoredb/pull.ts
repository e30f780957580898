import type { Readable } from 'node:stream';
import { Silence, timed } from './waiting.ts';

export type PullOptions = {
  /** Names the call in errors. */
  readonly what: string;
  /** Milliseconds to wait for the next item; asked before each wait. Infinity: as long as it takes. */
  readonly patienceMs: () => number;
  /** Without a limit to the wait, asked each time that nothing came for `ms`: true ends the items, as when the stream ends. */
  readonly idle?: { readonly ms: number; readonly isOver: () => Promise<boolean> };
  readonly signals: readonly (AbortSignal | undefined)[];
  /** Tells the server that nothing more is wanted. */
  readonly cancel: () => Promise<void>;
};

/** How long leaving a stream waits for the cancellation to go out. */
const CANCEL_PATIENCE_MS = 1000;

/**
 * One item at a time out of a library stream. Ends when the stream ends, and also when
 * it merely closes; throws its error, the reason of an aborted signal, or Silence. However it is left, the server is
 * told (A) and the stream destroyed (F); errors that come later find a listener and end there.
 */
export async function* pull<T>(stream: Readable, options: PullOptions): AsyncGenerator<T, void, undefined> {
  let failure: unknown;
  let over = false;
  let wake = (): void => {};
  const onEnd = (): void => {
    over = true;
    wake();
  };
  const onReadable = (): void => wake();
  stream.on('error', (error: unknown) => {
    failure ??= error;
    wake();
  });
  stream.on('end', onEnd).on('close', onEnd).on('readable', onReadable);
  for (const signal of options.signals) signal?.addEventListener('abort', onReadable);

  const { idle } = options;
  /** Resolves when there may be an item: true; false when nothing came for as long as idle says. */
  const something = (patienceMs: number): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const isIdle = idle !== undefined && patienceMs === Infinity;
      const ms = isIdle ? idle.ms : patienceMs;
      const late = (): void => (isIdle ? resolve(false) : reject(new Silence(options.what, ms)));
      const timer = Number.isFinite(ms) ? setTimeout(late, Math.max(0, ms)) : undefined;
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  const nothingNew = (): boolean => failure === undefined && !over && stream.readableLength === 0;

  try {
    for (;;) {
      for (const signal of options.signals) signal?.throwIfAborted();
      const item = stream.read() as T | null;
      if (item !== null) yield item;
      else if (failure !== undefined) throw failure;
      else if (over) return;
      else if (!(await something(options.patienceMs())) && (await idle?.isOver()) && nothingNew()) return;
    }
  } finally {
    for (const signal of options.signals) signal?.removeEventListener('abort', onReadable);
    stream.off('end', onEnd).off('close', onEnd).off('readable', onReadable);
    await timed(options.what, options.cancel(), CANCEL_PATIENCE_MS).catch(() => {});
    stream.destroy();
  }
}
