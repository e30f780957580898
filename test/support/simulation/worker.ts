import { parentPort } from 'node:worker_threads';
import { DRILL_OF, MODE_OF, PLANTED, type PlantedBug } from './planted-bugs.ts';
import { momentsOf, runDrill, type Drill } from './drill.ts';
import type { Death } from './plan.ts';
import { simulateEveryKind } from './every-kind-world.ts';
import { simulate, type Simulated } from './simulate.ts';

/** One simulation that a worker is asked for. */
export type Task = {
  readonly seed: number;
  readonly bug?: PlantedBug;
  readonly drill?: Drill;
  /** Objects of all kinds, instead of what most worlds have. */
  readonly everyKind?: boolean;
};

/** A task in which nobody dies: when they may is asked. */
export type MomentsTask = { readonly seed: number; readonly moments: Drill };

/** What is left of it: plain data, because it crosses a thread. */
export type Report = {
  readonly seed: number;
  readonly everyKind: boolean;
  readonly failure: string | undefined;
  readonly hash: string;
  readonly steps: number;
  readonly events: number;
  readonly births: number;
  /** What was done with machines of each kind. */
  readonly deeds: readonly string[];
  readonly virtualMs: number;
  /** The plan and the last lines of the trace; only of a failure. */
  readonly plan: string;
  readonly lines: readonly string[];
};

const KEPT_LINES = 200;

const played = (task: Task): Promise<Simulated> => {
  const { seed, bug, everyKind = false } = task;
  const plant = bug === undefined ? undefined : PLANTED[bug];
  const drill = task.drill ?? (bug === undefined ? undefined : DRILL_OF[bug]);
  if (drill !== undefined) return runDrill(seed, drill, plant);
  if (everyKind) return simulateEveryKind(seed, plant);
  return simulate(seed, bug === undefined || plant === undefined ? {} : { plant, mode: MODE_OF[bug] });
};

export const reportOn = async (task: Task, keptLines = KEPT_LINES): Promise<Report> => {
  const { seed } = task;
  const { failure, hash, steps, events, births, deeds, ms, plan, lines } = await played(task);
  return {
    seed,
    everyKind: task.everyKind ?? false,
    failure: failure?.message,
    hash,
    steps,
    events,
    births,
    deeds,
    virtualMs: ms,
    plan: JSON.stringify(plan),
    lines: failure === undefined ? [] : lines.slice(Math.max(0, lines.length - keptLines)),
  };
};

parentPort?.on('message', (task: Task | MomentsTask) => {
  const answer: Promise<Report | readonly Death[]> =
    'moments' in task ? momentsOf(task.seed, task.moments) : reportOn(task);
  void answer.then((report) => parentPort?.postMessage(report));
});
