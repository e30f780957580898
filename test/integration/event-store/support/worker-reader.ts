import { parentPort, workerData } from 'node:worker_threads';
import { openSqliteLogReader } from '../../../../src/adapters/event-store/sqlite/open-log-reader.ts';

/** A thread that follows the log as a projection does: posts every item of one subscription. */
const reader = openSqliteLogReader({ dataDir: String(workerData) });
const controller = new AbortController();
parentPort?.once('message', () => controller.abort());
for await (const item of reader.subscribe({ signal: controller.signal })) parentPort?.postMessage(item);
await reader.close();
