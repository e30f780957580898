import { Worker } from 'node:worker_threads';
import type { StoreCheck } from './check-store.ts';

/** A module beside this one as a thread: compiled code stands there as .js, source as .ts. */
export const startThread = (name: 'writer-worker' | 'check-worker', workerData: unknown): Worker => {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./${name}.${extension}`, import.meta.url), {
    workerData,
    name: `event-log-${name}`,
  });
};

/** `checkSqliteStore` on a thread of its own. */
export const checkOnThread = (dataDir: string): Promise<StoreCheck> =>
  new Promise((resolve, reject) => {
    const worker = startThread('check-worker', dataDir);
    worker.once('message', (result: StoreCheck) => resolve(result));
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the check ended without a result')));
  });
