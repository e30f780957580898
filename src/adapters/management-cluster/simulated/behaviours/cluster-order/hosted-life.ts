import type { ClusterOrderSpec } from '../../../../../domain/clusters/hub-objects.ts';
import type { Agenda } from '../../agenda.ts';
import { withCondition } from '../../record.ts';
import type { Hosted, NodePool, OrderRecord } from './status-view.ts';

/** What the operator notices of a HostedCluster and copies into the order, within milliseconds. */
export type HostedObserver = {
  readonly created: () => void;
  readonly endpoints: (api: string, ingress: string) => void;
  readonly available: () => void;
  readonly complete: () => void;
  /** One more or one less ready node. */
  readonly nodes: () => void;
};

export type HostedLife = {
  current(): Hosted | undefined;
  /** Brings the HostedCluster and its node pools to this spec; returns the hub time when that will be done. */
  converge(spec: ClusterOrderSpec): number;
  degraded(on: boolean): void;
  /** Gone at once; all planned changes of it with it. */
  remove(): void;
};

/** HostedCluster and NodePools of one order: HyperShift's part of the life. */
export const createHostedLife = (
  record: OrderRecord,
  agenda: Agenda,
  observer: HostedObserver,
): HostedLife => {
  const { life } = record;
  let hosted: Hosted | undefined;
  let availableAt = 0;
  /** Each pool keeps one ramp; a newer target replaces it. */
  const ramps = new Map<string, object>();

  const later = (owner: Hosted, time: number, run: () => void): void =>
    agenda.at(time, () => {
      if (hosted === owner) run();
    });

  const condition = (
    owner: Hosted,
    type: string,
    status: 'True' | 'False',
    reason: string,
    text = '',
  ): void => {
    owner.conditions = withCondition(owner.conditions, agenda.now(), type, status, reason, text);
  };

  const create = (): Hosted => {
    const created: Hosted = {
      createdAt: agenda.now(),
      conditions: [],
      pools: new Map(),
      available: false,
      complete: false,
    };
    hosted = created;
    condition(created, 'Available', 'False', 'WaitingForAvailable', 'the control plane is being created');
    condition(created, 'Degraded', 'False', 'AsExpected');
    condition(created, 'ClusterVersionSucceeding', 'False', 'WaitingForNodes');
    observer.created();
    const workMs = Math.round(life.controlPlane * 0.95);
    availableAt = agenda.now() + workMs;
    later(created, agenda.now() + Math.round(workMs / 4), () => {
      const third = record.sequence % 256;
      observer.endpoints(`10.9.${third}.5`, `10.9.${third}.6`);
    });
    later(created, availableAt, () => {
      created.available = true;
      condition(created, 'Available', 'True', 'AsExpected');
      observer.available();
    });
    return created;
  };

  const limit = (desired: number): number => Math.min(desired, life.nodesStuckAt ?? desired);

  /** Node by node towards the target; returns when it will be reached. */
  const ramp = (owner: Hosted, pool: NodePool): number => {
    const token = {};
    ramps.set(pool.resourceClass, token);
    const start = Math.max(agenda.now(), availableAt);
    const target = limit(pool.desired);
    const step = (): void => {
      if (ramps.get(pool.resourceClass) !== token || pool.ready === target) return;
      pool.ready += Math.sign(target - pool.ready);
      observer.nodes();
      later(owner, agenda.now() + life.perNode, step);
    };
    later(owner, start + life.perNode, step);
    // A pool held short still takes the automation as long as a full one before it gives up.
    return start + Math.abs(pool.desired - pool.ready) * life.perNode;
  };

  const setPools = (owner: Hosted, spec: ClusterOrderSpec): number => {
    // Duplicate classes collapse into the last one, as in the automation (OSAC's operator).
    const wanted = new Map(
      spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => [resourceClass, numberOfNodes]),
    );
    for (const resourceClass of owner.pools.keys()) {
      if (!wanted.has(resourceClass)) owner.pools.delete(resourceClass);
    }
    let endsAt = Math.max(agenda.now(), availableAt);
    for (const [resourceClass, desired] of wanted) {
      const pool = owner.pools.get(resourceClass) ?? { resourceClass, desired, ready: 0 };
      pool.desired = desired;
      owner.pools.set(resourceClass, pool);
      endsAt = Math.max(endsAt, ramp(owner, pool));
    }
    return endsAt;
  };

  return {
    current: () => hosted,
    converge: (spec) => {
      const owner = hosted ?? create();
      const nodesAt = setPools(owner, spec);
      if (owner.complete) return nodesAt;
      const completeAt = nodesAt + life.operators;
      later(owner, completeAt, () => {
        if (owner.complete) return;
        owner.complete = true;
        condition(owner, 'ClusterVersionSucceeding', 'True', 'AsExpected');
        observer.complete();
      });
      return completeAt;
    },
    degraded: (on) => {
      if (hosted === undefined) return;
      if (on) condition(hosted, 'Degraded', 'True', 'EtcdDown', 'one member lost');
      else condition(hosted, 'Degraded', 'False', 'AsExpected');
    },
    remove: () => {
      hosted = undefined;
    },
  };
};
