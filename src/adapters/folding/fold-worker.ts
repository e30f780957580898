import { parentPort, workerData } from 'node:worker_threads';
import type { Folding, FoldWorkerData, FromFoldWorker, ToFoldWorker } from './fold-protocol.ts';

/** The thread behind `createWorkerFolds`: one fold at a time, each read from the log anew. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');
const { module, config } = workerData as FoldWorkerData;

const { openFolding } = (await import(module)) as {
  openFolding: (config: unknown) => Promise<Folding> | Folding;
};
const folding = await openFolding(config);
let busy: Promise<void> = Promise.resolve();

const answer = (message: FromFoldWorker): void => port.postMessage(message);
const serve = async (message: ToFoldWorker): Promise<void> => {
  if (message.kind === 'close') {
    await folding.close();
    port.close();
    return;
  }
  const { call, request } = message;
  try {
    answer({ kind: 'folded', call, folded: await folding.fold(request) });
  } catch (error) {
    answer({ kind: 'failed', call, problem: error instanceof Error ? error.message : String(error) });
  }
};

port.on('message', (message: ToFoldWorker) => {
  busy = busy.then(() => serve(message));
});
