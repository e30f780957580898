import type { Logger } from '../../app/ports.ts';
import type { CheckReport, RunningCopy } from './copy.ts';
import type { Digest } from './digest.ts';
import type { CopyHost, OnProgress } from './host.ts';
import type { StartTask, Threads } from './threads.ts';
import type { FromWorker, WorkerConfig, WorkerTask } from './worker-protocol.ts';

/**
 * Each task runs on a worker thread of its own. `together`: what follows the log, and what builds the first copy and then
 * follows, shares a thread with others of that kind. What the threads log goes to `logger`.
 */
export const workerHost = (
  config: WorkerConfig,
  threads: Threads,
  { together, logger }: { readonly together: boolean; readonly logger: Logger },
): CopyHost => {
  const logging =
    (start: StartTask): StartTask =>
    (of, task, onMessage) =>
      start(of, task, (message) => {
        if (message.kind === 'log') logger[message.level](message.fields, message.message);
        else onMessage(message);
      });
  const alone = logging(threads.alone);
  const following = together ? logging(threads.together) : alone;

  const running = (
    start: StartTask,
    task: WorkerTask,
    onMessage: (message: FromWorker) => void,
  ): RunningCopy => {
    const calls = new Map<number, { resolve: (applied: boolean) => void; reject: (error: Error) => void }>();
    let lastCall = 0;
    const thread = start(config, task, (message) => {
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
        thread.retry(call, stream);
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
    follow: (copy, onProgress) => running(following, { kind: 'follow', copy }, forward(onProgress)),
    rebuild: (copy, live, onProgress) => {
      const checked = Promise.withResolvers<CheckReport>();
      // Beside a live copy it must not take that one's turns.
      const start = live === undefined ? following : alone;
      const rebuilding = running(start, { kind: 'rebuild', copy, live }, (message) => {
        if (message.kind === 'checked') checked.resolve(message.report);
        else forward(onProgress)(message);
      });
      rebuilding.done.then(() => checked.reject(new Error('the rebuild was stopped')), checked.reject);
      checked.promise.catch(() => undefined); // whoever awaits it is told
      return { ...rebuilding, checked: checked.promise };
    },
    digest: async (copy) => {
      let digest: Digest | undefined;
      const thread = alone(config, { kind: 'digest', copy }, (message) => {
        if (message.kind === 'digest') digest ??= message.digest;
      });
      await thread.done;
      if (digest === undefined) throw new Error('the worker ended without an answer to digest');
      return digest;
    },
  };
};

const forward =
  (onProgress: OnProgress) =>
  (message: FromWorker): void => {
    if (message.kind === 'progress') onProgress(message.progress);
  };
