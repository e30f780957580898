import { Worker } from 'node:worker_threads';
import type { BackupResult } from './backup.ts';
import type { StoreCheck } from './check-store.ts';

type ThreadName = 'writer-worker' | 'check-worker' | 'backup-worker';

/** Bound of the young generation, MB: texts come in and go to SQLite, nothing stays. By default it may grow to 48 MB. */
const YOUNG_MB = 6;

/** A module beside this one as a thread: compiled code stands there as .js, source as .ts. */
export const startThread = (name: ThreadName, workerData: unknown): Worker => {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new Worker(new URL(`./${name}.${extension}`, import.meta.url), {
    workerData,
    name: `event-log-${name}`,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
};

/** The one message that a thread sends before it ends; rejects with what it throws. */
const resultOf = <Result>(worker: Worker, what: string): Promise<Result> =>
  new Promise((resolve, reject) => {
    worker.once('message', (result: Result) => resolve(result));
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error(`the ${what} ended without a result`)));
  });

/** `checkSqliteStore` on a thread of its own. */
export const checkOnThread = (dataDir: string): Promise<StoreCheck> =>
  resultOf(startThread('check-worker', dataDir), 'check');

/** `backupLog` on a thread of its own. */
export const backupOnThread = (file: string, target: string): Promise<BackupResult> =>
  resultOf(startThread('backup-worker', { file, target }), 'backup');
