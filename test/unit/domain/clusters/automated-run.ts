import type { ClusterObservation } from '../../../../src/domain/clusters/observed.ts';
import type { PendingEffect } from '../../../../src/domain/workflow.ts';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun, done, placedOn } from './order-run.ts';
import { healthy, hosted, ORDER_NAME, observedOrder, ordered, time } from './samples.ts';

/** Orders on real hubs whose automation we run, and what such a hub shows. */
export type Run = ReturnType<typeof createOrderRun>;
export type Mode = 'eda' | 'aap';
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const INFRASTRUCTURE = 'osac.openshift.io/infrastructure';

export const onHub = (mode: Mode, controller: 'operator' | 'ledger' = 'operator'): Run => {
  const run = createOrderRun();
  run.order();
  run.perform('place', done({ ...placedOn('east-1'), mode, controller, simulated: false }));
  run.commands();
  run.perform('apply', done({ uid: 'uid-1', name: ORDER_NAME, did: 'created' }));
  run.commands();
  return run;
};
export const job = (id: string, state: string, more: object = {}) => ({
  job: { id, workflow: true, template: 'osac-create-hosted-cluster', state, createdAt: time(3), ...more },
});
/** As an operator that was told to keep its hands off shows it: never Ready, no jobs. */
export const manual = (change: Parameters<typeof observedOrder>[0] = {}) =>
  observedOrder({ phase: 'Progressing', jobs: [], ...change });
export const up = (change: Partial<ClusterObservation> = {}): ClusterObservation =>
  healthy({ order: manual(), ...change });
export const nothing: ClusterObservation = { order: manual({ conditions: [] }), hostedCluster: null };
export const busy: ClusterObservation = {
  order: manual({ finalizers: ['osac.openshift.io/finalizer', INFRASTRUCTURE] }),
  hostedCluster: null,
};
export const leaving = (change: Partial<ClusterObservation> = {}, finalizers = [INFRASTRUCTURE]) =>
  up({ order: manual({ deletionTimestamp: time(50), finalizers }), ...change });
export const stateOf = (run: Run): string | undefined => {
  const view = cluster.view(run.cluster());
  return view.exists ? view.state : undefined;
};
export const scale = (run: Run, size: number) =>
  run.command({
    type: 'ReviseCluster',
    at: run.at(),
    changes: {
      nodeSets: { workers: { hostType: { id: 'fc430' }, size }, gpu: { hostType: { id: 'g5' }, size: 2 } },
    },
  });
export const withSize = (size: number, pools = size) => {
  const sets = { ...ordered.nodeSets, workers: { hostType: { id: 'fc430', name: 'fc430' }, size } };
  const spec = clusterOrderSpec({ ...ordered, nodeSets: sets });
  return up({ order: manual({ spec }), hostedCluster: hosted({}, { fc430: pools, g5: 2 }) });
};
export const watched = (run: Run, shown: object | null) =>
  run.input({ kind: 'observation', observation: { job: shown } as never, now: run.at() });
export const msUntil = (run: Run, effect: PendingEffect): number =>
  effect.notBefore === undefined ? 0 : Date.parse(effect.notBefore) - Date.parse(run.at());
export const types = (run: Run, type: string): number =>
  run.clusterTypes().filter((each) => each === type).length;
export const remove = (run: Run): void => {
  run.command({ type: 'DeleteCluster', at: time(45) });
  run.perform('delete', done({ existed: true }));
};
