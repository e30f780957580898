import { parentPort, workerData } from 'node:worker_threads';
import type { OpenLogReader } from './log-reader.ts';
import { followInto, type CopyContext, type RunningCopy } from './runner/copy.ts';
import { digestOfCopy, rebuildInto } from './runner/host.ts';
import { fileStorage } from './runner/storage.ts';
import type { FromWorker, ToWorker, WorkerConfig, WorkerTask } from './runner/worker-protocol.ts';
import type { View } from './view.ts';

/** Entry of a projection's worker thread: one view, one task, a log reader of its own. */
const { config, task } = workerData as { config: WorkerConfig; task: WorkerTask };
const port = parentPort;
if (port === null) throw new Error('this module runs in a worker thread only');

const tell = (message: FromWorker): void => port.postMessage(message);

const openContext = async (): Promise<CopyContext> => {
  const { createViews } = (await import(config.viewsModule)) as {
    createViews: (config: unknown) => readonly View[];
  };
  const view = createViews(config.viewsConfig).find(({ name }) => name === config.view);
  if (view === undefined) throw new Error(`${config.viewsModule} has no view called ${config.view}`);
  const { openLogReader } = (await import(config.readerModule)) as { openLogReader: OpenLogReader };
  const reader = await openLogReader(config.readerConfig);
  const storage = fileStorage(config.dir, view, config.storeId);
  return {
    view,
    storage,
    reader,
    pace: 'event-loop',
    onProgress: (progress) => tell({ kind: 'progress', progress }),
  };
};

const obey = (running: RunningCopy): void => {
  port.on('message', (message: ToWorker) => {
    if (message.kind === 'stop') {
      void running.stop();
      return;
    }
    running.retryParked(message.stream).then(
      (applied) => tell({ kind: 'retried', call: message.call, applied }),
      (error: unknown) => tell({ kind: 'retry-failed', call: message.call, message: textOf(error) }),
    );
  });
};

const perform = async (context: CopyContext): Promise<void> => {
  switch (task.kind) {
    case 'digest':
      tell({ kind: 'digest', digest: digestOfCopy(task.copy, context.storage, context.view) });
      return;
    case 'follow': {
      const running = followInto(task.copy, context);
      obey(running);
      return running.done;
    }
    case 'rebuild': {
      const running = rebuildInto(task.copy, task.live, context);
      obey(running);
      running.done.catch(() => undefined); // awaited below; `checked` may fail first
      tell({ kind: 'checked', report: await running.checked });
      return running.done;
    }
  }
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

try {
  const context = await openContext();
  try {
    await perform(context);
    tell({ kind: 'ended' });
  } finally {
    await context.reader.close();
  }
} catch (error) {
  tell({ kind: 'failed', name: (error as Error).name, message: textOf(error) });
} finally {
  port.close();
}
