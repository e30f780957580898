import type { ClusterTask } from '../../../../app/site/ports.ts';
import { isAmong } from '../../../simulation/settings.ts';
import { operation, type Act, type Operation, type Result } from './part.ts';

/** Automation that works on clusters: one run of a task at a time, each with its result. */
const taskName = ({ cluster, phase, name }: ClusterTask): string => `${cluster} ${phase} ${name}`;

type Run = { number: number; started_at: number; ends_at: number; passed: number; told_to: string | null };

const lastRun = ({ file }: Act, task: string): Run | undefined =>
  file.sql('SELECT * FROM task_runs WHERE task = ? ORDER BY number DESC LIMIT 1').get(task) as
    | Run
    | undefined;

const start = (act: Act, task: ClusterTask, number: number): Run => {
  const { file, now, life } = act;
  const isMeant = life.failTaskName === '' || life.failTaskName === task.name;
  const passed = isMeant && isAmong(life.failTask, number, `${taskName(task)}/fail`) ? 0 : 1;
  const endsAt = now + life.task;
  file
    .sql('INSERT INTO task_runs (task, number, started_at, ends_at, passed) VALUES (?, ?, ?, ?, ?)')
    .run(taskName(task), number, now, endsAt, passed);
  return { number, started_at: now, ends_at: endsAt, passed, told_to: null };
};

const run = (task: ClusterTask, act: Act): Result => {
  const { file, now, effectId } = act;
  const last = lastRun(act, taskName(task));
  const isOver = last !== undefined && last.told_to !== null && last.told_to !== effectId;
  const current = last === undefined || isOver ? start(act, task, (last?.number ?? 0) + 1) : last;
  const since = new Date(current.started_at).toISOString();
  if (current.ends_at > now) return { value: { state: 'running', since }, text: 'running' };
  file
    .sql('UPDATE task_runs SET told_to = ? WHERE task = ? AND number = ?')
    .run(effectId, taskName(task), current.number);
  const state = current.passed === 1 ? 'passed' : 'failed';
  const evidence = {
    run: current.number,
    startedAt: since,
    endedAt: new Date(current.ends_at).toISOString(),
  };
  const message = `run ${current.number} of ${task.name} ${state}`;
  return { value: { state, message, evidence }, text: state };
};

export const TASKS: { readonly [operation: string]: Operation } = {
  'tasks.run': operation<ClusterTask>({ write: true, object: taskName, run }),
};
