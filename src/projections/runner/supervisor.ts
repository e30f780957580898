import type { Position } from '../../app/event-store.ts';
import type { Logger, Timers } from '../../app/ports.ts';
import type { ProjectionStatus, RebuildReport } from '../read-models.ts';
import type { View } from '../view.ts';
import type { CopyProgress, RunningCopy } from './copy.ts';
import type { Digest } from './digest.ts';
import { AheadOfLog } from './follow.ts';
import type { CopyHost } from './host.ts';
import { openReadConnection, type ReadConnection } from './read-connection.ts';
import { rebuildCopy, type RebuildOptions } from './rebuild.ts';
import type { Storage } from './storage.ts';
import { readCheckpoint, readParked } from './view-file.ts';
import { createWaiters } from './waiters.ts';

/** Called after each committed batch; for metrics. */
export type ViewHooks = {
  readonly applied?: (batch: {
    readonly view: string;
    readonly events: number;
    readonly batchMs: number;
    readonly lagSeconds: number;
  }) => void;
};

export type SupervisorOptions = {
  readonly view: View;
  readonly storage: Storage;
  readonly host: CopyHost;
  readonly timers: Timers;
  /** Wall clock in milliseconds; only the lag is measured with it. */
  readonly nowMs: () => number;
  readonly hooks: ViewHooks;
  readonly logger: Logger;
  /** Most callers of `waitFor` at one time; past it they are told at once that the bound was reached. */
  readonly maxWaiters: number;
};

/** Keeps one view alive: starts it, restarts it after a failure, rebuilds and switches it, and knows its state. */
export type Supervisor = {
  readonly connection: ReadConnection;
  readonly waitFor: (position: Position, timeoutMs: number, signal?: AbortSignal) => Promise<boolean>;
  readonly status: () => ProjectionStatus;
  readonly rebuild: (options: RebuildOptions) => Promise<RebuildReport>;
  readonly digest: () => Promise<Digest>;
  readonly retryParked: (stream: string) => Promise<boolean>;
  readonly close: () => Promise<void>;
};

const FIRST_BACKOFF_MS = 200;
const LONGEST_BACKOFF_MS = 30_000;

export const superviseView = (options: SupervisorOptions): Supervisor => {
  const { view, storage, host, timers, nowMs, hooks, maxWaiters } = options;
  const logger = options.logger.child({ view: view.name });
  const waiters = createWaiters(timers, maxWaiters);

  const kept = storage.current();
  let copy = kept ?? storage.next();
  /** A fresh copy is pointed at only when it has caught up and was checked: until then a restart begins anew. */
  let isFresh = kept === undefined;
  let progress = initialProgress(storage, copy);
  let state: ProjectionStatus['state'] = isFresh ? 'rebuilding' : 'live';
  let error: string | undefined;
  let running: RunningCopy | undefined;
  let rebuilding: { position: Position | undefined; events: number } | undefined;
  let backoffMs = FIRST_BACKOFF_MS;
  let cancelRestart: (() => void) | undefined;
  let closing = false;
  const connection = openReadConnection(storage.readable(copy));

  const lagSeconds = (): number =>
    progress.caughtUp || progress.recordedAt === undefined
      ? 0
      : Math.max(0, (nowMs() - Date.parse(progress.recordedAt)) / 1000);

  const onProgress =
    (of: string) =>
    (next: CopyProgress): void => {
      if (of !== copy) return;
      progress = next;
      backoffMs = FIRST_BACKOFF_MS;
      if (state !== 'rebuilding') state = 'live';
      error = undefined;
      waiters.applied(next.position);
      hooks.applied?.({
        view: view.name,
        events: next.batchEvents,
        batchMs: next.batchMs,
        lagSeconds: lagSeconds(),
      });
      if (isFresh && next.caughtUp) {
        isFresh = false;
        void adopt(of);
      }
    };

  /** A fresh copy has caught up: check it and make it the one that a restart goes on with. */
  const adopt = async (fresh: string): Promise<void> => {
    try {
      const { differences } = await host.verify(fresh);
      if (closing || fresh !== copy) return;
      if (differences.length > 0) throw new Error(`the rebuilt copy is wrong: ${differences.join('; ')}`);
      storage.point(fresh);
      if (state === 'rebuilding') state = 'live';
    } catch (problem) {
      if (closing) return;
      await running?.stop();
      fail(problem, 'stopped');
    }
  };

  const fail = (problem: unknown, as: 'failed' | 'stopped'): void => {
    state = as;
    error = problem instanceof Error ? problem.message : String(problem);
    progress = { ...progress, caughtUp: false };
    logger.error({ err: problem, position: progress.position }, `view ${view.name} ${as}`);
  };

  const start = (): void => {
    const current = host.follow(copy, onProgress(copy));
    running = current;
    current.done.catch((problem: unknown) => {
      if (closing || running !== current) return;
      running = undefined;
      onFailure(problem);
    });
  };

  const onFailure = (problem: unknown): void => {
    const name = (problem as Error | undefined)?.name;
    // Nothing would change by itself: a person corrects the code or rebuilds.
    if (name === 'PoisonEvent') return fail(problem, 'stopped');
    fail(problem, 'failed');
    cancelRestart = timers.after(backoffMs, () => {
      if (name === AheadOfLog.NAME) beginAnew();
      start();
    });
    backoffMs = Math.min(2 * backoffMs, LONGEST_BACKOFF_MS);
  };

  /** The log is not the one that this copy was built from any more (an older backup came back). */
  const beginAnew = (): void => {
    const old = copy;
    copy = storage.next();
    isFresh = true;
    state = 'rebuilding';
    progress = initialProgress(storage, copy);
    connection.switchTo(storage.readable(copy));
    storage.remove(old);
  };

  const rebuild = async (rebuildOptions: RebuildOptions): Promise<RebuildReport> => {
    if (rebuilding !== undefined) throw new Error(`a rebuild of ${view.name} is already running`);
    rebuilding = { position: undefined, events: 0 };
    try {
      return await rebuildCopy({
        ...(rebuildOptions.signal !== undefined && { signal: rebuildOptions.signal }),
        ...(rebuildOptions.force !== undefined && { force: rebuildOptions.force }),
        view,
        storage,
        host,
        live: copy,
        livePosition: () => progress.position,
        onCopyProgress: (of, next) => {
          if (rebuilding !== undefined) rebuilding = { position: next.position, events: next.events };
          rebuildOptions.onProgress?.(next.events);
          onProgress(of)(next);
        },
        stopLive: async () => {
          cancelRestart?.();
          const old = running;
          running = undefined;
          await old?.stop();
        },
        resumeLive: () => {
          if (!closing) start();
        },
        switchTo: (rebuilt, fresh, its) => {
          const old = copy;
          storage.point(fresh);
          connection.switchTo(storage.readable(fresh));
          copy = fresh;
          isFresh = false;
          running = rebuilt;
          state = 'live';
          rebuilt.done.catch((problem: unknown) => {
            if (closing || running !== rebuilt) return;
            running = undefined;
            onFailure(problem);
          });
          onProgress(fresh)(its);
          storage.remove(old);
        },
      });
    } finally {
      rebuilding = undefined;
    }
  };

  const digest = async (): Promise<Digest> => {
    const of = copy;
    try {
      return await host.digest(of);
    } catch (problem) {
      if (of === copy) throw problem;
      return host.digest(copy); // it was switched away and removed meanwhile
    }
  };

  start();
  return {
    connection,
    waitFor: waiters.wait,
    status: () => ({
      name: view.name,
      version: view.version,
      position: progress.position,
      caughtUp: progress.caughtUp,
      lagSeconds: lagSeconds(),
      parkedStreams: progress.parked.map(({ stream, position, error: text }) => ({
        stream,
        position,
        error: text,
      })),
      state: rebuilding !== undefined && state === 'live' ? 'rebuilding' : state,
      ...(rebuilding !== undefined && { rebuild: { ...rebuilding, target: progress.position } }),
      ...(error !== undefined && { error }),
    }),
    rebuild,
    digest,
    retryParked: async (stream) => (await running?.retryParked(stream)) ?? false,
    close: async () => {
      closing = true;
      cancelRestart?.();
      waiters.end();
      connection.close(); // before the writer, whose close as the last one then tidies the write-ahead log
      await running?.stop();
    },
  };
};

const initialProgress = (storage: Storage, copy: string): CopyProgress => {
  const db = storage.open(copy);
  try {
    return { ...readCheckpoint(db), parked: readParked(db), caughtUp: false, batchEvents: 0, batchMs: 0 };
  } finally {
    storage.close(copy, db);
  }
};
