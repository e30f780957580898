import { expect } from 'chai';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import type { ClusterObservation } from '../../../../src/domain/clusters/observed.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { job, manual, onHub, scale, stateOf, up, watched, withSize, type Run } from './automated-run.ts';
import { createOrderRun, done, failed, refused } from './order-run.ts';
import { healthy, hosted, observedOrder, ordered, time } from './samples.ts';

const MINUTE = 60_000;

/** The order with this many workers as an operator shows it after a job for it. */
const changed = (
  size: number,
  state: string,
  more: { hosted?: ClusterObservation['hostedCluster']; jobId?: string; at?: number } = {},
): ClusterObservation => {
  const sets = { ...ordered.nodeSets, workers: { hostType: { id: 'fc430', name: 'fc430' }, size } };
  const spec = clusterOrderSpec({ ...ordered, nodeSets: sets });
  const jobs = [
    { jobId: '101', type: 'provision', state: 'Succeeded', timestamp: time(3), configVersion: 'before' },
    {
      jobId: more.jobId ?? '110',
      type: 'provision',
      state,
      timestamp: time(more.at ?? 30),
      message: state === 'Failed' ? 'failed: no hosts on aap.internal' : '',
      configVersion: configVersion(spec),
    },
  ];
  return healthy({
    order: observedOrder({ spec, jobs, nodeSets: [{ resourceClass: 'fc430', hosts: 3 }] }),
    hostedCluster: more.hosted ?? hosted(),
  });
};

const status = (run: Run): JsonObject => {
  const view = cluster.view(run.cluster());
  return view.exists ? objectAt(view.document, 'status') : {};
};
/** `READY: AsExpected`; with the message where there is one. */
const told = (run: Run, type: string): string => {
  const condition = listAt(status(run), 'conditions').find(
    (one) => stringAt(one, 'type') === `CLUSTER_CONDITION_TYPE_${type}`,
  );
  const message = stringAt(condition, 'message');
  return `${stringAt(condition, 'reason')}${message === '' ? '' : `: ${message}`}`;
};
const marks = (run: Run): readonly string[] => {
  const view = cluster.view(run.cluster());
  return (view.exists && cluster.marks?.(view.document)) || [];
};

/** READY on a hub with an operator, and then sent this size. */
const scaled = (size: number): Run => {
  const run = createOrderRun();
  run.toReady(healthy());
  scale(run, size);
  if (run.effects().includes('resize')) run.perform('resize', done({ resized: true }));
  run.perform('apply', done({ uid: 'uid-1' }));
  run.commands();
  return run;
};
const seen = (run: Run, ...observations: readonly ClusterObservation[]): void => {
  for (const observation of observations) {
    run.observe(observation);
    run.commands();
  }
};
const WHY = "resize of node set 'workers' from 3 to 4 failed: the provider's automation failed";

describe('a change of a cluster that runs', () => {
  it('does not fail the cluster when its job fails: READY with the reason, billed, and open to the next change', () => {
    const run = scaled(4);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    seen(run, changed(4, 'Running'), changed(4, 'Failed'));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'PROGRESSING')).to.equal(`ChangeFailed: ${WHY}`);
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
    expect(told(run, 'FAILED')).to.equal('AsExpected');
    expect(JSON.stringify(status(run)), 'in the words of the hub it names the platform').to.not.contain(
      'aap',
    );
    expect(run.cluster()).to.have.nested.property(
      'changeFailed.detail',
      'job 110 ended as Failed: failed: no hosts on aap.internal',
    );
    expect(marks(run)).to.deep.equal(['needs-operator']);
    expect(run.clusterTypes()).to.not.include('ClusterFailed');
    expect(scale(run, 3)).to.deep.include({ accepted: true });
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('stays failed while the hub tries again, and clears when a newer job succeeds', () => {
    const run = scaled(4);
    seen(run, changed(4, 'Failed'), changed(4, 'Running', { jobId: '111', at: 32 }));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
    seen(run, changed(4, 'Succeeded', { jobId: '111', at: 32 }));
    expect(stateOf(run), 'the nodes are still coming').to.equal('CLUSTER_STATE_PROGRESSING');
    expect(told(run, 'PROGRESSING')).to.equal('Progressing');
    seen(run, changed(4, 'Succeeded', { jobId: '111', at: 32, hosted: hosted({}, { fc430: 4, g5: 2 }) }));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal('AsExpected');
    expect(run.cluster()).to.not.have.property('changeFailed');
    expect(marks(run)).to.deep.equal([]);
  });
  it('clears when it is taken back', () => {
    const run = scaled(4);
    seen(run, changed(4, 'Failed'));
    scale(run, 3);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(told(run, 'PROGRESSING')).to.equal('Progressing');
    seen(run, changed(4, 'Failed'));
    expect(stateOf(run), 'what failed is not what is wanted').to.equal('CLUSTER_STATE_PROGRESSING');
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    seen(run, changed(3, 'Succeeded', { jobId: '111', at: 32 }));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal('AsExpected');
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('that failed leaves a cluster degraded that is', () => {
    const run = scaled(4);
    seen(run, changed(4, 'Failed', { hosted: hosted({ Degraded: 'True' }) }));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'DEGRADED')).to.equal('DegradedReason: Degraded is True');
    expect(told(run, 'PROGRESSING')).to.equal(`ChangeFailed: ${WHY}`);
    seen(run, changed(4, 'Failed'));
    expect(told(run, 'DEGRADED')).to.equal('AsExpected');
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
  });
  it('that failed leaves a cluster degraded whose nodes of before are not ready', () => {
    const run = scaled(4);
    const nodes = (fc430: number): void =>
      seen(run, changed(4, 'Failed', { hosted: hosted({}, { fc430, g5: 2 }) }));
    nodes(3);
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
    nodes(2);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal('Degraded');
    expect(told(run, 'DEGRADED')).to.equal('NodesNotReady: ready nodes: gpu 2 of 2, workers 2 of 4');
    expect(told(run, 'PROGRESSING')).to.equal(`ChangeFailed: ${WHY}`);
    nodes(3);
    expect(told(run, 'DEGRADED')).to.equal('AsExpected');
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
    const { nodePools: _pools, ...blind } = hosted();
    seen(run, changed(4, 'Failed', { hosted: blind }));
    expect(told(run, 'READY'), 'what is not shown degrades nothing').to.equal(`ChangeFailed: ${WHY}`);
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('to fewer nodes that failed degrades nothing while these are ready', () => {
    const run = scaled(2);
    const nodes = (fc430: number): void =>
      seen(run, changed(2, 'Failed', { hosted: hosted({}, { fc430, g5: 2 }) }));
    nodes(2);
    expect(told(run, 'READY')).to.match(/^ChangeFailed: /);
    nodes(1);
    expect(told(run, 'DEGRADED')).to.equal('NodesNotReady: ready nodes: gpu 2 of 2, workers 1 of 2');
  });
  it('counts nodes by host type: of two sets the hub does not show which one they are in', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    const more = { hostType: { id: 'fc430', name: 'fc430' }, size: 2 };
    run.command({
      type: 'ReviseCluster',
      at: time(30),
      changes: { nodeSets: { ...ordered.nodeSets, extra: more } },
    });
    run.perform('resize', done({ resized: false, code: 'CAPACITY_EXCEEDED', message: '5 fc430 wanted' }));
    run.commands();
    seen(run, healthy());
    expect(told(run, 'READY')).to.match(/^ResizeWaiting: /);
    expect(told(run, 'DEGRADED')).to.equal('AsExpected');
  });
  it('that its hub refuses is told, and the next one is sent', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 4);
    run.perform('resize', done({ resized: true }));
    run.perform('apply', refused);
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    const why = "resize of node set 'workers' from 3 to 4 failed: the hub refuses the order as invalid";
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${why}`);
    seen(run, healthy());
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${why}`);
    expect(run.effects()).to.deep.equal(['read']);
    scale(run, 3);
    expect(run.effects()).to.include('apply');
  });
  it('that takes too long is told, and not over what is known better', () => {
    const late = (run: Run): void => {
      run.after(31 * MINUTE);
      run.fire('deadline:nodes');
      run.perform('check', done(changed(4, 'Succeeded')));
      run.commands();
    };
    const slow = scaled(4);
    seen(slow, changed(4, 'Succeeded'));
    late(slow);
    expect(stateOf(slow)).to.equal('CLUSTER_STATE_READY');
    const why =
      "resize of node set 'workers' from 3 to 4 failed: the nodes did not become ready within 30 minutes";
    expect(told(slow, 'READY')).to.equal(`ChangeFailed: ${why}`);
    seen(slow, changed(4, 'Succeeded', { hosted: hosted({}, { fc430: 2, g5: 2 }) }));
    expect(told(slow, 'PROGRESSING')).to.equal(`ChangeFailed: ${why}`);
    expect(told(slow, 'DEGRADED')).to.equal('NodesNotReady: ready nodes: gpu 2 of 2, workers 2 of 4');
    seen(slow, changed(4, 'Succeeded', { hosted: hosted({}, { fc430: 4, g5: 2 }) }));
    expect(told(slow, 'READY')).to.equal('AsExpected');
  });
  it('that waits for room keeps it READY with the reason, and PROGRESSING comes with the room', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 9);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    run.perform('resize', done({ resized: false, code: 'CAPACITY_EXCEEDED', message: '9 fc430 wanted' }));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal(
      "ResizeWaiting: resize of node set 'workers' from 3 to 9: waiting for 6 × fc430",
    );
    expect(marks(run)).to.deep.equal(['waiting']);
    seen(run, healthy());
    run.fire('placement-retry');
    seen(run, healthy({ hostedCluster: hosted({ Degraded: 'True' }) }));
    expect(told(run, 'DEGRADED'), 'between two tries').to.equal('DegradedReason: Degraded is True');
    seen(run, healthy({ hostedCluster: hosted({}, { fc430: 0, g5: 2 }) }));
    expect(told(run, 'DEGRADED')).to.equal('NodesNotReady: ready nodes: gpu 2 of 2, workers 0 of 9');
    expect(told(run, 'PROGRESSING')).to.match(/^ResizeWaiting: /);
    seen(run, healthy());
    expect(told(run, 'READY')).to.match(/^ResizeWaiting: /);
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    seen(run, changed(9, 'Succeeded', { hosted: hosted({}, { fc430: 9, g5: 2 }) }));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal('AsExpected');
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('fails in mode aap with the job that we launched, and goes on with the next one', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    watched(run, job('101', 'Succeeded').job);
    seen(run, up());
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    scale(run, 4);
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    run.perform('trigger', done(job('110', 'Running')));
    seen(run, withSize(4, 3));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    watched(run, job('110', 'Failed', { outputTail: 'fatal: no hosts' }).job);
    seen(run, withSize(4, 3));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.equal(`ChangeFailed: ${WHY}`);
    expect(run.cluster()).to.have.nested.property(
      'changeFailed.detail',
      'job 110 ended as Failed: fatal: no hosts',
    );
    run.perform('trigger', done(job('111', 'Running')));
    seen(run, withSize(4, 3));
    expect(told(run, 'READY'), 'while it is tried again').to.equal(`ChangeFailed: ${WHY}`);
    watched(run, job('111', 'Succeeded').job);
    seen(run, withSize(4));
    expect(told(run, 'READY')).to.equal('AsExpected');
  });
  it('fails in mode eda when nothing comes of it in time, or its listener does not answer', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    seen(run, up());
    scale(run, 4);
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    for (let attempt = 0; attempt < 10; attempt += 1) run.perform('trigger', failed('AutomationUnavailable'));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(told(run, 'READY')).to.match(
      /^ChangeFailed: .* failed: the automation of the hub does not answer$/,
    );
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    seen(run, withSize(4, 3));
    expect(stateOf(run), 'it was asked after all').to.equal('CLUSTER_STATE_PROGRESSING');
    seen(run, withSize(4));
    expect(told(run, 'READY')).to.equal('AsExpected');
  });
  it('is retried by an operator', () => {
    const run = scaled(4);
    seen(run, changed(4, 'Failed'));
    expect(run.command({ type: 'RetryCluster', at: time(50) })).to.deep.include({ accepted: true });
    expect(run.effects()).to.include('apply');
  });
  it('is the only thing that fails mildly: before a cluster ran its failed job is a failure', () => {
    const run = createOrderRun();
    run.toHub();
    seen(run, changed(3, 'Failed'));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    expect(scale(run, 2)).to.deep.include({ accepted: false, code: 'SPEC_LOCKED' });
    const lost = scaled(4);
    seen(lost, { ...changed(4, 'Failed'), hostedCluster: null });
    lost.perform('check', done({ ...changed(4, 'Failed'), hostedCluster: null }));
    lost.commands();
    expect(stateOf(lost)).to.equal('CLUSTER_STATE_FAILED');
    expect(told(lost, 'FAILED')).to.match(/^HostedClusterLost/);
  });
});

describe('a job whose state the hub cannot tell', () => {
  const LOST = 'Failed to get job status: resource not found: https://aap.internal/api/v2/jobs/106/';
  const polled = (message: string): ClusterObservation => ({
    order: observedOrder({
      phase: 'Progressing',
      conditions: [{ type: 'ControlPlaneCreated', status: 'False' }],
      jobs: [
        {
          jobId: '106',
          type: 'provision',
          state: 'Pending',
          timestamp: time(3),
          message,
          configVersion: configVersion(clusterOrderSpec(ordered)),
        },
      ],
    }),
    hostedCluster: null,
  });
  const waiting = (): Run => {
    const run = createOrderRun();
    run.toHub();
    seen(run, polled('pending'));
    return run;
  };

  it('changes nothing, and is no event each time that the operator asks', () => {
    const run = waiting();
    const [before, known] = [status(run), run.clusterTypes().length];
    seen(run, polled(LOST), polled('Failed to get job status: 503'), polled(LOST));
    expect(status(run)).to.deep.equal(before);
    expect(run.clusterTypes()).to.have.length(known);
    expect(run.timers()).to.include('deadline:job-status');
    seen(run, polled('running'));
    expect(run.timers()).to.not.include('deadline:job-status');
  });
  it('is a condition and an alarm after five minutes, until a poll succeeds', () => {
    const run = waiting();
    seen(run, polled(LOST));
    const due = run.pending().timers.find(({ timerId }) => timerId === 'deadline:job-status')?.dueAt ?? '';
    expect(Date.parse(due) - Date.parse(run.at())).to.be.within(4.9 * MINUTE, 5 * MINUTE);
    const late = (): void => {
      run.after(5 * MINUTE);
      run.fire('deadline:job-status');
      run.perform('check', done(polled(LOST)));
      run.commands();
    };
    late();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    const why = 'the hub cannot tell the state of its job 106';
    expect(told(run, 'PROGRESSING')).to.equal(`JobStatusUnknown: ${why}`);
    expect(run.cluster()).to.have.nested.property('conditions.TemplateApplied.status', 'Unknown');
    expect(marks(run)).to.deep.equal(['job-status-unknown']);
    seen(run, polled('running'));
    expect(told(run, 'PROGRESSING')).to.equal('Progressing');
    expect(marks(run)).to.deep.equal([]);
    seen(run, polled(LOST));
    expect(told(run, 'PROGRESSING'), 'from the start again').to.equal('Progressing');
    late();
    expect(told(run, 'PROGRESSING')).to.equal(`JobStatusUnknown: ${why}`);
    expect(run.replayed()).to.deep.equal(run.state());
  });
});

describe('what is shown of a cluster is what is observed', () => {
  const sizes = (run: Run): object =>
    Object.fromEntries(
      Object.entries(objectAt(status(run), 'node_sets')).map(([name, set]) => [
        name,
        (set as { size?: number }).size ?? 0,
      ]),
    );

  for (const mode of ['operator', 'eda'] as const)
    it(`mode ${mode}: nodes that are to go are counted until they are gone`, () => {
      const run = mode === 'eda' ? onHub('eda') : createOrderRun();
      if (mode === 'eda') {
        run.perform('trigger', done({ queued: true, did: 'posted' }));
        seen(run, up());
      } else run.toReady(healthy());
      scale(run, 1);
      run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
      run.commands();
      if (mode === 'eda') run.perform('trigger', done({ queued: true, did: 'posted' }));
      const shown = [3, 2, 1].map((count) => {
        seen(
          run,
          mode === 'eda'
            ? withSize(1, count)
            : changed(1, 'Succeeded', { hosted: hosted({}, { fc430: count, g5: 2 }) }),
        );
        return [sizes(run), stateOf(run)];
      });
      expect(shown).to.deep.equal([
        [{ workers: 3, gpu: 2 }, 'CLUSTER_STATE_PROGRESSING'],
        [{ workers: 2, gpu: 2 }, 'CLUSTER_STATE_PROGRESSING'],
        [{ workers: 1, gpu: 2 }, 'CLUSTER_STATE_READY'],
      ]);
      expect(run.cluster()).to.have.nested.property('conditions.NodesReady.status', 'True');
    });
  it('a webhook that was accepted applies no template', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    const applied = (): unknown =>
      (run.cluster() as { conditions?: { TemplateApplied?: { status: string } } }).conditions?.TemplateApplied
        ?.status;
    seen(run, { order: manual(), hostedCluster: null });
    expect(applied()).to.equal('False');
    seen(run, up({ hostedCluster: hosted({}, { fc430: 2, g5: 2 }) }));
    expect(applied()).to.equal('False');
    seen(run, up());
    expect(applied()).to.equal('True');
    seen(run, up({ hostedCluster: hosted({ Degraded: 'True' }) }));
    expect(applied(), 'what became of the cluster since is another thing').to.equal('True');
    expect(told(run, 'DEGRADED')).to.equal('DegradedReason: Degraded is True');
  });
  it('what the hub does not show any more is left out', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    expect(sizes(run)).to.deep.equal({ workers: 3, gpu: 2 });
    const { nodePools: _pools, ...blind } = hosted();
    seen(run, healthy({ hostedCluster: blind }));
    expect(status(run)).to.not.have.property('node_sets');
    expect(run.cluster()).to.have.nested.property('conditions.NodesReady.status', 'NotObservable');
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('a deletion ends what was seen before it', () => {
    const run = createOrderRun();
    run.toReady(healthy({ hostedCluster: hosted({}, { fc430: 3, g5: 2 }) }));
    seen(run, healthy({ hostedCluster: hosted({ Degraded: 'True' }) }));
    run.command({ type: 'DeleteCluster', at: time(45) });
    expect(status(run)).to.not.have.any.keys('node_sets', 'api_url', 'console_url', 'api_endpoint');
    expect(told(run, 'DEGRADED')).to.equal('AsExpected');
    const broken = createOrderRun();
    broken.toHub();
    seen(broken, changed(3, 'Failed'));
    broken.command({ type: 'DeleteCluster', at: time(45) });
    expect(told(broken, 'FAILED')).to.equal('AsExpected');
  });
  for (const what of ['hosted-cluster', 'cluster-order'] as const)
    it(`so does the loss of its ${what}`, () => {
      const run = createOrderRun();
      run.toReady(healthy());
      const gone: ClusterObservation =
        what === 'cluster-order' ? { order: null } : healthy({ hostedCluster: null });
      seen(run, gone);
      run.perform('check', done(gone));
      run.commands();
      expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
      expect(status(run)).to.not.have.any.keys('node_sets', 'api_url', 'console_url', 'api_endpoint');
      const { conditions } = run.cluster() as { conditions?: { [name: string]: { status: string } } };
      const statuses = Object.values(conditions ?? {}).map((one) => one.status);
      const expected = what === 'cluster-order' ? 'Unknown' : 'False';
      expect(statuses).to.deep.equal([expected, expected, expected, expected]);
      seen(run, healthy());
      expect(stateOf(run), 'it is there again').to.equal('CLUSTER_STATE_READY');
      expect(status(run)).to.include.keys('node_sets', 'api_url');
      seen(run, gone);
      run.perform('check', done(gone));
      run.commands();
      expect(stateOf(run), 'gone once more').to.equal('CLUSTER_STATE_FAILED');
    });
});
