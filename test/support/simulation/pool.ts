import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Drill } from './drill.ts';
import type { Death } from './plan.ts';
import type { MomentsTask, Report, Task } from './worker.ts';

/**
 * Worker threads that simulate. Every simulation is alone in its thread while it runs, so that two of them never share
 * what a process has only once.
 */
export type Pool = {
  /** Runs the tasks, begun in their order. `done` may end it early by returning true. */
  run(tasks: Iterable<Task>, done: (report: Report, task: Task) => boolean): Promise<void>;
  /** Every moment of each drill in which an incarnation may die, in the order of the drills. */
  momentsOf(drills: readonly Drill[], seed: number): Promise<readonly (readonly Death[])[]>;
  close(): Promise<void>;
};

let shared: Pool | undefined;
/**
 * The pool of all suites of this process, which ends with it: a thread that has loaded everything and is warm takes half
 * as long for a seed as a new one.
 */
export const sharedPool = (): Pool => (shared ??= openPool());

/** `threads`: default one per processor, at most 4. */
export const openPool = (threads = Math.min(4, availableParallelism())): Pool => {
  const workers = Array.from({ length: threads }, () => new Worker(new URL('./worker.ts', import.meta.url)));
  for (const worker of workers) worker.unref();
  const eachOf = async <Asked extends Task | MomentsTask, Answer>(
    tasks: Iterable<Asked>,
    done: (answer: Answer, task: Asked) => boolean,
  ): Promise<void> => {
    const queue = tasks[Symbol.iterator]();
    let over = false;
    const work = async (worker: Worker): Promise<void> => {
      for (let next = queue.next(); !over && next.done !== true; next = queue.next()) {
        const answer = await ask<Answer>(worker, next.value);
        over ||= done(answer, next.value);
      }
    };
    await Promise.all(workers.map(work));
  };
  return {
    run: (tasks, done) => eachOf<Task, Report>(tasks, done),
    momentsOf: async (drills, seed) => {
      const found = new Map<Drill, readonly Death[]>();
      const tasks = drills.map((moments): MomentsTask => ({ seed, moments }));
      await eachOf<MomentsTask, readonly Death[]>(tasks, (deaths, { moments }) => {
        found.set(moments, deaths);
        return false;
      });
      return drills.map((drill) => found.get(drill) ?? []);
    },
    close: async () => {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
};

const ask = <Answer>(worker: Worker, task: Task | MomentsTask): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const answered = (answer: Answer): void => {
      worker.off('error', reject);
      worker.unref();
      resolve(answer);
    };
    // The process goes on as long as something is asked of a thread, and no longer.
    worker.ref();
    worker.once('error', reject);
    worker.once('message', answered);
    worker.postMessage(task);
  });
