import { parentPort, workerData } from 'node:worker_threads';
import { backupLog } from './backup.ts';

/** A backup on a thread of its own: its syncs, and what it does with the finished copy, are long calls. */
if (parentPort === null) throw new Error('this module runs in a worker thread only');
const { file, target } = workerData as { readonly file: string; readonly target: string };
parentPort.postMessage(await backupLog(file, target));
