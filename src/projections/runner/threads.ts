import { Worker } from 'node:worker_threads';
import { LogDamaged, type Position } from '../../app/log/event-store.ts';
import type { ThreadFeed } from '../log-reader.ts';
import type { FromWorker, ToWorker, WorkerConfig, WorkerTask } from './worker-protocol.ts';

/** A failure in a worker thread; `name` is that of the original error, so that it can be told apart. */
class WorkerFailure extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

const failureOf = ({ name, message, damaged }: Extract<FromWorker, { kind: 'failed' }>): Error =>
  damaged === undefined ? new WorkerFailure(name, message) : new LogDamaged(message, damaged.at);

/** The same module beside this one, whether it runs from TypeScript or was compiled. */
const WORKER_MODULE = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/** A task that does not come to its end within this many milliseconds is ended with its thread. */
const STOP_MS = 10_000;

/**
 * Bound of the young generation, MB (`npm run bench -- rebuild` is no slower with it). By default it may grow to 48 MB in each thread, which is
 * memory that is given up for nothing: what a batch makes dies with it.
 */
const YOUNG_MB = 12;
/** The same of a thread that builds a copy and ends: with 12 MB it takes a tenth more processor time. */
const YOUNG_ALONE_MB = 36;

/** Work on one copy of a view, in a thread. */
export type ThreadTask = {
  /** Resolves when the task ended as it should, rejects with what ended it otherwise. */
  readonly done: Promise<void>;
  readonly retry: (call: number, stream: string) => void;
  readonly hurry: (position: Position) => void;
  readonly stop: () => Promise<void>;
};

export type StartTask = (
  config: WorkerConfig,
  task: WorkerTask,
  onMessage: (message: FromWorker) => void,
) => ThreadTask;

/** Threads of the projections of one service. */
export type Threads = {
  /** In a thread of its own. */
  readonly alone: StartTask;
  /** In the one thread of all views: a thread costs some 40 MB and half a second of a start. It stays until `close`. */
  readonly together: StartTask;
  readonly close: () => Promise<void>;
};

export type OpenFeed = (hosts: boolean) => ThreadFeed;

/** `openFeed`: what each thread is given to read the log with; the one for several views hosts it. */
export const createThreads = (openFeed?: OpenFeed): Threads => {
  let shared: Thread | undefined;
  return {
    alone: (config, task, onMessage) =>
      startThread(`${task.kind} ${config.view}`, 'once', openFeed?.(false)).start(config, task, onMessage),
    together: (config, task, onMessage) => {
      if (shared?.isOpen() !== true) shared = startThread('views', 'stays', openFeed?.(true));
      return shared.start(config, task, onMessage);
    },
    close: async () => shared?.close(),
  };
};

type Thread = {
  readonly start: StartTask;
  /** False once it was closed, or it broke. */
  readonly isOpen: () => boolean;
  readonly close: () => Promise<void>;
};

type Open = {
  readonly onMessage: (message: FromWorker) => void;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** `once`: it ends with its last task. */
const startThread = (name: string, life: 'once' | 'stays', feed: ThreadFeed | undefined): Thread => {
  const worker = new Worker(WORKER_MODULE, {
    name,
    ...(feed && { workerData: feed, transferList: [feed.port] }),
    resourceLimits: { maxYoungGenerationSizeMb: life === 'once' ? YOUNG_ALONE_MB : YOUNG_MB },
  });
  const tasks = new Map<number, Open>();
  const exited = Promise.withResolvers<void>();
  let lastTask = 0;
  let open = true;
  let failure: Error | undefined;

  const post = (message: ToWorker): void => worker.postMessage(message);
  const close = (): Promise<void> => {
    if (open) post({ kind: 'close' });
    open = false;
    return exited.promise;
  };
  const settle = (id: number): Open | undefined => {
    const task = tasks.get(id);
    tasks.delete(id);
    if (tasks.size === 0 && life === 'once') void close();
    return task;
  };
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'ended') {
      const task = settle(message.task);
      // Nothing of the last one is left when its end is told.
      if (open) task?.resolve();
      else void exited.promise.then(() => task?.resolve());
    } else if (message.kind === 'failed') {
      settle(message.task)?.reject(failureOf(message));
    } else tasks.get(message.task)?.onMessage(message);
  });
  worker.on('error', (error) => {
    failure ??= error instanceof Error ? error : new Error(String(error));
  });
  worker.once('exit', (code) => {
    open = false;
    exited.resolve();
    for (const { reject } of tasks.values())
      reject(failure ?? new Error(`the worker thread ${name} exited with code ${code}`));
    tasks.clear();
  });

  return {
    isOpen: () => open,
    close,
    start: (config, task, onMessage) => {
      lastTask += 1;
      const id = lastTask;
      const done = new Promise<void>((resolve, reject) => tasks.set(id, { onMessage, resolve, reject }));
      done.catch(() => undefined); // whoever holds it is told
      post({ kind: 'start', task: id, config, work: task });
      return {
        done,
        retry: (call, stream) => post({ kind: 'retry', task: id, call, stream }),
        hurry: (position) => post({ kind: 'hurry', task: id, position }),
        stop: async () => {
          const terminate = setTimeout(() => {
            // Others in the thread fail with it, and are begun again elsewhere.
            tasks.get(id)?.resolve();
            tasks.delete(id);
            open = false;
            void worker.terminate();
          }, STOP_MS);
          post({ kind: 'stop', task: id });
          await done.catch(() => undefined);
          clearTimeout(terminate);
        },
      };
    },
  };
};
