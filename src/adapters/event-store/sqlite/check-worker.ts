import { parentPort, workerData } from 'node:worker_threads';
import { checkSqliteStore } from './check-store.ts';

/** The whole check on a thread of its own: SQLite's part of it is one long call. */
if (parentPort === null) throw new Error('this module runs in a worker thread only');
parentPort.postMessage(await checkSqliteStore(String(workerData)));
