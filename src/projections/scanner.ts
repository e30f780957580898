import { parentPort } from 'node:worker_threads';
import { ListRefused } from './read-models.ts';
import { scanSource, type FromScanner, type ToScanner } from './resources/scans.ts';

/** Entry of the thread that scans: each on a connection of its own, slice by slice. `ScanSlots` bounds how many. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');

type Run = Extract<ToScanner, { kind: 'run' }>;

/** Those that run; `cancelled` of them are to end. */
const known = new Set<number>();
const cancelled = new Set<number>();
const tell = (message: FromScanner): void => port.postMessage(message);

const run = async ({ call, path, request }: Run): Promise<void> => {
  try {
    tell({ kind: 'page', call, page: await scanSource(path, request, () => cancelled.has(call)) });
  } catch (error) {
    if (error instanceof ListRefused) tell({ kind: 'refused', call, reason: error.reason });
    else tell({ kind: 'failed', call, message: error instanceof Error ? error.message : String(error) });
  } finally {
    known.delete(call);
    cancelled.delete(call);
  }
};

port.on('message', (message: ToScanner) => {
  if (message.kind === 'cancel') {
    if (known.has(message.call)) cancelled.add(message.call);
    return;
  }
  known.add(message.call);
  void run(message);
});
