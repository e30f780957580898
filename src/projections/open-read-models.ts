import type { Logger, Timers } from '../app/ports.ts';
import type { JsonObject } from '../domain/json.ts';
import type { LogReader } from './log-reader.ts';
import type { ReadModels } from './read-models.ts';
import { auditReader } from './audit/audit-reader.ts';
import { changeReader } from './resources/change-reader.ts';
import type { ListBounds } from './resources/list-reader.ts';
import { resourceReader } from './resources/resource-reader.ts';
import { inlineScans, workerScans, type Scans } from './resources/scans.ts';
import { inlineHost, type CopyHost } from './runner/host.ts';
import { fileStorage, memoryStorage, type Storage } from './runner/storage.ts';
import { superviseView, type Supervisor, type ViewHooks } from './runner/supervisor.ts';
import { createThreads, type OpenFeed, type Threads } from './runner/threads.ts';
import { workerHost } from './runner/worker-host.ts';
import { timelineReader } from './timeline/timeline-reader.ts';
import { usageReader } from './usage/usage-reader.ts';
import { createUsageScans, type UsageScans } from './usage/usage-scans.ts';
import type { View } from './view.ts';

export type ReadModelsOptions = {
  /** Folder of the files, created when absent. Undefined: in memory, which only inline views can be. */
  readonly dir: string | undefined;
  readonly views: readonly View[];
  readonly source: InlineSource | WorkerSource;
  /** What worker threads that read the log together are given. */
  readonly openFeed?: OpenFeed | undefined;
  readonly hooks?: ViewHooks;
  readonly logger?: Logger;
  /** Default: the process's own timers. */
  readonly timers?: Timers;
  /** Wall clock in milliseconds, for the lag. Default Date.now. */
  readonly nowMs?: () => number;
  /** Most callers of `waitFor` per view at one time. Default 10,000; those beyond are answered false at once. */
  readonly maxWaiters?: number;
  /** What lists do on the calling thread; all else is scanned elsewhere. Default: `LIST_BOUNDS`. */
  readonly listBounds?: ListBounds;
};

/** Applied on this thread from any log: for specs and the simulation. */
export type InlineSource = {
  readonly kind: 'inline';
  readonly reader: LogReader;
  /** `microtask` (default) depends on no real time; `event-loop` batches as the workers do. */
  readonly pace?: 'microtask' | 'event-loop';
};

/** Applied on worker threads (`runner/worker-host.ts`), each view with its own log reader and its own instance of the view. */
export type WorkerSource = {
  readonly kind: 'worker';
  readonly storeId: string;
  /** URL of a module that exports `openLogReader(config)`: projections know no adapters. */
  readonly readerModule: string;
  readonly readerConfig: JsonObject;
  /** URL of a module that exports `createViews(config)`; it must give the same views as `views`. */
  readonly viewsModule: string;
  readonly viewsConfig: JsonObject;
};

const silent: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silent,
};

const processTimers: Timers = {
  after: (ms, run) => {
    const handle = setTimeout(run, ms);
    return () => clearTimeout(handle);
  },
};

/**
 * Opens the read models of this instance and starts following the log. Returns at once: `status` and `waitFor` say
 * how far they are. A view without a usable file (none, another version, another log) is built from the log.
 */
export const openReadModels = async (options: ReadModelsOptions): Promise<ReadModels> => {
  const { dir, views, source } = options;
  if (dir === undefined && source.kind === 'worker')
    throw new TypeError('read models in worker threads need a folder for their files');
  const storeId = source.kind === 'inline' ? source.reader.storeId : source.storeId;
  const supervisors = new Map<string, Supervisor>();
  const threads = createThreads(options.openFeed);
  const find = (name: string): Supervisor => {
    const supervisor = supervisors.get(name);
    if (supervisor === undefined) throw new Error(`unknown view ${name}`);
    return supervisor;
  };
  const closeAll = async (): Promise<void> => {
    await Promise.all([...supervisors.values()].map((supervisor) => supervisor.close()));
    await threads.close();
  };

  try {
    for (const view of views) {
      const storage = dir === undefined ? memoryStorage(view, storeId) : fileStorage(dir, view, storeId);
      supervisors.set(
        view.name,
        superviseView({
          view,
          storage,
          host: hostOf(view, storage, options, threads),
          timers: options.timers ?? processTimers,
          nowMs: options.nowMs ?? Date.now,
          hooks: options.hooks ?? {},
          logger: options.logger ?? silent,
          maxWaiters: options.maxWaiters ?? 10_000,
        }),
      );
    }
  } catch (error) {
    await closeAll();
    throw error;
  }

  let scans: Scans | undefined;
  const resources = once(() => {
    const { connection } = find('resources');
    scans = source.kind === 'inline' ? inlineScans(connection.source) : workerScans(connection.source);
    return resourceReader(connection, scans, options.listBounds);
  });
  const changes = once(() => changeReader(find('resources').connection));
  const audit = once(() => auditReader(find('audit').connection));
  let usageScans: UsageScans | undefined;
  const usage = once(() => {
    const { connection } = find('usage');
    usageScans = createUsageScans(connection.source);
    return usageReader(connection, usageScans);
  });
  const timeline = once(() => timelineReader(find('timeline').connection));
  return {
    get resources() {
      return resources();
    },
    get changes() {
      return changes();
    },
    get audit() {
      return supervisors.has('audit') ? audit() : undefined;
    },
    get timeline() {
      return timeline();
    },
    get usage() {
      return supervisors.has('usage') ? usage() : undefined;
    },
    waitFor: (view, position, { timeoutMs, signal }) => find(view).waitFor(position, timeoutMs, signal),
    status: () => [...supervisors.values()].map((supervisor) => supervisor.status()),
    rebuild: (view, rebuildOptions = {}) => find(view).rebuild(rebuildOptions),
    digest: (view) => find(view).digest(),
    retryParked: (view, stream) => find(view).retryParked(stream),
    close: async () => {
      await scans?.close();
      await usageScans?.close();
      await closeAll();
    },
  };
};

const hostOf = (
  view: View,
  storage: Storage,
  { dir, source, logger = silent }: ReadModelsOptions,
  threads: Threads,
): CopyHost =>
  source.kind === 'inline'
    ? inlineHost(view, storage, source.reader, source.pace ?? 'microtask')
    : workerHost({ ...source, dir: dir ?? '', view: view.name }, threads, logger.child({ view: view.name }));

/** Specs open single views: the reader of another one is missed only when it is asked for. */
const once = <Value>(make: () => Value): (() => Value) => {
  let value: Value | undefined;
  return () => (value ??= make());
};
