import { expect } from 'chai';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { job, onHub, scale, stateOf, up, watched, withSize, type Run } from './automated-run.ts';
import { createOrderRun, done } from './order-run.ts';
import { healthy, time } from './samples.ts';

/** READY on a real hub of each kind. */
const KINDS: readonly (readonly [string, () => Run])[] = [
  [
    'operator',
    () => {
      const run = createOrderRun();
      run.toReady(healthy());
      return run;
    },
  ],
  ...(['operator', 'ledger'] as const).flatMap((controller) => [
    [
      `eda, controller ${controller}`,
      () => {
        const run = onHub('eda', controller);
        if (controller === 'ledger') run.perform('prepare', done({ created: [] }));
        run.perform('trigger', done({ queued: true, did: 'posted' }));
        run.observe(up());
        run.commands();
        return run;
      },
    ] as const,
    [
      `aap, controller ${controller}`,
      () => {
        const run = onHub('aap', controller);
        if (controller === 'ledger') run.perform('prepare', done({ created: [] }));
        run.perform('trigger', done(job('101', 'Running')));
        watched(run, job('101', 'Succeeded').job);
        run.observe(up());
        run.commands();
        return run;
      },
    ] as const,
  ]),
];

const ready = (run: Run): string => {
  const view = cluster.view(run.cluster());
  const conditions = view.exists ? listAt(objectAt(view.document, 'status'), 'conditions') : [];
  const shown = conditions.find((one) => stringAt(one, 'type') === 'CLUSTER_CONDITION_TYPE_READY');
  return `${stringAt(shown, 'reason')}: ${stringAt(shown, 'message')}`;
};
const waiting = (make: () => Run): Run => {
  const run = make();
  expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  expect(scale(run, 5)).to.deep.include({ accepted: true });
  run.perform('resize', done({ resized: false, code: 'CAPACITY_EXCEEDED', message: '5 wanted, 4 left' }));
  run.commands();
  return run;
};

describe('a change that waits for room on its hub', () => {
  for (const [kind, make] of KINDS) {
    it(`keeps the cluster READY with the reason, and nothing times out (${kind})`, () => {
      const run = waiting(make);
      expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
      expect(ready(run)).to.equal(
        "ResizeWaiting: resize of node set 'workers' from 3 to 5: waiting for 2 × fc430",
      );
      expect(run.timers()).to.deep.equal(['placement-retry']);
      run.after(3_600_000);
      run.fire('placement-retry');
      run.perform('resize', done({ resized: false, code: 'CAPACITY_EXCEEDED', message: '5 wanted, 4 left' }));
      run.commands();
      expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
      expect(run.clusterTypes()).to.not.include('ClusterFailed').and.to.not.include('ClusterChangeFailed');
      expect(run.replayed()).to.deep.equal(run.state());
    });
    it(`is taken back, and nothing of it is left (${kind})`, () => {
      const run = waiting(make);
      expect(scale(run, 3)).to.deep.include({ accepted: true });
      expect(JSON.stringify(cluster.view(run.cluster())), 'at once').to.not.include('waiting for');
      expect(run.effects()).to.include('apply').and.to.not.include('resize');
      run.perform('apply', done({ uid: 'uid-1', did: 'unchanged' }));
      run.commands();
      expect(run.cluster()).to.not.have.property('waiting');
      expect(run.timers()).to.not.include('placement-retry');
    });
    it(`goes on when there is room (${kind})`, () => {
      const run = waiting(make);
      run.fire('placement-retry');
      run.perform('resize', done({ resized: true }));
      run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
      run.commands();
      expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
      run.observe(withSize(5, 3));
      run.commands();
      expect(ready(run)).to.equal('NotReady: ');
    });
    it(`is deleted while it waits (${kind})`, () => {
      const run = waiting(make);
      run.command({ type: 'DeleteCluster', at: time(50) });
      expect(stateOf(run)).to.equal('CLUSTER_STATE_DELETING');
      expect(run.effects()).to.include('delete').and.to.not.include('resize');
      expect(run.timers()).to.not.include('placement-retry');
      run.perform('delete', done({ existed: true }));
      run.observe({ order: null, hostedCluster: null });
      run.perform('check', done({ order: null, hostedCluster: null }));
      run.commands();
      expect(run.clusterTypes().at(-1)).to.equal('ClusterDeleted');
      run.perform('release', done());
      expect(run.isClosed()).to.equal(true);
    });
  }
});
