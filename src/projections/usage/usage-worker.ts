import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import type { UsageQuery } from '../../domain/metering/usage.ts';
import { UsageRefused } from './usage-refused.ts';
import { scanUsageFile } from './usage-scan.ts';
import { ROWS_AT_ONCE, type FromUsageWorker } from './usage-scans.ts';

/** Entry of the thread that adds up one answer, hands it over in parts, and ends. */
const { path, query } = workerData as { readonly path: string; readonly query: UsageQuery };

const tell = (part: FromUsageWorker): void => parentPort?.postMessage(part);

const answer = async (): Promise<void> => {
  const rows = scanUsageFile(path, query);
  for (let start = 0; ; start += ROWS_AT_ONCE) {
    const last = start + ROWS_AT_ONCE >= rows.length;
    tell({ kind: 'rows', rows: rows.slice(start, start + ROWS_AT_ONCE), last });
    if (last || parentPort === null) return;
    await once(parentPort, 'message');
  }
};

try {
  await answer();
} catch (error) {
  if (!(error instanceof UsageRefused)) throw error;
  tell({ kind: 'refused', reason: error.reason });
}
