import { Worker } from 'node:worker_threads';
import type { CheckReport, RunningCopy } from './copy.ts';
import type { Digest } from './digest.ts';
import type { CopyHost, OnProgress } from './host.ts';
import type { FromWorker, ToWorker, WorkerConfig, WorkerTask } from './worker-protocol.ts';

/** A failure in a worker thread; `name` is that of the original error, so that it can be told apart. */
class WorkerFailure extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

/** The same module beside this one, whether it runs from TypeScript or was compiled. */
const WORKER_MODULE = new URL(
  import.meta.url.endsWith('.ts') ? '../worker.ts' : '../worker.js',
  import.meta.url,
);

/** A thread that does not come to its end within this many milliseconds is terminated. */
const STOP_MS = 10_000;

/**
 * Bound of the young generation, MB (`npm run bench -- rebuild` is no slower with it). By default it may grow to 48 MB in each thread, which is
 * memory that is given up for nothing: what a batch makes dies with it.
 */
const YOUNG_MB = 12;

/** Each task runs on a worker thread of its own. */
export const workerHost = (config: WorkerConfig): CopyHost => {
  const start = (task: WorkerTask, onMessage: (message: FromWorker) => void): Thread =>
    startThread(config, task, onMessage);

  const running = (task: WorkerTask, onMessage: (message: FromWorker) => void): RunningCopy => {
    const calls = new Map<number, { resolve: (applied: boolean) => void; reject: (error: Error) => void }>();
    let lastCall = 0;
    const thread = start(task, (message) => {
      if (message.kind === 'retried') calls.get(message.call)?.resolve(message.applied);
      else if (message.kind === 'retry-failed') calls.get(message.call)?.reject(new Error(message.message));
      else onMessage(message);
    });
    return {
      done: thread.done,
      retryParked: async (stream) => {
        lastCall += 1;
        const call = lastCall;
        const answered = new Promise<boolean>((resolve, reject) => calls.set(call, { resolve, reject }));
        thread.post({ kind: 'retry', call, stream });
        try {
          return await Promise.race([answered, thread.done.then(() => false)]);
        } finally {
          calls.delete(call);
        }
      },
      stop: thread.stop,
    };
  };

  return {
    follow: (copy, onProgress) => running({ kind: 'follow', copy }, forward(onProgress)),
    rebuild: (copy, live, onProgress) => {
      const checked = Promise.withResolvers<CheckReport>();
      const rebuilding = running({ kind: 'rebuild', copy, live }, (message) => {
        if (message.kind === 'checked') checked.resolve(message.report);
        else forward(onProgress)(message);
      });
      rebuilding.done.then(() => checked.reject(new Error('the rebuild was stopped')), checked.reject);
      checked.promise.catch(() => undefined); // whoever awaits it is told
      return { ...rebuilding, checked: checked.promise };
    },
    digest: (copy) =>
      ask<Digest>({ kind: 'digest', copy }, start, (message) =>
        message.kind === 'digest' ? message.digest : undefined,
      ),
  };
};

const forward =
  (onProgress: OnProgress) =>
  (message: FromWorker): void => {
    if (message.kind === 'progress') onProgress(message.progress);
  };

const ask = async <Answer>(
  task: WorkerTask,
  start: (task: WorkerTask, onMessage: (message: FromWorker) => void) => Thread,
  pick: (message: FromWorker) => Answer | undefined,
): Promise<Answer> => {
  let answer: Answer | undefined;
  const thread = start(task, (message) => {
    answer ??= pick(message);
  });
  await thread.done;
  if (answer === undefined) throw new Error(`the worker ended without an answer to ${task.kind}`);
  return answer;
};

type Thread = {
  /** Resolves when the thread ended as it should, rejects with what ended it otherwise. */
  readonly done: Promise<void>;
  readonly post: (message: ToWorker) => void;
  readonly stop: () => Promise<void>;
};

const startThread = (
  config: WorkerConfig,
  task: WorkerTask,
  onMessage: (message: FromWorker) => void,
): Thread => {
  const worker = new Worker(WORKER_MODULE, {
    workerData: { config, task },
    name: `${task.kind} ${config.view}`,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  let ended = false;
  let failure: Error | undefined;
  worker.on('message', (message: FromWorker) => {
    if (message.kind === 'ended') ended = true;
    else if (message.kind === 'failed') failure = new WorkerFailure(message.name, message.message);
    else onMessage(message);
  });
  worker.on('error', (error) => {
    failure ??= error instanceof Error ? error : new Error(String(error));
  });
  const done = new Promise<void>((resolve, reject) => {
    worker.once('exit', (code) => {
      if (failure !== undefined) reject(failure);
      else if (ended) resolve();
      else reject(new Error(`the worker thread for ${config.view} exited with code ${code}`));
    });
  });
  done.catch(() => undefined); // whoever holds it is told

  return {
    done,
    post: (message) => worker.postMessage(message),
    stop: async () => {
      const terminate = setTimeout(() => {
        ended = true;
        void worker.terminate();
      }, STOP_MS);
      worker.postMessage({ kind: 'stop' } satisfies ToWorker);
      await done.catch(() => undefined);
      clearTimeout(terminate);
    },
  };
};
