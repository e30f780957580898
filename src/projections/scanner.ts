import { parentPort } from 'node:worker_threads';
import { ListRefused } from './read-models.ts';
import { scanSource, type FromScanner, type ToScanner } from './resources/scans.ts';

/** Entry of the thread that scans: every scan on a connection of its own, slice by slice. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');

type Run = Extract<ToScanner, { kind: 'run' }>;

/** Scans that take turns; the others wait. More would all end late, one would make a short one wait for a long one. */
const LANES = 2;
const waiting: Run[] = [];
const known = new Set<number>();
const cancelled = new Set<number>();
const lanes = { busy: 0 };
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

const fillLanes = (): void => {
  while (lanes.busy < LANES) {
    const next = waiting.shift();
    if (next === undefined) return;
    lanes.busy += 1;
    void run(next).finally(() => {
      lanes.busy -= 1;
      fillLanes();
    });
  }
};

port.on('message', (message: ToScanner) => {
  if (message.kind === 'cancel') {
    if (known.has(message.call)) cancelled.add(message.call);
    return;
  }
  known.add(message.call);
  waiting.push(message);
  fillLanes();
});
