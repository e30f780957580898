import { parentPort, workerData } from 'node:worker_threads';
import type { UsageQuery } from '../../domain/metering/usage.ts';
import { UsageRefused } from './usage-refused.ts';
import { scanUsageFile } from './usage-scan.ts';
import type { FromUsageWorker } from './usage-scans.ts';

/** Entry of the thread that adds up one answer and ends. */
const { path, query } = workerData as { readonly path: string; readonly query: UsageQuery };

const answer = (): FromUsageWorker => {
  try {
    return { kind: 'rows', rows: scanUsageFile(path, query) };
  } catch (error) {
    if (error instanceof UsageRefused) return { kind: 'refused', reason: error.reason };
    throw error;
  }
};

parentPort?.postMessage(answer());
