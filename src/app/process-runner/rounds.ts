import type { JsonObject } from '../../domain/json.ts';
import type { EffectOutcome, PendingEffect } from '../../domain/workflow.ts';
import type { Timers } from '../ports.ts';
import type { Item } from './actor.ts';
import type { Lanes, Slot } from './lanes.ts';
import type { Run } from './run.ts';
import type { Work } from './work.ts';

/**
 * Timed reads of runs that wait for nothing else. Those of one lane and interval are made together, and compared on the
 * far side: one that shows what it showed last needs neither its run nor a write. Any other, and each of a round that
 * failed, is then made by itself, as if its alarm had fired.
 */
export type Rounds = {
  /** Takes over a read whose last answer led to nothing. False: it keeps its own alarm. */
  join(run: Run, effect: PendingEffect): boolean;
  /** Its next look comes with a round. */
  holds(run: Run, effect: PendingEffect): boolean;
  /** Lets go what it held of this run, if the run was folded further since. */
  recheck(run: Run): void;
  /** Lets go what it held of this run. */
  release(run: Run): void;
  close(): void;
};

/** Reads of one call; a far side may need several calls for them. */
const AT_ONCE = 2_000;

type Held = {
  readonly run: string;
  readonly effectId: string;
  readonly args: JsonObject;
  readonly revision: number;
  readonly subjectRevision: number;
  readonly group: Group;
};

type Group = {
  readonly name: string;
  readonly workflow: string;
  readonly read: PendingEffect;
  readonly members: Set<Held>;
  cancel: () => void;
};

export const createRounds = (options: {
  readonly lanes: Pick<Lanes, 'enqueue'>;
  readonly work: Pick<Work, 'effect'>;
  readonly timers: Timers;
  readonly post: (run: string, item: Item) => void;
}): Rounds => {
  const { lanes, work, timers, post } = options;
  const held = new Map<string, Held>();
  const groups = new Map<string, Group>();
  /** Groups whose far side cannot compare. */
  const apart = new Set<string>();
  let closed = false;

  const groupOf = (run: Run, { port, lane, together = '', everyMs = 0 }: PendingEffect): Group => {
    const name = nameOf(lane, together, everyMs);
    const known = groups.get(name);
    if (known !== undefined) return known;
    const how = { attempt: 1, mode: 'observe', args: {} } as const;
    const read = { ...how, effectId: name, port, lane, operation: together, everyMs };
    const workflow = run.workflow.name;
    const group: Group = { name, workflow, read, members: new Set(), cancel: () => undefined };
    groups.set(name, group);
    arm(group);
    return group;
  };

  const arm = (group: Group): void => {
    group.cancel = timers.after(group.read.everyMs ?? 0, () => void round(group));
  };

  const leave = (one: Held): void => {
    held.delete(one.run);
    one.group.members.delete(one);
  };

  const round = async (group: Group): Promise<void> => {
    const all = [...group.members];
    for (let at = 0; at < all.length; at += AT_ONCE) await compare(group, all.slice(at, at + AT_ONCE));
    if (closed) return;
    if (group.members.size > 0) arm(group);
    else groups.delete(group.name);
  };

  const compare = async (group: Group, some: readonly Held[]): Promise<void> => {
    const slot = await slotIn(group);
    const outcome = await ask(group, some);
    // The orders themselves say what the lane is to make of a failure: each is read by itself now.
    slot.release(outcome.outcome === 'done' ? outcome : 'unused');
    if (closed) return;
    if (outcome.outcome === 'refused') apart.add(group.name);
    const unchanged = new Set(outcome.outcome === 'done' ? (outcome.result['unchanged'] as number[]) : []);
    for (const [index, one] of some.entries()) {
      if (unchanged.has(index) || held.get(one.run) !== one) continue;
      leave(one);
      post(one.run, { kind: 'look', read: one.effectId });
    }
  };

  const slotIn = ({ read: { lane, operation } }: Group): Promise<Slot> =>
    new Promise((resolve) =>
      lanes.enqueue(lane, resolve, { tenant: '', priority: 'read', order: '', effect: operation }),
    );

  const ask = async ({ workflow, read }: Group, some: readonly Held[]): Promise<EffectOutcome> => {
    const ofNobody = { runId: '', tenant: '', project: '', correlationId: '', causationId: '' };
    const context = { ...ofNobody, key: 'rounds', workflow, asked: {}, started: {} };
    try {
      return await work.effect(context, { ...read, args: { reads: some.map(({ args }) => args) } });
    } catch {
      return { outcome: 'failed', reason: 'Stopped', message: 'the runner stops' };
    }
  };

  const isAsBefore = (one: Held, run: Run): boolean =>
    one.revision === run.revision && one.subjectRevision === run.subjectRevision;

  return {
    join: (run, effect) => {
      const { together, lane, everyMs = 0, effectId, args } = effect;
      if (closed || together === undefined || held.has(run.key) || apart.has(nameOf(lane, together, everyMs)))
        return false;
      const { key, revision, subjectRevision } = run;
      const group = groupOf(run, effect);
      const one = { run: key, effectId, args, revision, subjectRevision, group };
      held.set(key, one);
      group.members.add(one);
      return true;
    },
    holds: (run, { effectId }) => held.get(run.key)?.effectId === effectId,
    recheck: (run) => {
      const one = held.get(run.key);
      if (one !== undefined && !isAsBefore(one, run)) leave(one);
    },
    release: (run) => {
      const one = held.get(run.key);
      if (one !== undefined) leave(one);
    },
    close: () => {
      closed = true;
      for (const { cancel } of groups.values()) cancel();
    },
  };
};

const nameOf = (lane: string, together: string, everyMs: number): string => `${lane} ${together} ${everyMs}`;
