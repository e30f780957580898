import { type Position, LogDamaged, LogReplaced } from '../../app/log/event-store.ts';
import type { Timers, Logger } from '../../app/ports.ts';
import type { ProjectionStatus, RebuildReport } from '../read-models.ts';
import type { View } from '../view.ts';
import type { CopyProgress, RunningCopy } from './copy.ts';
import type { Digest } from './digest.ts';
import type { CopyHost } from './host.ts';
import { openReadConnection, type ReadConnection } from './read-connection.ts';
import { rebuildCopy, type RebuildOptions } from './rebuild.ts';
import type { Storage } from './storage.ts';
import { readCheckpoint, readParked } from './view-file.ts';

/** Those who wait until a view has applied a position. */
type Waiters = {
  /** False past `timeoutMs` (milliseconds), on the signal, after `end`, or at once when too many wait already. */
  readonly wait: (position: Position, timeoutMs: number, signal?: AbortSignal) => Promise<boolean>;
  /** The lowest position that somebody waits for. */
  readonly next: () => Position | undefined;
  readonly applied: (position: Position | undefined) => void;
  /** Nothing is applied any more: it begins again. */
  readonly restart: () => void;
  readonly end: () => void;
};

type Waiter = {
  readonly position: Position;
  readonly settle: (reached: boolean) => void;
};

export const createWaiters = (timers: Timers, most: number): Waiters => {
  // Ordered by position: what has been appended last waits last, so nearly every insertion is at the end.
  const waiting: Waiter[] = [];
  let reached: Position | undefined;
  let ended = false;

  const isReached = (position: Position): boolean => reached !== undefined && position <= reached;
  const enqueue = (waiter: Waiter): void => {
    let at = waiting.length;
    while (at > 0 && (waiting[at - 1] as Waiter).position > waiter.position) at -= 1;
    waiting.splice(at, 0, waiter);
  };
  const forget = (waiter: Waiter): void => {
    const at = waiting.indexOf(waiter);
    if (at >= 0) waiting.splice(at, 1);
  };

  return {
    wait: (position, timeoutMs, signal) => {
      if (isReached(position)) return Promise.resolve(true);
      if (ended || timeoutMs <= 0 || signal?.aborted === true || waiting.length >= most)
        return Promise.resolve(false);
      return new Promise((resolve) => {
        const settle = (result: boolean): void => {
          cancel();
          signal?.removeEventListener('abort', giveUp);
          resolve(result);
        };
        const waiter: Waiter = { position, settle };
        const giveUp = (): void => {
          forget(waiter);
          settle(false);
        };
        const cancel = timers.after(timeoutMs, giveUp);
        signal?.addEventListener('abort', giveUp, { once: true });
        enqueue(waiter);
      });
    },
    next: () => waiting[0]?.position,
    applied: (position) => {
      if (position === undefined || (reached !== undefined && position <= reached)) return;
      reached = position;
      let count = 0;
      while (count < waiting.length && isReached((waiting[count] as Waiter).position)) count += 1;
      for (const waiter of waiting.splice(0, count)) waiter.settle(true);
    },
    restart: () => {
      reached = undefined;
    },
    end: () => {
      ended = true;
      for (const waiter of waiting.splice(0)) waiter.settle(false);
    },
  };
};

/** Called after each committed batch; for metrics. */
export type ViewHooks = {
  readonly applied?: (batch: {
    readonly view: string;
    readonly events: number;
    readonly batchMs: number;
    readonly lagSeconds: number;
  }) => void;
};

type SupervisorOptions = {
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
  const blank = storage.blank();

  /** The copy that is read; undefined until the first one was built and checked. */
  let copy = storage.current();
  let progress = copy === undefined ? NOTHING_APPLIED : progressOf(storage, copy);
  let state: ProjectionStatus['state'] = copy === undefined ? 'rebuilding' : 'live';
  let error: string | undefined;
  let damaged: Pick<LogDamaged, 'at'> | undefined;
  let running: RunningCopy | undefined;
  /** For which position the one that runs was told last that somebody waits. */
  let hurried: Position | undefined;
  let rebuilding: { latest: CopyProgress } | undefined;
  /** The last rebuild, the removal of what it replaced included. */
  let rebuilt: Promise<unknown> = Promise.resolve();
  let backoffMs = FIRST_BACKOFF_MS;
  let cancelRestart = (): void => {};
  const closing = new AbortController();
  const connection = openReadConnection(copy === undefined ? blank : storage.readable(copy));

  const lagSeconds = (): number => {
    const { recordedAt } = copy === undefined ? (rebuilding?.latest ?? progress) : progress;
    if (progress.caughtUp || recordedAt === undefined) return 0;
    return Math.max(0, (nowMs() - Date.parse(recordedAt)) / 1000);
  };

  const onProgress = (of: string, next: CopyProgress): void => {
    if (of !== copy) return;
    progress = next;
    backoffMs = FIRST_BACKOFF_MS;
    state = 'live';
    error = undefined;
    damaged = undefined;
    connection.changed(next.categories);
    waiters.applied(next.position);
    hurry();
    hooks.applied?.({
      view: view.name,
      events: next.batchEvents,
      batchMs: next.batchMs,
      lagSeconds: lagSeconds(),
    });
  };

  /** Views that have urgent events commit at once what somebody may wait for. */
  const hurry = (): void => {
    const next = view.isUrgent === false ? waiters.next() : undefined;
    if (next === undefined || next === hurried) return;
    hurried = next;
    running?.hurry(next);
  };

  const fail = (problem: unknown, as: 'failed' | 'stopped'): void => {
    state = as;
    error = problem instanceof Error ? problem.message : String(problem);
    damaged = problem instanceof LogDamaged ? { at: problem.at } : undefined;
    progress = { ...progress, caughtUp: false };
    logger.error({ err: problem, position: progress.position }, `view ${view.name} ${as}`);
  };

  /** Takes on a copy that is being followed; its end is ours to deal with. */
  const adopt = (adopted: RunningCopy): void => {
    running = adopted;
    hurried = undefined;
    adopted.done.catch((problem: unknown) => {
      if (closing.signal.aborted || running !== adopted) return;
      running = undefined;
      onFailure(problem);
    });
  };

  const onFailure = (problem: unknown): void => {
    const name = (problem as Error | undefined)?.name;
    // Nothing would change by itself: a person corrects the code, then starts again or rebuilds.
    if (name === 'PoisonEvent' || name === WrongCopy.NAME) return fail(problem, 'stopped');
    if (name === LogReplaced.name) {
      logger.warn({ reason: (problem as Error).message }, 'log replaced: rebuilding the view');
      forgetCopy();
    } else fail(problem, 'failed');
    cancelRestart = timers.after(backoffMs, start);
    backoffMs = Math.min(2 * backoffMs, LONGEST_BACKOFF_MS);
  };

  const forgetCopy = (): void => {
    const old = copy;
    copy = undefined;
    progress = NOTHING_APPLIED;
    state = 'rebuilding';
    waiters.restart();
    connection.switchTo(blank);
    if (old !== undefined) void discard(old);
  };

  /** What cannot be removed now is a leftover, which the next start removes. */
  const discard = async (old: string): Promise<void> => {
    try {
      await storage.remove(old);
    } catch (problem) {
      logger.warn({ err: problem, copy: old }, 'old copy of a view not removed');
    }
  };

  const start = (): void => {
    const current = copy;
    if (current !== undefined) {
      adopt(host.follow(current, (next) => onProgress(current, next)));
      return;
    }
    state = 'rebuilding';
    build({}).then(
      ({ outcome, differences }) => {
        if (outcome === 'differs') onFailure(new WrongCopy(view.name, differences));
      },
      (problem: unknown) => {
        if (!closing.signal.aborted) onFailure(problem);
      },
    );
  };

  const build = (rebuildOptions: RebuildOptions): Promise<RebuildReport> => {
    if (rebuilding !== undefined)
      return Promise.reject(new Error(`a rebuild of ${view.name} is already running`));
    const { signal, force, onProgress: tell } = rebuildOptions;
    const ours = { latest: NOTHING_APPLIED };
    rebuilding = ours;
    const end = (): void => {
      if (rebuilding === ours) rebuilding = undefined;
    };
    const report = rebuildCopy({
      signal: signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]),
      ...(force !== undefined && { force }),
      view,
      storage,
      host,
      live: copy,
      livePosition: () => progress.position,
      onCopyProgress: (of, next) => {
        if (rebuilding === ours) {
          ours.latest = next;
          tell?.(next.events);
        }
        onProgress(of, next);
      },
      stopLive: async () => {
        cancelRestart();
        const old = running;
        running = undefined;
        await old?.stop();
      },
      resumeLive: () => {
        if (copy !== undefined) start();
      },
      switchTo: async (fresh, following, its) => {
        const old = copy;
        storage.point(fresh);
        connection.switchTo(storage.readable(fresh));
        copy = fresh;
        adopt(following);
        end(); // before anybody who waits is told: the next rebuild may come at once
        onProgress(fresh, its);
        if (old !== undefined) await discard(old);
      },
    }).finally(end);
    rebuilt = report.catch(() => undefined);
    return report;
  };

  const waitFor: Supervisor['waitFor'] = (position, timeoutMs, signal) => {
    const reached = waiters.wait(position, timeoutMs, signal);
    hurry();
    return reached;
  };

  const rebuild = async (rebuildOptions: RebuildOptions): Promise<RebuildReport> => {
    if (copy !== undefined || rebuilding !== undefined) return build(rebuildOptions);
    cancelRestart(); // the first copy could not be built so far: this is another try, and not the last one
    try {
      return await build(rebuildOptions);
    } finally {
      if (copy === undefined && !closing.signal.aborted) cancelRestart = timers.after(backoffMs, start);
    }
  };

  const digest = async (): Promise<Digest> => {
    const of = copy;
    if (of === undefined) throw new Error(`view ${view.name} is not built yet`);
    try {
      return await host.digest(of);
    } catch (problem) {
      if (of === copy || copy === undefined) throw problem;
      return host.digest(copy); // it was switched away and removed meanwhile
    }
  };

  const close = async (): Promise<void> => {
    closing.abort();
    cancelRestart();
    waiters.end();
    await rebuilt;
    connection.close(); // before the writer, whose close as the last one then tidies the write-ahead log
    await running?.stop();
    blank.close();
  };
  let closed: Promise<void> | undefined;

  start();
  return {
    connection,
    waitFor,
    status: () => ({
      name: view.name,
      version: view.version,
      position: progress.position,
      caughtUp: progress.caughtUp,
      lagSeconds: lagSeconds(),
      parkedStreams: progress.parked.map(({ stream, revision, position, error: text }) => ({
        stream,
        revision,
        position,
        error: text,
      })),
      state: rebuilding !== undefined && state === 'live' ? 'rebuilding' : state,
      ...(rebuilding !== undefined && {
        rebuild: {
          position: rebuilding.latest.position,
          target: rebuilding.latest.target ?? progress.position,
          events: rebuilding.latest.events,
        },
      }),
      ...(error !== undefined && { error }),
      ...(damaged !== undefined && { damaged }),
    }),
    rebuild,
    digest,
    retryParked: async (stream) => (await running?.retryParked(stream)) ?? false,
    close: () => (closed ??= close()),
  };
};

/** A first copy that does not agree with the log: a bug in the view, so trying again would not help. */
class WrongCopy extends Error {
  static readonly NAME = 'WrongCopy';
  override readonly name = WrongCopy.NAME;
  constructor(view: string, differences: readonly string[]) {
    super(`the copy of ${view} that was built does not agree with the log: ${differences.join('; ')}`);
  }
}

const NOTHING_APPLIED: CopyProgress = {
  position: undefined,
  recordedAt: undefined,
  events: 0,
  caughtUp: false,
  batchEvents: 0,
  batchMs: 0,
  parked: [],
};

const progressOf = (storage: Storage, copy: string): CopyProgress => {
  const db = storage.open(copy);
  try {
    return { ...NOTHING_APPLIED, ...readCheckpoint(db), parked: readParked(db) };
  } finally {
    storage.close(copy, db);
  }
};
