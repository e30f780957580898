import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun, done } from './order-run.ts';
import { healthy, hosted, observedOrder, ordered } from './samples.ts';

/** What the specs of the order's run have in common. */
export const NOWHERE = { order: null };
export const stateOf = (run: ReturnType<typeof createOrderRun>): string | undefined => {
  const view = cluster.view(run.cluster());
  return view.exists ? view.state : undefined;
};
export const progressing = healthy({ order: observedOrder({ phase: 'Progressing' }), hostedCluster: null });
export const lost = (run: ReturnType<typeof createOrderRun>): void => {
  run.observe(NOWHERE);
  run.perform('check', done(NOWHERE));
};
export const count = (run: ReturnType<typeof createOrderRun>, type: string): number =>
  run.runTypes().filter((each) => each === type).length;
export const scale = (run: ReturnType<typeof createOrderRun>, size: number) =>
  run.command({
    type: 'ReviseCluster',
    at: run.at(),
    changes: {
      nodeSets: {
        workers: { hostType: { id: 'fc430' }, size },
        gpu: { hostType: { id: 'g5' }, size: 2 },
      },
    },
  });
export const scaled = (size: number) => {
  const nodeSets = {
    ...ordered.nodeSets,
    workers: { hostType: { id: 'fc430', name: 'fc430' }, size },
  };
  const spec = clusterOrderSpec({ ...ordered, nodeSets });
  return healthy({ order: observedOrder({ spec }), hostedCluster: hosted({}, { fc430: size, g5: 2 }) });
};
