import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { UsageQuery, UsageRow } from '../../domain/metering/usage.ts';
import { UsageRefused } from './usage-refused.ts';
import { scanUsage } from './usage-scan.ts';

export type FromUsageWorker =
  /** A part of the answer; after each but the last the thread waits for a message. */
  | { readonly kind: 'rows'; readonly rows: readonly UsageRow[]; readonly last: boolean }
  | { readonly kind: 'refused'; readonly reason: UsageRefused['reason'] };

/** Adds up usage away from the HTTP thread; one at a time, since bills are made seldom and each looks at much. */
export type UsageScans = {
  /** Rejects with UsageRefused when others wait already, when it takes too long, and once the signal is aborted. */
  readonly run: (query: UsageQuery, signal: AbortSignal) => Promise<readonly UsageRow[]>;
  readonly close: () => Promise<void>;
};

/** Entry of the thread. */
export const WORKER_MODULE = new URL(
  import.meta.url.endsWith('.ts') ? './usage-worker.ts' : './usage-worker.js',
  import.meta.url,
);
/** Rows that one message brings: taking over a hundred thousand held the HTTP thread for 150 ms. */
export const ROWS_AT_ONCE = 500;
/** Longest scan, milliseconds; and how many may wait for their turn. */
const TIME_LIMIT_MS = 60_000;
const MAX_WAITING = 4;
const OLD_MB = 256;
const YOUNG_MB = 12;

/** `source`: the path of a file, or a connection in memory; asked for each scan, since a rebuild replaces it. */
export const createUsageScans = (source: () => string | DatabaseSync): UsageScans => {
  const ending = new AbortController();
  let waiting = 0;
  let last: Promise<unknown> = Promise.resolve();

  // In memory (specs, simulations, before the first file is built) there is little to look at, and one connection.
  const scanOf = async (of: string | DatabaseSync, query: UsageQuery, signal: AbortSignal) =>
    typeof of === 'string' ? inWorker(of, query, signal) : scanUsage(of, query);

  const scan = async (query: UsageQuery, signal: AbortSignal): Promise<readonly UsageRow[]> => {
    const before = source();
    try {
      return await scanOf(before, query, signal);
    } catch (error) {
      // A rebuild has replaced the file meanwhile: what failed is done on the new one.
      if (error instanceof UsageRefused || source() === before) throw error;
      return await scanOf(source(), query, signal);
    }
  };

  return {
    run: async (query, given) => {
      if (waiting >= MAX_WAITING) throw new UsageRefused('busy');
      const signal = AbortSignal.any([given, ending.signal]);
      waiting += 1;
      const turn = last.then(() => {
        if (signal.aborted) throw new UsageRefused('cancelled');
        return scan(query, signal);
      });
      last = turn.catch(() => undefined);
      try {
        return await turn;
      } finally {
        waiting -= 1;
      }
    },
    close: async () => {
      ending.abort();
      await last;
    },
  };
};

const inWorker = async (
  path: string,
  query: UsageQuery,
  signal: AbortSignal,
): Promise<readonly UsageRow[]> => {
  const worker = new Worker(WORKER_MODULE, {
    name: 'usage',
    workerData: { path, query },
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB, maxOldGenerationSizeMb: OLD_MB },
  });
  worker.unref();
  const limit = AbortSignal.timeout(TIME_LIMIT_MS);
  const ended = AbortSignal.any([signal, limit]);
  const rows: UsageRow[] = [];
  try {
    return await new Promise<readonly UsageRow[]>((resolve, reject) => {
      worker.on('message', (part: FromUsageWorker) => {
        if (part.kind === 'refused') return reject(new UsageRefused(part.reason));
        rows.push(...part.rows);
        if (part.last) return resolve(rows);
        // Others get their turn before the next part comes.
        setImmediate(() => worker.postMessage('next'));
      });
      worker.once('error', reject);
      worker.once('exit', () => reject(new Error('the thread that adds up usage ended without an answer')));
      ended.addEventListener('abort', () =>
        reject(new UsageRefused(limit.aborted ? 'too-long' : 'cancelled')),
      );
    });
  } finally {
    await worker.terminate();
  }
};
