import type { ClusterObservation } from '../../../src/domain/clusters/observed.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import { observationOf } from '../../../src/app/hubs/hub-looks.ts';
import { clusterOrderSpec, orderName } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun } from '../domain/clusters/order-run.ts';
import { ID, ordered } from '../domain/clusters/samples.ts';
import { createHubBench, manifestOf, NAMESPACE } from './hub-support.ts';

const WINDOW_S = 43 * 60;
const STEP_S = 11;

/** The run of one order, shown everything that a simulated hub with the faults of `simulation` shows in 43 minutes. */
const shownFor = async (simulation: string) => {
  const bench = createHubBench();
  const run = createOrderRun();
  run.toHub();
  const name = orderName(ID);
  const spec = clusterOrderSpec(ordered);
  await bench.hub.create(CLUSTER_ORDER, manifestOf(name, { clusterId: ID, simulation, spec }), bench.by());
  const states: string[] = [];
  let jobs = 0;
  for (let second = 0; second < WINDOW_S; second += STEP_S) {
    await bench.hub.get(CLUSTER_ORDER, { namespace: NAMESPACE, name }, bench.by()).then(async (order) => {
      if (order === undefined) throw new Error('the order is gone');
      const place = { namespace: NAMESPACE, name };
      const seen = await observationOf(bench.hub, CLUSTER_ORDER, place, order, bench.by());
      run.observe(seen as ClusterObservation);
      jobs = Number(order.jobs.at(-1)?.jobId ?? 0) % 100_000;
    });
    run.commands();
    const view = cluster.view(run.cluster());
    const state = view.exists ? (view.state ?? '') : '';
    if (states.at(-1) !== state) states.push(state);
    await bench.time.advance(STEP_S * 1_000);
  }
  await bench.close();
  return { states, jobs, events: run.clusterTypes(), runEvents: run.runTypes() };
};

describe('43 minutes of an order that its simulated hub never builds', () => {
  for (const [what, simulation] of [
    ['fails before there is anything', 'failInstall=all'],
    ['fails with the control plane there', 'failInstall=all,failWhen=late'],
  ] as const)
    it(`are one failure: ${what}`, async () => {
      const { states, jobs, events, runEvents } = await shownFor(simulation);
      expect(states).to.deep.equal(['CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_FAILED']);
      expect(events.filter((type) => type === 'ClusterFailed')).to.have.lengthOf(1);
      expect(jobs, 'tries').to.be.above(9);
      const failedAt = events.indexOf('ClusterFailed');
      expect(events.slice(failedAt + 1), 'told after the failure').to.have.lengthOf.below(4);
      expect(runEvents.length, 'noted by the run').to.be.below(60);
    }).timeout(60_000);
});
