import { HOSTED_CLUSTER, type ObservedClusterOrder } from '../../../../../domain/clusters/hub-objects.ts';
import { type Agenda, createAgenda } from '../../agenda.ts';
import { REACTION_MS } from '../../record.ts';
import { createStoredObject, type OnVersion } from '../../stored-object.ts';
import type { Life, Living } from '../behaviour.ts';
import { type HostedLife, createHostedLife, type HostedObserver } from './hosted-life.ts';
import { type Jobs, createJobs } from './jobs.ts';
import { createProvisioning } from './provisioning.ts';
import {
  INFRASTRUCTURE_FINALIZER,
  OPERATOR_FINALIZER,
  type OrderObject,
  type OrderRecord,
  hostedNamespace,
  type Hosted,
  type OrderStatus,
} from './status-view.ts';

/**
 * What operator and automation do with a deleted order: cancel what runs, deprovision, lose
 * the HostedCluster, then `infrastructure`, then the namespace and with it the operator's own finalizer.
 */
const createDeletion = (
  record: OrderRecord,
  agenda: Agenda,
  order: OrderObject,
  jobs: Jobs,
  hosted: HostedLife,
): { start(): void } => {
  const { life } = record;

  /** Milliseconds that deletion still hangs at this place; undefined: for ever. */
  const stuckFor = (place: typeof life.stuckAt): number | undefined => {
    if (life.stuckAt !== place) return 0;
    if (life.stuckDeletion === 'forever') return undefined;
    return Math.max(0, (order.deletionAt() ?? 0) + life.stuckDeletion - agenda.now());
  };

  const removeLater = (finalizer: string, ms: number | undefined): void => {
    if (ms !== undefined) order.later(ms, () => order.removeFinalizer(finalizer));
  };

  const deprovision = (): void => {
    const job = jobs.launch('deprovision');
    order.writeStatus({ phase: 'Deleting' });
    job.later(Math.round(life.delete / 10), () => {
      jobs.note('Running', 'running');
      order.writeStatus();
    });
    if (stuckFor('job') !== 0) {
      job.later(Math.round(life.delete / 2), () => {
        jobs.note('Failed', `failed: ${life.failText}`);
        order.writeStatus();
        job.later(jobs.retryDelay(true), deprovision);
      });
      return;
    }
    job.later(Math.round(life.delete * 0.8), () => hosted.remove());
    job.later(life.delete, () => {
      jobs.note('Succeeded', 'successful');
      order.writeStatus();
      removeLater(INFRASTRUCTURE_FINALIZER, stuckFor('infrastructure'));
      const namespace = stuckFor('namespace');
      removeLater(
        OPERATOR_FINALIZER,
        namespace === undefined ? undefined : Math.max(namespace, life.namespace),
      );
    });
  };

  return {
    start: () => {
      if (jobs.isActive()) jobs.note('Canceled', 'canceled');
      deprovision();
    },
  };
};

export type OrderLife = Life<ObservedClusterOrder> & { readonly beside: Hosted | undefined };

const MAX_NAMESPACE_NAME = 63;

/**
 * The life of one ClusterOrder, played from its record up to a moment: a small discrete event simulation of the
 * operator, the automation jobs and HyperShift, in the order in which the recorded runs show them. It is a function
 * of (record, until): a write at time t changes nothing that happened up to t, so every reader
 * at every time sees the same past, and progress needs no process of its own.
 */
export const live = (
  record: OrderRecord,
  onVersion: OnVersion<ObservedClusterOrder> = () => undefined,
): Living<OrderLife> => {
  const { life } = record;
  const agenda = createAgenda();
  const initially: OrderStatus = { conditions: [], jobs: [] };
  const order: OrderObject = createStoredObject(record, agenda, initially, onVersion);
  const jobs = createJobs(record, agenda, order);
  const hosted = createHostedLife(record, agenda, operatorWatching(record, order));
  const provisioning = createProvisioning(record, agenda, order, jobs, hosted);
  const deletion = createDeletion(record, agenda, order, jobs, hosted);
  /** Accepted by the API server, but the operator cannot make the namespace, for ever. */
  const namespaceIsImpossible =
    hostedNamespace(record).length > MAX_NAMESPACE_NAME || record.name.includes('.');

  const vanish = (what: string): void => {
    hosted.remove();
    if (what === record.kind) order.remove();
  };

  const born = (): void => {
    order.created();
    const adoptedAfter = Math.min(REACTION_MS, life.accept);
    order.later(adoptedAfter, () => order.adopt(OPERATOR_FINALIZER, order.spec().nodeRequests.length === 0));
    // The finalizer comes first, the first status after two thirds of `accept`, the phase at its end.
    const acceptedAfter = Math.max(adoptedAfter, Math.round((life.accept * 2) / 3));
    if (life.noPhase !== 'forever' && !namespaceIsImpossible) {
      order.later(life.noPhase + acceptedAfter, () => provisioning.accept());
    }
    if (life.vanishOrder > 0) order.later(life.vanishOrder, () => vanish(record.kind));
    if (life.vanishHostedCluster > 0)
      order.later(life.vanishHostedCluster, () => vanish(HOSTED_CLUSTER.kind));
  };

  const requestDeletion = (): void => {
    if (order.deletionAt() !== undefined) return;
    // While the operator does not work nothing but deletionTimestamp is to be seen.
    if (!order.requestDeletion() || life.noPhase === 'forever') return;
    const idleFor = Math.max(0, record.createdAt + life.noPhase - agenda.now());
    order.later(idleFor + 2 * REACTION_MS, () =>
      namespaceIsImpossible ? order.removeFinalizer(OPERATOR_FINALIZER) : deletion.start(),
    );
  };

  const apply = (write: OrderRecord['writes'][number]): void => {
    if (order.goneAt() !== undefined) return;
    switch (write.kind) {
      case 'patch':
        order.setSpec(write.spec, write.configVersion);
        return provisioning.respec();
      case 'status':
        return order.writeStatus(write.status);
      case 'delete':
        return requestDeletion();
      case 'remove-finalizer':
        return order.removeFinalizer(write.finalizer);
      case 'vanish':
        return vanish(write.what);
    }
  };

  agenda.at(record.createdAt, born);
  for (const write of record.writes) agenda.write(write.at, () => apply(write));
  return (until) => {
    agenda.run(until);
    const goneAt = order.goneAt();
    return {
      object: goneAt === undefined ? order.view() : undefined,
      beside: goneAt === undefined ? hosted.current() : undefined,
      goneAt,
      nextAt: goneAt === undefined ? agenda.nextAt() : undefined,
    };
  };
};

/** The operator copies what it sees of the HostedCluster into the order, within milliseconds. */
const operatorWatching = (record: OrderRecord, order: OrderObject): HostedObserver => ({
  created: () => {
    order.noteCondition('ControlPlaneCreated', 'True', 'AsExpected');
    order.writeStatus({
      clusterReference: { namespace: hostedNamespace(record), hostedClusterName: record.name },
    });
  },
  endpoints: (api, ingress) => {
    order.annotate({
      'osac.openshift.io/api-endpoint': api,
      'osac.openshift.io/ingress-endpoint': ingress,
    });
    order.writeStatus({ apiEndpoint: api, ingressEndpoint: ingress });
  },
  available: () => {
    order.noteCondition('ControlPlaneAvailable', 'True', 'AsExpected');
    order.writeStatus();
  },
  complete: () => {
    order.noteCondition('ClusterAvailable', 'True', 'AsExpected');
    order.writeStatus();
  },
  // The count goes into status.nodeRequests, but only that of a single request.
  nodes: () => {
    if (order.spec().nodeRequests.length === 1) order.writeStatus();
  },
});
