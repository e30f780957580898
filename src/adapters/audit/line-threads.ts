import { Worker } from 'node:worker_threads';
import { BundleInconsistent, type LinePage } from '../../app/audit/bundle/writer.ts';
import type { MakePages } from '../../app/audit/exports/ports.ts';
import { LogDamaged } from '../../app/log/event-store.ts';
import type { FromLineWorker, LineWorkerData } from './line-protocol.ts';

export type LineThreadsOptions = Pick<LineWorkerData, 'module' | 'config'> & {
  /** What is read of the audit view: the path of its file, or a connection in memory, which no thread can read. */
  readonly tree: () => unknown;
};

// The file name follows this one, so that the built service starts its built worker.
const WORKER_MODULE = new URL(import.meta.url.replace(/line-threads(\.[cm]?[jt]s)/, 'line-worker$1'));

/** The lines of each export, and its proofs, are made on a thread of their own, which ends with them: exports are rare and long. */
export const createLineThreads = ({ module, config, tree }: LineThreadsOptions): MakePages => {
  const pathNow = (): string | undefined => {
    const path = tree();
    return typeof path === 'string' ? path : undefined;
  };
  return (asked, signal) => {
    const path = pathNow();
    if (path === undefined) return undefined;
    const pages = async function* (): AsyncGenerator<LinePage> {
      let begun = false;
      try {
        for await (const page of pagesOf({ module, config, tree: path, asked }, signal)) {
          begun = true;
          yield page;
        }
      } catch (error) {
        // A rebuild may have replaced the file before the thread had opened it.
        const replaced = pathNow();
        if (begun || replaced === undefined || replaced === path) throw error;
        yield* pagesOf({ module, config, tree: replaced, asked }, signal);
      }
    };
    return pages();
  };
};

/** Young generation, MB: what a page makes dies with it. */
const YOUNG_MB = 12;

async function* pagesOf(workerData: LineWorkerData, signal: AbortSignal): AsyncGenerator<LinePage> {
  signal.throwIfAborted();
  const worker = new Worker(WORKER_MODULE, {
    workerData,
    name: 'export lines',
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  const come: FromLineWorker[] = [];
  let wake = (): void => undefined;
  const take = (message: FromLineWorker): void => {
    come.push(message);
    wake();
  };
  const broke = (message: string): void => take({ kind: 'failed', name: 'Error', message });
  worker.on('message', take);
  worker.on('error', (error) => broke(error instanceof Error ? error.message : String(error)));
  // All that it said has come by then.
  worker.on('exit', () => broke('the thread of an export ended before its time'));
  const onAbort = (): void => wake();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const message = come.shift();
      if (message === undefined) await new Promise<void>((resolve) => (wake = resolve));
      else if (message.kind === 'page') {
        yield message.page;
        worker.postMessage('more');
      } else if (message.kind === 'end') return;
      else throw errorOf(message);
    }
  } finally {
    signal.removeEventListener('abort', onAbort);
    await worker.terminate();
  }
}

const errorOf = ({ name, message, damaged }: Extract<FromLineWorker, { kind: 'failed' }>): Error => {
  if (damaged !== undefined) return new LogDamaged(message, damaged.at);
  return name === BundleInconsistent.NAME ? new BundleInconsistent(message) : new Error(message);
};
