import { parentPort } from 'node:worker_threads';
import { PLANTED, type PlantedBug } from './planted.ts';
import { simulate } from './simulate.ts';

/** One simulation that a worker is asked for. */
export type Task = { readonly seed: number; readonly bug?: PlantedBug };

/** What is left of it: plain data, because it crosses a thread. */
export type Report = {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly hash: string;
  readonly steps: number;
  readonly events: number;
  readonly virtualMs: number;
  /** The plan and the last lines of the trace; only of a failure. */
  readonly plan: string;
  readonly lines: readonly string[];
};

const KEPT_LINES = 200;

export const reportOn = async ({ seed, bug }: Task, keptLines = KEPT_LINES): Promise<Report> => {
  const { failure, hash, steps, events, ms, plan, lines } = await simulate(
    seed,
    bug === undefined ? {} : { plant: PLANTED[bug] },
  );
  return {
    seed,
    failure: failure?.message,
    hash,
    steps,
    events,
    virtualMs: ms,
    plan: JSON.stringify(plan),
    lines: failure === undefined ? [] : lines.slice(Math.max(0, lines.length - keptLines)),
  };
};

parentPort?.on('message', (task: Task) => {
  void reportOn(task).then((report) => parentPort?.postMessage(report));
});
