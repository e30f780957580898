import { setImmediate } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { ListRefused, type ListPage } from '../read-models.ts';
import { defineFunctions } from '../runner/sql-functions.ts';
import { scanList, type ScanRequest } from './scan.ts';
import { createScanSlots } from './scan-slots.ts';

/** Runs lists that look at every row, away from the HTTP thread wherever there are files. */
export type Scans = {
  /**
   * `caller`: for whom it counts. Rejects with ListRefused when too many wait, when it takes too long, and once the signal
   * is aborted.
   */
  readonly run: (request: ScanRequest, signal: AbortSignal, caller?: string) => Promise<ListPage>;
  readonly close: () => Promise<void>;
};

/** What is read: the path of a file, or a connection in memory. Asked for each scan, since a rebuild replaces it. */
export type ScanSource = () => string | DatabaseSync;

/** Longest scan, milliseconds. */
export const SCAN_TIME_LIMIT_MS = 10_000;

/** Counts and bounds what `carryOut` does; once a rebuild has replaced the file, what failed is done on the new one. */
const bounded = (
  source: ScanSource,
  carryOut: (of: string | DatabaseSync, request: ScanRequest, signal: AbortSignal) => Promise<ListPage>,
): Scans['run'] => {
  const slots = createScanSlots();
  return async (request, signal, caller = '') => {
    const leave = await slots.enter(caller, signal);
    const before = source();
    try {
      if (signal.aborted) throw new ListRefused('cancelled');
      return await carryOut(before, request, signal);
    } catch (error) {
      if (error instanceof ListRefused || source() === before) throw error;
      return await carryOut(source(), request, signal);
    } finally {
      leave();
    }
  };
};

/** On this thread, a slice at a time: for specs and the simulation. */
export const inlineScans = (source: ScanSource): Scans => ({
  run: bounded(source, (of, request, signal) => scanSource(of, request, () => signal.aborted)),
  close: async () => undefined,
});

/** One scan of a file, all of it as it was at the beginning, or of a connection in memory. */
export const scanSource = async (
  source: string | DatabaseSync,
  request: ScanRequest,
  isCancelled: () => boolean,
): Promise<ListPage> => {
  const control = {
    isCancelled,
    pause: () => setImmediate(),
    nowMs: () => performance.now(),
    timeLimitMs: SCAN_TIME_LIMIT_MS,
  };
  if (typeof source !== 'string') return scanList(source, request, control);
  const db = new DatabaseSync(source, { readOnly: true, timeout: 5000 });
  try {
    defineFunctions(db);
    db.exec('BEGIN');
    return await scanList(db, request, control);
  } finally {
    db.close();
  }
};

export type ToScanner =
  | { readonly kind: 'run'; readonly call: number; readonly path: string; readonly request: ScanRequest }
  | { readonly kind: 'cancel'; readonly call: number };
export type FromScanner =
  | { readonly kind: 'page'; readonly call: number; readonly page: ListPage }
  | { readonly kind: 'refused'; readonly call: number; readonly reason: ListRefused['reason'] }
  | { readonly kind: 'failed'; readonly call: number; readonly message: string };

const SCANNER_MODULE = new URL(
  import.meta.url.endsWith('.ts') ? '../scanner.ts' : '../scanner.js',
  import.meta.url,
);
/** Young generation, MB: what a slice makes dies with it. */
const YOUNG_MB = 12;

type Waiting = { readonly resolve: (page: ListPage) => void; readonly reject: (error: Error) => void };

/** On a worker thread, started with the first scan and again after it broke. */
export const workerScans = (source: ScanSource): Scans => {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let lastCall = 0;
  let closed = false;

  const answered = (message: FromScanner): void => {
    const call = waiting.get(message.call);
    if (message.kind === 'page') call?.resolve(message.page);
    else if (message.kind === 'refused') call?.reject(new ListRefused(message.reason));
    else call?.reject(new Error(message.message));
  };
  const broken = (of: Worker, error: Error): void => {
    if (worker !== of) return;
    worker = undefined;
    for (const { reject } of waiting.values()) reject(error);
  };
  const start = (): Worker => {
    const started = new Worker(SCANNER_MODULE, {
      name: 'list scans',
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    started.unref();
    started.on('message', answered);
    started.on('error', (error) =>
      broken(started, error instanceof Error ? error : new Error(String(error))),
    );
    started.on('exit', () => broken(started, new Error('the thread of scans ended')));
    return started;
  };

  const carryOut = async (
    of: string | DatabaseSync,
    request: ScanRequest,
    signal: AbortSignal,
  ): Promise<ListPage> => {
    if (closed) throw new ListRefused('cancelled');
    // Before the first copy is built there is only an empty table in memory.
    if (typeof of !== 'string') return scanSource(of, request, () => signal.aborted);
    const scanner = (worker ??= start());
    lastCall += 1;
    const call = lastCall;
    const cancel = (): void => {
      scanner.postMessage({ kind: 'cancel', call } satisfies ToScanner);
      waiting.get(call)?.reject(new ListRefused('cancelled'));
    };
    try {
      return await new Promise<ListPage>((resolve, reject) => {
        waiting.set(call, { resolve, reject });
        signal.addEventListener('abort', cancel, { once: true });
        scanner.postMessage({ kind: 'run', call, path: of, request } satisfies ToScanner);
      });
    } finally {
      waiting.delete(call);
      signal.removeEventListener('abort', cancel);
    }
  };
  return {
    run: bounded(source, carryOut),
    close: async () => {
      closed = true;
      const closing = worker;
      if (closing === undefined) return;
      broken(closing, new ListRefused('cancelled'));
      await closing.terminate();
    },
  };
};
