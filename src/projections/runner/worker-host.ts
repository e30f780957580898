import type { Logger } from '../../app/ports.ts';
import { LongLog, type CheckReport, type RunningCopy } from './copy.ts';
import type { Digest } from './digest.ts';
import type { CopyHost, OnProgress } from './host.ts';
import type { StartTask, Threads, ThreadTask } from './threads.ts';
import type { WorkerConfig } from './worker-protocol.ts';

/** Events that are built in the thread of all views: about as much work as a thread of its own takes to start. */
const SHORT_LOG = 10_000;

/**
 * What follows the log shares one thread with all views, and so does what builds a first copy from a short log. Everything
 * else, which would take the turns of those that are live, runs on a thread of its own. What the threads log goes to `logger`.
 */
export const workerHost = (config: WorkerConfig, threads: Threads, logger: Logger): CopyHost => {
  const logging =
    (start: StartTask): StartTask =>
    (of, task, onMessage) =>
      start(of, task, (message) => {
        if (message.kind === 'log') logger[message.level](message.fields, message.message);
        else onMessage(message);
      });
  const alone = logging(threads.alone);
  const together = logging(threads.together);

  const follow = (copy: string, onProgress: OnProgress): RunningCopy => {
    const calls = new Map<number, { resolve: (applied: boolean) => void; reject: (error: Error) => void }>();
    let lastCall = 0;
    const thread = together(config, { kind: 'follow', copy }, (message) => {
      if (message.kind === 'progress') onProgress(message.progress);
      else if (message.kind === 'retried') calls.get(message.call)?.resolve(message.applied);
      else if (message.kind === 'retry-failed') calls.get(message.call)?.reject(new Error(message.message));
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
      hurry: thread.hurry,
      stop: thread.stop,
    };
  };

  return {
    follow,
    build: (copy, live, onProgress) => {
      let thread: ThreadTask | undefined;
      let stopped = false;
      const build = async (start: StartTask, most?: number): Promise<CheckReport> => {
        let report: CheckReport | undefined;
        const task = { kind: 'build', copy, live, ...(most !== undefined && { most }) } as const;
        thread = start(config, task, (message) => {
          if (message.kind === 'checked') report = message.report;
          else if (message.kind === 'progress') onProgress(message.progress);
        });
        await thread.done;
        if (report === undefined) throw new Error('the build was stopped');
        return report;
      };
      const buildSomewhere = async (): Promise<CheckReport> => {
        try {
          if (live === undefined) return await build(together, SHORT_LOG);
        } catch (error) {
          if ((error as Error).name !== LongLog.name || stopped) throw error;
        }
        return build(alone);
      };
      const checked = buildSomewhere();
      checked.catch(() => undefined); // whoever awaits it is told
      return {
        checked,
        stop: async () => {
          stopped = true;
          await thread?.stop();
          await checked.catch(() => undefined);
        },
      };
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
