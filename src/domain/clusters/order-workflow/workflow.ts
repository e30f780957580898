import type { RunEvent } from '../../process/events.ts';
import { nextAttempt } from '../../process/effects.ts';
import { parseStreamName } from '../../stream-name.ts';
import type { Pending, PendingCommand, PendingEffect, Workflow } from '../../workflow.ts';
import type { ClusterCommand } from '../commands.ts';
import { CLUSTER_CATEGORY } from '../cluster.ts';
import { CLUSTER_ORDER, decideRun, INPUT_TYPES, PLACEMENT_RETRY } from './decide.ts';
import { evolveRun } from './evolve.ts';
import { timersOf } from './reconsider.ts';
import type { OpenRun, OrderRun } from './run.ts';
import { EFFECT_RULES, type Work } from './step.ts';
import { activeSteps, overdueCommandOf, overdueInstance, overdueName, overdueSteps, STEPS } from './steps.ts';
import { asJson } from './as-json.ts';

/**
 * Process manager of a cluster order: from the accepted order to READY, through every change of its spec, to confirmed
 * absence (design §6). One run per cluster, in `clusterOrder-<cluster id>`; the steps are the table in steps.ts.
 */
export const clusterOrderWorkflow: Workflow<OrderRun, RunEvent> = {
  name: CLUSTER_ORDER,
  stateVersion: 5,
  inputTypes: INPUT_TYPES,
  runIdOf: ({ stream }) => {
    const { category, id } = parseStreamName(stream);
    return category === CLUSTER_CATEGORY ? id : undefined;
  },
  initialState: () => ({ status: 'none' }),
  evolve: evolveRun,
  decide: decideRun,
  pending: (state) => (state.status === 'open' ? pendingOf(state) : NOTHING),
  // Whatever may make room: a hub came, changed or is well again, or somebody gave capacity back.
  wakes: {
    types: [
      'HubRegistered',
      'HubRevised',
      'HubBecameReachable',
      'HubCredentialsAccepted',
      'HubIdentified',
      'HubDrivingResumed',
      'HubFoundComplete',
      'HubAutomationAnswered',
      'HubCapacityDeclared',
      'HubCapacityReleased',
      'HubCapacityResized',
    ],
    timerId: PLACEMENT_RETRY,
  },
  hubOf: (state) => (state.status === 'open' ? state.hub?.hub : undefined),
  isClosed: (state) => state.status === 'closed',
};

const NOTHING: Pending = { commands: [], effects: [], timers: [] };

const pendingOf = (run: OpenRun): Pending => {
  const commands: PendingCommand[] = [];
  const effects: PendingEffect[] = [];
  const active = new Set(activeSteps(run));
  for (const { name, work } of STEPS) {
    if (work === undefined || !active.has(name)) continue;
    const todo = work(run, run.activeSince[name] ?? '');
    if (todo?.kind === 'command') commands.push(commandTo(run, `${name}:${todo.instance}`, todo.command));
    else if (todo !== undefined) effects.push(...effectOf(run, todo));
  }
  for (const { name } of overdueSteps(run)) {
    const command = overdueCommandOf(run, name);
    if (command !== undefined) {
      commands.push(commandTo(run, `${overdueName(name)}:${overdueInstance(run)}`, command));
    }
  }
  const timers = Object.entries(timersOf(run)).map(([timerId, dueAt]) => ({ timerId, dueAt }));
  return { commands, effects, timers };
};

const commandTo = (run: OpenRun, key: string, command: ClusterCommand): PendingCommand => ({
  key,
  aggregate: CLUSTER_CATEGORY,
  id: run.clusterId,
  command: { ...asJson(command), type: command.type },
});

const effectOf = (run: OpenRun, todo: Exclude<Work, { kind: 'command' }>): readonly PendingEffect[] => {
  const { port, operation, args, lane } = todo;
  if (todo.kind === 'read') {
    const known = run.effects[todo.effect];
    const { attempt, notBefore } = nextRead(known?.attempt, known?.startedAt, todo.everyMs);
    return [
      {
        effectId: `${todo.effect}:0`,
        port,
        operation,
        args,
        lane,
        attempt,
        mode: 'observe',
        ...(notBefore === undefined ? {} : { notBefore }),
        everyMs: todo.everyMs,
      },
    ];
  }
  const effectId = `${todo.effect}:${todo.instance}`;
  const known = run.effects[todo.effect];
  if (known?.id === effectId && (known.status === 'done' || known.status === 'refused')) return [];
  const { backoff } = EFFECT_RULES[todo.effect] ?? { backoff: { firstMs: 1_000, maxMs: 60_000 } };
  const next = nextAttempt(known, effectId, backoff);
  const notBefore = [next.notBefore, todo.notBefore]
    .filter((time) => time !== undefined)
    .toSorted()
    .at(-1);
  return [
    {
      effectId,
      port,
      operation,
      args,
      lane,
      ...next,
      ...(notBefore === undefined ? {} : { notBefore }),
      // What is deleted frees hardware that others wait for.
      ...(run.deletion === undefined ? {} : { priority: 'deletion' as const }),
    },
  ];
};

/** Only a runner that records the start of a timed read leaves anything here to count on from. */
const nextRead = (
  attempt: number | undefined,
  startedAt: string | undefined,
  everyMs: number,
): { attempt: number; notBefore?: string } =>
  attempt === undefined || startedAt === undefined
    ? { attempt: 1 }
    : { attempt: attempt + 1, notBefore: new Date(Date.parse(startedAt) + everyMs).toISOString() };
