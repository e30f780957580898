import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Report, Task } from './worker.ts';

/**
 * Runs simulations on worker threads, in the order of the tasks; every simulation is alone in its thread, so that they
 * do not see each other. `done` may end it early by returning true.
 */
export const runAll = async (
  tasks: Iterable<Task>,
  done: (report: Report) => boolean | undefined,
  threads = Math.min(4, availableParallelism()),
): Promise<void> => {
  const queue = tasks[Symbol.iterator]();
  let over = false;
  const run = async (): Promise<void> => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url));
    try {
      for (let next = queue.next(); !over && next.done !== true; next = queue.next()) {
        const report = await ask(worker, next.value);
        if (!over && done(report) === true) over = true;
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: threads }, run));
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
