import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Report, Task } from './worker.ts';

/**
 * Worker threads that simulate. Every simulation is alone in its thread while it runs, so that two of them never share
 * what a process has only once.
 */
export type Pool = {
  /** Runs the tasks, begun in their order. `done` may end it early by returning true. */
  run(tasks: Iterable<Task>, done: (report: Report) => boolean): Promise<void>;
  close(): Promise<void>;
};

/** `threads`: default one per processor, at most 4. */
export const openPool = (threads = Math.min(4, availableParallelism())): Pool => {
  const workers = Array.from({ length: threads }, () => new Worker(new URL('./worker.ts', import.meta.url)));
  return {
    run: async (tasks, done) => {
      const queue = tasks[Symbol.iterator]();
      let over = false;
      const work = async (worker: Worker): Promise<void> => {
        for (let next = queue.next(); !over && next.done !== true; next = queue.next()) {
          const report = await ask(worker, next.value);
          over ||= done(report);
        }
      };
      await Promise.all(workers.map(work));
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
};

const ask = (worker: Worker, task: Task): Promise<Report> =>
  new Promise((resolve, reject) => {
    const answered = (report: Report): void => {
      worker.off('error', reject);
      resolve(report);
    };
    worker.once('error', reject);
    worker.once('message', answered);
    worker.postMessage(task);
  });
