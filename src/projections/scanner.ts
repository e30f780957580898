import { parentPort } from 'node:worker_threads';
import { ListRefused } from './read-models.ts';
import { scanSource, type FromScanner, type ToScanner } from './resources/scans.ts';

/** Entry of the thread that scans: every scan on a connection of its own, taking turns slice by slice. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');

const cancelled = new Set<number>();
const running = new Set<number>();
const tell = (message: FromScanner): void => port.postMessage(message);

const run = async ({ call, path, request }: Extract<ToScanner, { kind: 'run' }>): Promise<void> => {
  running.add(call);
  try {
    tell({ kind: 'page', call, page: await scanSource(path, request, () => cancelled.has(call)) });
  } catch (error) {
    if (error instanceof ListRefused) tell({ kind: 'refused', call, reason: error.reason });
    else tell({ kind: 'failed', call, message: error instanceof Error ? error.message : String(error) });
  } finally {
    running.delete(call);
    cancelled.delete(call);
  }
};

port.on('message', (message: ToScanner) => {
  if (message.kind === 'run') void run(message);
  else if (running.has(message.call)) cancelled.add(message.call);
});
