import { parentPort, workerData } from 'node:worker_threads';
import { LogDamaged } from '../app/log/event-store.ts';
import type { Logger } from '../app/ports.ts';
import type { OpenLogReader, ThreadFeed } from './log-reader.ts';
import { buildAndCheck, followInto, type CopyContext, type RunningCopy } from './runner/copy.ts';
import { digestOfCopy } from './runner/host.ts';
import { fileStorage } from './runner/storage.ts';
import type { FromWorker, ToWorker, WorkerConfig, WorkerTask } from './runner/worker-protocol.ts';
import type { View } from './view.ts';

/** Entry of a projection thread: tasks on views, each with a log reader of its own, until it is closed. */
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');

const feed = (workerData ?? undefined) as ThreadFeed | undefined;

type Tell = (message: WithoutTask) => void;
type WithoutTask = FromWorker extends infer Message
  ? Message extends FromWorker
    ? Omit<Message, 'task'>
    : never
  : never;

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** Lines go to the service's own thread, which has the log. */
const loggerOf = (tell: Tell, bound: object = {}): Logger => {
  const levels = LEVELS.map((level) => [
    level,
    (fields: object, message: string) =>
      tell({ kind: 'log', level, fields: plain({ ...bound, ...fields }), message }),
  ]);
  return {
    ...(Object.fromEntries(levels) as Omit<Logger, 'child'>),
    child: (fields) => loggerOf(tell, { ...bound, ...fields }),
  };
};

/** What can cross to another thread: an error as the log shows it, and nothing that is a function. */
const plain = (fields: object): object =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]: [string, unknown]) => {
      if (!(value instanceof Error)) return [name, typeof value === 'function' ? String(value) : value];
      const { name: type, message, stack } = value;
      return [name, { type, message, stack }];
    }),
  );

const openContext = async (config: WorkerConfig, tell: Tell): Promise<CopyContext> => {
  const { createViews } = (await import(config.viewsModule)) as {
    createViews: (config: unknown) => readonly View[];
  };
  const view = createViews(config.viewsConfig).find(({ name }) => name === config.view);
  if (view === undefined) throw new Error(`${config.viewsModule} has no view called ${config.view}`);
  const { openLogReader } = (await import(config.readerModule)) as { openLogReader: OpenLogReader };
  const reader = await openLogReader(config.readerConfig, loggerOf(tell), feed);
  const storage = fileStorage(config.dir, view, config.storeId);
  return {
    view,
    storage,
    reader,
    pace: 'event-loop',
    onProgress: (progress) => tell({ kind: 'progress', progress }),
  };
};

/** What a task obeys once it runs; what is asked of it before waits. */
type Task = {
  readonly running: Promise<RunningTask | undefined>;
  readonly begun: (task: RunningTask) => void;
};
type RunningTask = Pick<RunningCopy, 'stop'> & Partial<RunningCopy>;

const tasks = new Map<number, Task>();

const perform = async (
  work: WorkerTask,
  context: CopyContext,
  begun: Task['begun'],
  tell: Tell,
): Promise<void> => {
  switch (work.kind) {
    case 'digest':
      tell({ kind: 'digest', digest: digestOfCopy(work.copy, context.storage, context.view) });
      return;
    case 'follow': {
      const running = followInto(work.copy, context);
      begun(running);
      return running.done;
    }
    case 'build': {
      const { copy, live, most } = work;
      const controller = new AbortController();
      begun({ stop: async () => controller.abort() });
      const bounded = most === undefined ? context : { ...context, most };
      const report = await buildAndCheck(copy, live, bounded, controller.signal);
      tell({ kind: 'checked', report });
      return;
    }
  }
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const start = async (id: number, config: WorkerConfig, work: WorkerTask): Promise<void> => {
  const tell: Tell = (message) => port.postMessage({ ...message, task: id });
  const { promise: running, resolve } = Promise.withResolvers<RunningTask | undefined>();
  tasks.set(id, { running, begun: resolve });
  let end: WithoutTask = { kind: 'ended' };
  try {
    const context = await openContext(config, tell);
    try {
      await perform(work, context, resolve, tell);
    } finally {
      await context.reader.close();
    }
  } catch (error) {
    const damaged = error instanceof LogDamaged ? { damaged: { at: error.at } } : {};
    end = { kind: 'failed', name: (error as Error).name, message: textOf(error), ...damaged };
  }
  resolve(undefined);
  tasks.delete(id);
  tell(end);
};

const retry = async (id: number, call: number, stream: string): Promise<void> => {
  const tell: Tell = (message) => port.postMessage({ ...message, task: id });
  try {
    const copy = await tasks.get(id)?.running;
    tell({ kind: 'retried', call, applied: (await copy?.retryParked?.(stream)) ?? false });
  } catch (error) {
    tell({ kind: 'retry-failed', call, message: textOf(error) });
  }
};

port.on('message', (message: ToWorker) => {
  switch (message.kind) {
    case 'start':
      void start(message.task, message.config, message.work);
      return;
    case 'stop':
      void tasks.get(message.task)?.running.then((copy) => copy?.stop());
      return;
    case 'retry':
      void retry(message.task, message.call, message.stream);
      return;
    case 'hurry':
      void tasks.get(message.task)?.running.then((copy) => copy?.hurry?.(message.position));
      return;
    case 'close':
      port.close();
      feed?.port.close();
      return;
  }
});
