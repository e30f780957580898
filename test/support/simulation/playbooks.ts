import {
  AutomationError,
  type Automation,
  type AutomationJob,
  type AutomationPurpose,
  type TriggerRequest,
} from '../../../src/app/automation/automation.ts';
import type { ClusterOrderSpec } from '../../../src/domain/clusters/hub-objects.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { Agenda } from './agenda.ts';
import { BEGINNING } from './incarnation.ts';
import type { RealHubPlan } from './plan.ts';
import type { Random } from './random.ts';
import type { HeldCluster, RealHub } from './real-hub.ts';

/**
 * The automation of a real hub: a rulebook that accepts webhooks and may forget them, or a platform with jobs; and the
 * two playbooks, with their mark on the order and their lock (OSAC's operator).
 */
export type Playbooks = {
  readonly automation: Automation;
  /** Everything that was asked for, in order. */
  runs(): readonly Run[];
};

export type Run = {
  readonly id: string;
  readonly effectId: string;
  readonly purpose: AutomationPurpose;
  readonly order: string;
  /** Which object of that name it was asked for. */
  readonly uid: string;
  readonly createdAt: number;
  state: AutomationJob['state'];
};

const INFRASTRUCTURE = 'osac.openshift.io/infrastructure';

export const createPlaybooks = (
  hub: RealHub,
  plan: RealHubPlan,
  world: {
    readonly id: string;
    readonly agenda: Agenda;
    readonly random: Random;
    readonly isCalm: () => boolean;
    readonly note: (what: string) => void;
    readonly violated: (what: string) => void;
  },
): Playbooks => {
  const { agenda, random, isCalm } = world;
  const owner = `hub ${world.id}`;
  const runs: Run[] = [];
  /** Names of orders that a creation works on: it takes a lock, and a second one fails at once. */
  const locks = new Set<string>();
  const time = (ms: number): string => new Date(BEGINNING + Math.floor(ms)).toISOString();
  const later = (ms: number, run: () => void): void => void agenda.after(owner, ms * plan.pace, run);

  const end = (run: Run, state: AutomationJob['state']): void => {
    if (run.state === 'Canceled') return;
    run.state = state;
    world.note(`${run.purpose} ${run.id} of ${run.order} ${state}`);
  };

  const create = (run: Run, spec: ClusterOrderSpec): void => {
    const order = hub.find(run.order);
    if (order === undefined || order.shown.uid !== run.uid || order.shown.deletionTimestamp !== undefined)
      return end(run, 'Failed');
    if (locks.has(run.order)) return end(run, 'Failed');
    locks.add(run.order);
    const finish = (state: AutomationJob['state']): void => {
      locks.delete(run.order);
      end(run, state);
    };
    run.state = 'Running';
    const fails = !isCalm() && random.chance(plan.failures);
    order.shown = {
      ...order.shown,
      finalizers: [...new Set([...order.shown.finalizers, INFRASTRUCTURE])],
    };
    hub.touch(order);
    /** A job that was cancelled stops where it is; so does one whose cluster is being torn down. */
    const step = (ms: number, deed: (cluster: HeldCluster) => void): void =>
      later(ms, () => {
        if (run.state === 'Canceled') return void locks.delete(run.order);
        const there = hub.hosted.get(run.order) ?? { available: false, deleting: false, pools: new Map() };
        if (there.deleting || !hub.takesObjects({ name: run.order, uid: run.uid })) return finish('Failed');
        hub.hosted.set(run.order, there);
        deed(there);
      });
    const wanted = new Map(
      spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => [resourceClass, numberOfNodes]),
    );
    step(300, ({ pools }) => {
      for (const type of pools.keys()) if (!wanted.has(type)) pools.delete(type);
      for (const [type, desired] of wanted)
        pools.set(type, { desired, ready: Math.min(desired, pools.get(type)?.ready ?? 0) });
    });
    if (fails) return later(600, () => finish('Failed'));
    step(1_200, (cluster) => {
      cluster.available = true;
    });
    step(2_500, ({ pools }) => {
      for (const pool of pools.values()) pool.ready = pool.desired;
    });
    later(3_500, () => finish(run.state === 'Running' ? 'Succeeded' : run.state));
  };

  const tearDown = (run: Run): void => {
    run.state = 'Running';
    const there = hub.hosted.get(run.order);
    if (there !== undefined) there.deleting = true;
    later(900, () => {
      // What deletes HostedClusters goes on by itself; the mark of a playbook that failed stays.
      hub.hosted.delete(run.order);
      if (!isCalm() && random.chance(plan.failures)) return end(run, 'Failed');
      const order = hub.find(run.order);
      if (order !== undefined) {
        order.shown = {
          ...order.shown,
          finalizers: order.shown.finalizers.filter((each) => each !== INFRASTRUCTURE),
        };
        hub.touch(order);
      }
      later(400, () => end(run, 'Succeeded'));
    });
  };

  const begin = (run: Run, { order }: TriggerRequest): void => {
    if (run.state === 'Canceled') return;
    // The order as it was sent: not as it is by now.
    if (run.purpose === 'provision') create(run, order['spec'] as unknown as ClusterOrderSpec);
    else tearDown(run);
  };

  const accept = (request: TriggerRequest, effectId: string): Run => {
    const { purpose, orderName } = request;
    const uid = stringAt(objectAt(request.order, 'metadata'), 'uid');
    const run: Run = {
      id: String(runs.length + 101),
      effectId,
      purpose,
      order: orderName,
      uid,
      createdAt: agenda.now(),
      state: 'Pending',
    };
    judge(run);
    runs.push(run);
    const isLost = plan.mode === 'eda' && !isCalm() && random.chance(plan.failures);
    world.note(`${purpose} ${run.id} of ${orderName} ${isLost ? 'accepted and forgotten' : 'accepted'}`);
    if (isLost) run.state = 'Failed';
    else later(random.int(50, 1_500), () => begin(run, request));
    return run;
  };

  /** Where jobs can be looked up there are never two for one thing, and none is in the way of another. */
  const judge = (run: Run): void => {
    if (plan.mode !== 'aap') return;
    const others = runs.filter(({ order, uid }) => order === run.order && uid === run.uid);
    for (const other of others) {
      if (other.effectId === run.effectId)
        world.violated(`jobs ${other.id} and ${run.id} were both launched for ${run.effectId}`);
      const isUnderWay = other.state === 'Pending' || other.state === 'Running';
      if (isUnderWay && other.purpose === 'provision')
        world.violated(
          `job ${run.id} (${run.purpose}) was launched while job ${other.id} builds ${run.order}`,
        );
    }
  };

  const shown = (run: Run): AutomationJob => ({
    id: run.id,
    workflow: true,
    template: `osac-${run.purpose === 'provision' ? 'create' : 'delete'}-hosted-cluster`,
    state: run.state,
    createdAt: time(run.createdAt),
    ...(run.state === 'Failed' ? { outputTail: 'fatal: simulated' } : {}),
  });

  const byId = (id: string): Run | undefined => runs.find((run) => run.id === id);

  const trigger: Automation['trigger'] = async (request, { effectId }) => {
    const run = accept(request, effectId);
    return plan.mode === 'eda' ? { kind: 'queued' } : { kind: 'launched', job: shown(run) };
  };
  const check: Automation['check'] = async () => ({ problems: [] });
  if (plan.mode === 'eda') return { automation: { trigger, check }, runs: () => runs };
  return {
    runs: () => runs,
    automation: {
      trigger,
      check,
      findJobs: async ({ purpose, since }, { effectId }) =>
        runs
          .filter((run) => run.effectId === effectId && run.purpose === purpose)
          .map(shown)
          .filter(({ createdAt }) => createdAt >= since),
      job: async ({ id }) => {
        const run = byId(id);
        return run === undefined ? undefined : shown(run);
      },
      cancel: async ({ id }) => {
        const run = byId(id);
        if (run === undefined) throw new AutomationError('not-found', `no job ${id}`);
        if (run.state !== 'Pending' && run.state !== 'Running') return false;
        end(run, 'Canceled');
        locks.delete(run.order);
        return true;
      },
    },
  };
};
