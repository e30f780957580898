import { expect } from 'chai';
import { orderName } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import {
  ACCEPT_DEADLINE_MS,
  CONTROL_PLANE_DEADLINE_MS,
} from '../../../../src/domain/clusters/order-workflow/forward-steps.ts';
import { clusterOrderWorkflow } from '../../../../src/domain/clusters/order-workflow/workflow.ts';
import { createOrderRun, done, failed, placedOn, refused, unknown } from './order-run.ts';
import { HUB, healthy, hosted, ID, noRoom, observedOrder, ordered, time } from './samples.ts';
import { stateOf, progressing, count, scale } from './order-steps.ts';

describe('cluster order: the way to READY', () => {
  it('places, selects, dispatches, records and becomes ready', () => {
    const run = createOrderRun();
    run.order();
    expect(run.effects()).to.deep.equal(['place']);
    expect(run.effect('place')).to.deep.include({
      port: 'scheduler',
      operation: 'place',
      attempt: 1,
      mode: 'perform',
      args: {
        holder: { kind: 'cluster', id: ID },
        tenant: 't1',
        template: 'osac.templates.small',
        objectName: orderName(ID),
        claim: { controlPlanes: 1, nodes: { fc430: 3, g5: 2 } },
      },
    });
    run.perform('place', done(placedOn()));
    expect(run.commands()).to.deep.equal(['SelectHub']);
    const apply = run.effect('apply');
    expect(apply).to.deep.include({ port: 'management-cluster', lane: `hub:${HUB}`, attempt: 1 });
    expect(apply.args).to.deep.include({ hub: HUB, id: ID, secrets: { pullSecret: ordered.pullSecret } });
    expect(apply.args).to.deep.include({ name: orderName(ID), namespace: 'osac-hub' });
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.deep.equal(['RecordApplied']);
    expect(run.effects()).to.deep.equal(['read']);
    expect(run.effect('read')).to.deep.include({
      operation: 'observeObject',
      mode: 'observe',
      everyMs: 10_000,
    });
    run.observe(progressing);
    expect(run.commands()).to.deep.equal(['RecordObservation']);
    run.observe(healthy());
    expect(run.commands()).to.deep.equal(['RecordObservation']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.effect('read').everyMs).to.equal(60_000);
    expect(run.timers()).to.deep.equal([]);
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('records which rule applied to each delegated step', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    const selected = run.clusterEvents().find(({ type }) => type === 'HubSelected');
    expect(selected?.data).to.deep.include({ hub: HUB });
    expect(selected?.data).to.have.nested.property('steps.agents', 'hub');
  });
  it('takes every answer once', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    const told = run.clusterTypes().length;
    expect(run.result('place:0.0', done(placedOn('other')))).to.deep.equal([]);
    expect(run.result('nothing:1', done())).to.deep.equal([]);
    expect(run.fire('nothing')).to.deep.equal([]);
    expect(run.clusterTypes()).to.have.lengthOf(told);
  });
  it('hears nothing before it begins', () => {
    const run = createOrderRun();
    expect(run.observe(healthy())).to.deep.equal([]);
    expect(run.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
  });
  it('ignores observations before the order was sent, and answers that are none', () => {
    const run = createOrderRun();
    run.order();
    expect(run.observe(healthy())).to.deep.equal([]);
    const sent = createOrderRun();
    sent.toHub();
    sent.commands();
    expect(sent.input({ kind: 'observation', observation: {}, now: time(1) })).to.deep.equal([]);
    sent.observe(progressing);
    expect(sent.commands()).to.deep.equal(['RecordObservation']);
    sent.observe(progressing);
    expect(sent.commands()).to.deep.equal([]);
    expect(sent.runTypes().filter((type) => type !== 'EffectStarted')).to.deep.equal([]);
  });
});

describe('cluster order: in a namespace of its tenant', () => {
  it('is sent with the namespace, and waits for no Tenant', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done({ ...placedOn(), namespace: 'acme', tenantNamespace: true }));
    run.commands();
    expect(run.effects()).to.deep.equal(['apply']);
    expect(run.effect('apply').args).to.include({ namespace: 'acme', tenantNamespace: true });
    expect(run.isFolded()).to.equal(true);
    const shared = createOrderRun();
    shared.order();
    shared.perform('place', done(placedOn()));
    shared.commands();
    expect(shared.effect('apply').args).to.not.have.property('tenantNamespace');
  });
});

describe('cluster order: waiting for capacity', () => {
  const nothingFits = done({ placed: false, message: '', decision: noRoom });

  it('says why, waits, and tries again when something may have changed', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', nothingFits);
    expect(run.effects()).to.deep.equal([]);
    expect(run.timers()).to.deep.equal(['placement-retry']);
    expect(run.commands()).to.deep.equal(['DeferPlacement']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    run.fire('placement-retry');
    run.perform('place', nothingFits);
    expect(run.commands(), 'the same reasons are not told twice').to.deep.equal([]);
    run.fire('placement-retry');
    expect(run.effect('place')).to.deep.include({ effectId: 'place:2.0', attempt: 1 });
    run.perform('place', done(placedOn()));
    expect(run.timers()).to.not.include('placement-retry');
    expect(run.commands()).to.deep.equal(['SelectHub']);
    expect(clusterOrderWorkflow.wakes?.flatMap(({ types }) => types)).to.include('HubCapacityReleased');
  });
  const waitOf = (run: ReturnType<typeof createOrderRun>): number => {
    const due = Date.parse(run.pending().timers[0]?.dueAt ?? '');
    return Math.round((due - Date.parse(run.at())) / 1000);
  };
  it('tries at growing intervals', () => {
    const run = createOrderRun();
    run.order();
    const waits: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      run.perform('place', nothingFits);
      waits.push(waitOf(run));
      run.after(waitOf(run) * 1000);
      run.fire('placement-retry');
    }
    expect(waits).to.deep.equal([30, 60, 120, 240, 480, 600, 600, 600]);
  });
  it('does not wait longer for having been woken early, and starts anew once there was room', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', nothingFits);
    for (let wake = 0; wake < 5; wake += 1) {
      run.fire('placement-retry');
      run.perform('place', nothingFits);
      expect(waitOf(run), `after ${wake + 1} wakes`).to.equal(30);
    }
    run.after(30_000);
    run.fire('placement-retry');
    run.perform('place', nothingFits);
    expect(waitOf(run)).to.equal(60);
    run.fire('placement-retry');
    run.perform('place', done(placedOn()));
    expect(run.state()).to.not.have.property('waitedOut');
  });
});

describe('cluster order: giving room back', () => {
  it('goes on with what it gives back, and nothing else, after a crash in the middle of it', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 1);
    run.commands();
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    const given = run.start('resize').args['claim'];
    expect(given).to.have.nested.property('nodes.fc430', 1);
    const again = run.pending().effects.filter(({ effectId }) => effectId.startsWith('resize:'));
    expect(again.map(({ args }) => args['claim'])).to.deep.equal([given]);
  });
});

describe('cluster order: effects that go wrong', () => {
  const atHub = () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    run.commands();
    return run;
  };

  it('are tried again after a growing, reproducible delay', () => {
    const run = atHub();
    run.perform('apply', failed());
    const second = run.effect('apply');
    expect(second).to.deep.include({ effectId: 'apply:0.0.0', attempt: 2, mode: 'perform' });
    const delay = Date.parse(second.notBefore ?? '') - Date.parse(run.at());
    expect(delay).to.be.within(450, 1000);
    run.perform('apply', failed('Throttled', 30_000));
    const asked = Date.parse(run.effect('apply').notBefore ?? '') - Date.parse(run.at());
    expect(asked).to.be.within(29_900, 30_000);
  });
  it('are recorded once per reason, and looked for where that leaves a doubt', () => {
    const run = createOrderRun();
    run.toHub();
    run.command({ type: 'ReviseCluster', at: time(20), changes: { sshPublicKey: 'ssh-ed25519 BBBB' } });
    run.perform('apply', failed());
    run.perform('apply', failed());
    expect(count(run, 'EffectFailed')).to.equal(1);
    expect(run.effect('apply')).to.deep.include({ attempt: 3, mode: 'observe' });
    run.perform('apply', failed());
    expect(count(run, 'EffectFailed')).to.equal(1);
    run.perform('apply', failed('Throttled'));
    expect(count(run, 'EffectFailed'), 'another reason').to.equal(2);
    expect(run.effect('apply'), 'the doubt stays').to.deep.include({ attempt: 5, mode: 'observe' });
  });
  it('leave no doubt while the order is nowhere: each is recorded until its hub takes it', () => {
    const run = atHub();
    for (let attempt = 1; attempt <= 3; attempt += 1) run.perform('apply', failed());
    expect(count(run, 'EffectFailed')).to.equal(3);
    expect(run.effect('apply')).to.deep.include({ attempt: 4, mode: 'perform' });
    run.perform('apply', unknown);
    run.perform('apply', failed());
    run.perform('apply', failed());
    expect(count(run, 'EffectFailed'), 'in doubt as before').to.equal(3);
  });
  it('are looked for before they are repeated when their outcome is unknown', () => {
    const run = atHub();
    run.perform('apply', unknown);
    expect(run.effect('apply')).to.deep.include({ attempt: 2, mode: 'observe' });
    run.perform('apply', unknown);
    expect(count(run, 'EffectOutcomeUnknown')).to.equal(1);
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.deep.equal(['RecordApplied']);
  });
  it('are looked for at once after a crash', () => {
    const run = atHub();
    run.start('apply');
    const next = run.effect('apply');
    expect(next).to.deep.include({ attempt: 2, mode: 'observe' });
    expect(next.notBefore?.localeCompare(run.at())).to.be.at.most(0);
  });
  it('stop the order when refused, until an operator retries', () => {
    const run = atHub();
    run.perform('apply', refused);
    expect(run.commands()).to.deep.equal(['RecordFailure']);
    expect(run.cluster(), 'what the hub said is not for tenants').to.deep.include({
      failure: {
        reason: 'ValidationFailed',
        message: 'the hub refuses the order as invalid',
        detail: 'the spec is wrong',
        permanent: true,
      },
    });
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    expect(run.effects()).to.deep.equal([]);
    expect(run.result('apply:0.0.0', done({ uid: 'x' })), 'a late answer').to.deep.equal([]);
    run.command({ type: 'RetryCluster', at: time(30) });
    expect(run.effects(), 'its hub never took it').to.deep.equal(['place']);
    run.perform('place', done(placedOn('sim-other')));
    expect(run.commands()).to.deep.equal(['SelectHub']);
    expect(run.cluster()).to.have.nested.property('hub.id', 'sim-other');
    const { effectId, attempt, args } = run.effect('apply');
    expect({ effectId, attempt, hub: args['hub'] }).to.deep.equal({
      effectId: 'apply:0.1.0',
      attempt: 1,
      hub: 'sim-other',
    });
    run.perform('apply', done({ uid: 'uid-1' }));
    run.observe(healthy());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('stay with their hub on a retry while they may be there', () => {
    const run = atHub();
    for (let attempt = 1; attempt <= 12; attempt += 1) run.perform('apply', unknown);
    run.commands();
    run.command({ type: 'RetryCluster', at: time(30) });
    expect(run.effects()).to.deep.equal(['apply']);
    expect(run.effect('apply')).to.deep.include({ mode: 'observe' });
  });
  it('that are deleted while they are placed again end without any order on a hub', () => {
    const run = atHub();
    run.perform('apply', refused);
    run.commands();
    run.command({ type: 'RetryCluster', at: time(30) });
    run.start('place');
    run.command({ type: 'DeleteCluster', at: time(31) });
    run.perform('place', done({}));
    run.perform('delete', done({ existed: false }));
    run.observe({ order: null });
    run.perform('check', done({ order: null }));
    run.commands();
    run.perform('release', done());
    expect(run.cluster()).to.have.property('status', 'deleted');
    expect(run.isClosed()).to.equal(true);
  });
  it('are told to people after many attempts, and go on', () => {
    const run = atHub();
    for (let attempt = 1; attempt <= 12; attempt += 1) run.perform('apply', failed());
    expect(count(run, 'EffectStalled')).to.equal(1);
    expect(run.commands()).to.deep.equal(['RecordFailure']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    run.observe(progressing);
    run.commands();
    expect(stateOf(run), 'it clears by itself').to.equal('CLUSTER_STATE_PROGRESSING');
    const blind = atHub();
    for (let attempt = 1; attempt <= 12; attempt += 1) blind.perform('apply', unknown);
    expect(count(blind, 'EffectStalled')).to.equal(1);
  });
  it('of the scheduler may be refused as well', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', refused);
    expect(run.commands()).to.deep.equal(['RecordFailure']);
    run.command({ type: 'RetryCluster', at: time(30) });
    expect(run.effect('place').effectId).to.equal('place:0.1');
  });
});

describe('cluster order: deadlines', () => {
  it('raise the alarm that the hub does not accept, after a look', () => {
    const run = createOrderRun();
    run.toHub();
    const { phase: _phase, ...silent } = observedOrder({ jobs: [] });
    expect(run.timers()).to.deep.equal(['deadline:accepted']);
    run.fire('deadline:accepted');
    expect(run.timers()).to.deep.equal([]);
    expect(run.commands(), 'nothing is reported before the look').to.deep.equal([]);
    run.perform('check', done({ order: silent, hostedCluster: null }));
    expect(run.commands()).to.include('ReportNotAccepting');
    expect(run.clusterTypes()).to.include('HubNotAccepting');
    expect(run.effects()).to.deep.equal(['read']);
    run.observe(progressing);
    run.commands();
    expect(run.cluster()).to.not.have.property('notAccepting');
  });
  it('do no harm when they come too early or the look finds it done', () => {
    const run = createOrderRun();
    run.toHub();
    run.fire('deadline:accepted');
    expect(run.fire('deadline:accepted')).to.deep.equal([]);
    run.perform('check', failed());
    run.perform('check', done(healthy()));
    run.commands();
    expect(run.clusterTypes()).to.not.include('HubNotAccepting');
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('are told with the time at which they were decided, not with that of the beginning', () => {
    const run = createOrderRun();
    run.toHub();
    const { phase: _phase, ...silent } = observedOrder({ jobs: [] });
    run.after(ACCEPT_DEADLINE_MS);
    run.fire('deadline:accepted');
    run.perform('check', done({ order: silent, hostedCluster: null }));
    const accepting = run.at();
    run.commands();
    run.observe(progressing);
    run.commands();
    const since = run.at();
    run.after(CONTROL_PLANE_DEADLINE_MS);
    run.fire('deadline:control-plane');
    run.perform('check', done(progressing));
    const decided = run.at();
    run.commands();
    const told = (type: string) => run.clusterEvents().findLast((event) => event.type === type)?.data;
    expect(told('HubNotAccepting')).to.include({ at: accepting });
    expect(told('ClusterFailed')).to.include({ at: decided, reason: 'ControlPlaneTimedOut' });
    expect(Date.parse(decided) - Date.parse(since)).to.be.at.least(CONTROL_PLANE_DEADLINE_MS);
    const times = run.clusterEvents().map(({ data }) => data.at);
    expect(times, 'no event is older than the one before').to.deep.equal(times.toSorted());
  });
  it('report what does not come, without giving up', () => {
    for (const [seen, reason] of [
      [progressing, 'ControlPlaneTimedOut'],
      [
        healthy({ hostedCluster: hosted({ ClusterVersionSucceeding: 'False' }, { fc430: 1 }) }),
        'NodesTimedOut',
      ],
      [healthy({ hostedCluster: hosted({ ClusterVersionSucceeding: 'False' }) }), 'InstallTimedOut'],
    ] as const) {
      const run = createOrderRun();
      run.toHub();
      run.observe(seen);
      run.commands();
      const [timer] = run.timers();
      run.fire(timer ?? '');
      run.perform('check', done(seen));
      expect(run.commands()).to.deep.equal(['RecordFailure']);
      expect(run.cluster()).to.have.nested.property('failure.reason', reason);
      run.observe(healthy());
      run.commands();
      expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    }
  });
});
