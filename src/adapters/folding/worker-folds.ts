import { Worker } from 'node:worker_threads';
import type { FoldedStream, LongFolds } from '../../app/commands/loaded-streams.ts';
import type { Logger } from '../../app/ports.ts';
import type { FoldWorkerData, FromFoldWorker, ToFoldWorker } from './fold-protocol.ts';

type Waiting = (folded: FoldedStream<unknown> | undefined) => void;

/**
 * Long folds on a worker thread, which starts with the first one: most instances never need it, since snapshots keep
 * folds short. A worker that fails is replaced by the next fold; what waited for it is folded by its callers.
 */
export const createWorkerFolds = ({
  workerData,
  logger,
}: {
  readonly workerData: FoldWorkerData;
  readonly logger: Logger;
}): LongFolds => {
  let worker: Worker | undefined;
  let closing = false;
  let nextCall = 0;
  const calls = new Map<number, Waiting>();

  const settle = (call: number, folded: FoldedStream<unknown> | undefined): void => {
    calls.get(call)?.(folded);
    calls.delete(call);
  };
  const gone = (ended: Worker, error?: unknown): void => {
    if (worker !== ended) return;
    worker = undefined;
    if (!closing) logger.warn({ err: error }, 'worker for long folds ended; folding in slices');
    for (const call of calls.keys()) settle(call, undefined);
  };
  const start = (): Worker => {
    // The file name follows this one, so that the built service starts its built worker.
    const url = new URL(import.meta.url.replace(/worker-folds(\.[cm]?[jt]s)/, 'fold-worker$1'));
    const started = new Worker(url, {
      workerData,
      name: 'long-folds',
      resourceLimits: { maxYoungGenerationSizeMb: 6 },
    });
    started.unref();
    started.on('error', (error) => gone(started, error));
    started.on('exit', () => gone(started));
    started.on('message', (message: FromFoldWorker) => {
      if (message.kind === 'folded') return settle(message.call, message.folded);
      logger.warn({ problem: message.problem }, 'long fold failed in its worker');
      return settle(message.call, undefined);
    });
    return started;
  };
  const send = (to: Worker, message: ToFoldWorker): void => to.postMessage(message);

  return {
    foldOn: (request, signal) => {
      if (closing || signal?.aborted === true) return Promise.resolve(undefined);
      worker ??= start();
      nextCall += 1;
      const call = nextCall;
      const { promise, resolve } = Promise.withResolvers<FoldedStream<unknown> | undefined>();
      const giveUp = (): void => settle(call, undefined);
      signal?.addEventListener('abort', giveUp, { once: true });
      calls.set(call, (folded) => {
        signal?.removeEventListener('abort', giveUp);
        resolve(folded);
      });
      send(worker, { kind: 'fold', call, request });
      return promise;
    },
    close: async () => {
      closing = true;
      const ending = worker;
      if (ending === undefined) return;
      await new Promise<void>((resolve) => {
        ending.once('exit', () => resolve());
        send(ending, { kind: 'close' });
      });
    },
  };
};
