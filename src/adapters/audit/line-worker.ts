import { parentPort, workerData } from 'node:worker_threads';
import { LogDamaged } from '../../app/log/event-store.ts';
import {
  PAGES_AHEAD,
  type FromLineWorker,
  type LineWorkerData,
  type OpenExportLines,
} from './line-protocol.ts';

/** The thread behind `createLineThreads`: the lines of one export, no more pages ahead of the reader than it may. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');
const { module, config, tree, asked } = workerData as LineWorkerData;

let leave = PAGES_AHEAD;
let onLeave = (): void => undefined;
port.on('message', () => {
  leave += 1;
  onLeave();
});

const tell = (message: FromLineWorker, transfer: ArrayBuffer[] = []): void =>
  port.postMessage(message, transfer);
/** Bytes in memory of their own, which can be handed over. */
const own = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(bytes);

try {
  const { openExportLines } = (await import(module)) as { openExportLines: OpenExportLines };
  const lines = await openExportLines(config, tree);
  try {
    for await (const { text, hashes, counts } of lines.pages(asked)) {
      while (leave === 0) await new Promise<void>((resolve) => (onLeave = resolve));
      leave -= 1;
      const page = { text: own(text), hashes: own(hashes), counts };
      tell({ kind: 'page', page }, [page.text.buffer, page.hashes.buffer]);
    }
  } finally {
    await lines.close();
  }
  tell({ kind: 'end' });
} catch (error) {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const damaged = error instanceof LogDamaged ? { damaged: { at: error.at } } : {};
  tell({ kind: 'failed', name, message, ...damaged });
}
port.close();
