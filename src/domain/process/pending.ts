import type { Pending, PendingCommand, PendingEffect, PendingTimer } from '../workflow.ts';
import { defined } from '../json-tools.ts';
import { answerTo } from './activity.ts';
import type { Work } from './declaration.ts';
import { instanceOfEffect, isUnresolved, later, nextAttempt } from './effects.ts';
import { DEADLINE } from './evolve.ts';
import type { AnyRun } from './run.ts';
import type { Row, Table, Told } from './row.ts';
import { rulesOf } from './table.ts';

export const NOTHING: Pending = { commands: [], effects: [], timers: [] };

export const pendingOf = (table: Table, run: AnyRun): Pending => {
  const effects = new Map<string, PendingEffect>();
  for (const row of table.rows) {
    const since = run.since[row.name];
    const work = since === undefined ? undefined : row.work?.(run, since);
    const effect = work === undefined ? undefined : effectOf(table, run, row, work);
    if (effect !== undefined && !effects.has(effect.effectId)) effects.set(effect.effectId, effect);
  }
  return { commands: offered(table, run), effects: [...effects.values()], timers: timersOf(table, run) };
};

/** What the subject is told by itself: exactly what it would record something of. */
export const offered = (table: Table, run: AnyRun): readonly PendingCommand[] => {
  const told: PendingCommand[] = [];
  const offer = (name: string, command: Told | undefined): void => {
    if (command === undefined || answerTo(table, run, command) !== 'events') return;
    told.push({ ...commandTo(table, run, command), key: `${name}@${run.subjectRevision}` });
  };
  for (const { name, tell } of table.rows) {
    const since = run.since[name];
    if (tell !== undefined && since !== undefined) offer(name, tell(run, since));
  }
  for (const { name, deadline } of table.rows) {
    const since = run.since[name];
    const checked = run.overdue[name]?.checked;
    if (deadline?.onOverdue !== undefined && since !== undefined && checked !== undefined) {
      offer(`overdue-${name}`, deadline.onOverdue(run, { since, at: checked }));
    }
  }
  return told;
};

export const commandTo = ({ declared }: Table, run: AnyRun, command: Told): PendingCommand => ({
  aggregate: declared.subject.category,
  id: run.id,
  command: command as unknown as PendingCommand['command'],
});

export const timersOf = ({ rows, declared }: Table, run: AnyRun): readonly PendingTimer[] => {
  const timers = Object.entries(declared.timers?.(run) ?? {});
  for (const { name, deadline } of rows) {
    const since = run.since[name];
    if (deadline !== undefined && since !== undefined && run.overdue[name] === undefined) {
      timers.push([DEADLINE + name, later(since, deadline.ms)]);
    }
  }
  return timers.map(([timerId, dueAt]) => ({ timerId, dueAt }));
};

const effectOf = (
  table: Table,
  run: AnyRun,
  { kind, phase }: Row,
  { call, instance = run.cycle, facts, notBefore: firmUntil, everyMs, together }: Work,
): PendingEffect | undefined => {
  if (everyMs !== undefined) {
    return { effectId: `${kind}:0`, ...call, attempt: 1, mode: 'observe', everyMs, ...defined({ together }) };
  }
  const known = run.effects[kind];
  // One that may have happened is settled under its own id before another takes its place.
  const effectId = `${kind}:${isUnresolved(known) ? instanceOfEffect(known.id) : String(instance)}`;
  if (known?.id === effectId && ['done', 'refused', 'undone'].includes(known.status)) return undefined;
  const next = nextAttempt(known, effectId, rulesOf(table, run, kind).backoff);
  const notBefore = [next.notBefore, firmUntil]
    .filter((time) => time !== undefined)
    .toSorted()
    .at(-1);
  // What is deleted frees what others wait for.
  const priority = run.ending !== undefined || phase === 'undo' ? 'deletion' : undefined;
  return { effectId, ...call, ...next, ...defined({ notBefore, firmUntil, facts, priority }) };
};
