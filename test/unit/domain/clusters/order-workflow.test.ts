import { expect } from 'chai';
import { clusterOrderSpec, orderName } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { clusterOrderWorkflow } from '../../../../src/domain/clusters/order-workflow/workflow.ts';
import { createOrderRun, done, failed, placedOn, refused, unknown } from './order-run.ts';
import { HUB, healthy, hosted, ID, noRoom, ORDER_NAME, observedOrder, ordered, time } from './samples.ts';

const NOWHERE = { order: null };
const stateOf = (run: ReturnType<typeof createOrderRun>): string | undefined => {
  const view = cluster.view(run.cluster());
  return view.exists ? view.state : undefined;
};
const progressing = healthy({ order: observedOrder({ phase: 'Progressing' }), hostedCluster: null });
const lost = (run: ReturnType<typeof createOrderRun>): void => {
  run.observe(NOWHERE);
  run.perform('check', done(NOWHERE));
};
const count = (run: ReturnType<typeof createOrderRun>, type: string): number =>
  run.runTypes().filter((each) => each === type).length;
const scale = (run: ReturnType<typeof createOrderRun>, size: number) =>
  run.command({
    type: 'ReviseCluster',
    at: time(40),
    changes: {
      nodeSets: {
        workers: { hostType: { id: 'fc430' }, size },
        gpu: { hostType: { id: 'g5' }, size: 2 },
      },
    },
  });
const scaled = (size: number) => {
  const nodeSets = {
    ...ordered.nodeSets,
    workers: { hostType: { id: 'fc430', name: 'fc430' }, size },
  };
  const spec = clusterOrderSpec({ ...ordered, nodeSets });
  return healthy({ order: observedOrder({ spec }), hostedCluster: hosted({}, { fc430: size, g5: 2 }) });
};

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
        clusterId: ID,
        tenant: 't1',
        template: 'osac.templates.small',
        claim: { controlPlanes: 1, nodes: { fc430: 3, g5: 2 } },
      },
    });
    run.perform('place', done(placedOn()));
    expect(run.commands()).to.deep.equal(['SelectHub', 'StartDispatch']);
    const apply = run.effect('apply');
    expect(apply).to.deep.include({ port: 'management-cluster', lane: `hub:${HUB}`, attempt: 1 });
    expect(apply.args).to.deep.include({ hub: HUB, clusterId: ID, pullSecret: ordered.pullSecret });
    expect(apply.args['manifest']).to.deep.include({ name: orderName(ID), namespace: 'osac-hub' });
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.deep.equal(['RecordPlaced']);
    expect(run.effects()).to.deep.equal(['read']);
    expect(run.effect('read')).to.deep.include({
      operation: 'observeCluster',
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
    const events = run.perform('place', done(placedOn()));
    const assigned = events.find(({ type }) => type === 'StepsAssigned');
    expect(assigned?.data).to.deep.include({ hub: HUB });
    expect(assigned?.data).to.have.nested.property('rules.agents', 'ledger');
  });
  it('takes every input once', () => {
    const run = createOrderRun();
    const event = { type: 'ClusterOrdered', data: ordered } as const;
    expect(run.hear(event, 0)).to.have.lengthOf(1);
    expect(run.hear(event, 0)).to.deep.equal([]);
    run.perform('place', done(placedOn()));
    expect(run.result('place:0.0', done(placedOn('other')))).to.deep.equal([]);
    const [first] = run.pending().commands;
    if (first === undefined) throw new Error('no command');
    const answer = {
      kind: 'command-result',
      commandKey: first.key,
      result: { accepted: true, events: [] },
      now: time(1),
    } as const;
    expect(run.input(answer)).to.have.lengthOf(1);
    expect(run.input(answer)).to.deep.equal([]);
    expect(run.result('nothing:1', done())).to.deep.equal([]);
    expect(run.fire('nothing')).to.deep.equal([]);
  });
  it('hears nothing before it begins and nothing of other streams', () => {
    const run = createOrderRun();
    expect(run.hear({ type: 'ClusterDeletionRequested', data: { at: time(1) } }, 3)).to.deep.equal([]);
    expect(run.observe(healthy())).to.deep.equal([]);
    expect(run.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
    const input = { type: 'ClusterOrdered', data: {}, revision: 0, position: '0', tenant: 't1' };
    expect(clusterOrderWorkflow.runIdOf({ ...input, stream: `cluster-${ID}` })).to.equal(ID);
    expect(clusterOrderWorkflow.runIdOf({ ...input, stream: 'hub-x' })).to.equal(undefined);
  });
  it('ignores observations before the order was sent, and answers that are none', () => {
    const run = createOrderRun();
    run.order();
    expect(run.observe(healthy())).to.deep.equal([]);
    const sent = createOrderRun();
    sent.toHub();
    expect(sent.input({ kind: 'observation', observation: {}, now: time(1) })).to.deep.equal([]);
    expect(sent.observe(progressing)).to.not.deep.equal([]);
    expect(sent.observe(progressing)).to.deep.equal([]);
  });
  it('keeps time even when the runner records timed reads like other effects', () => {
    const run = createOrderRun();
    run.toHub();
    const { effectId } = run.start('read');
    expect(run.result(effectId, done(progressing)).map(({ type }) => type)).to.include('ObservationTaken');
    expect(run.result(effectId, failed())).to.deep.equal([]);
    const again = run.effect('read');
    expect(again.attempt).to.equal(2);
    expect(again.notBefore?.localeCompare(run.at())).to.equal(1);
  });
});

describe('cluster order: waiting for capacity', () => {
  const nothingFits = done({ placed: false, message: 'no management cluster fits', decision: noRoom });

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
    expect(run.commands()).to.deep.equal(['SelectHub', 'StartDispatch']);
    expect(clusterOrderWorkflow.wakes?.types).to.include('HubCapacityReleased');
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
    expect(run.commands()).to.deep.equal(['RecordPlaced']);
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
        detail: 'spec.releaseImage is wrong',
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
    expect(run.runTypes().at(-1)).to.equal('RunClosed');
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
    run.perform('check', done({}));
    run.perform('check', done(healthy()));
    run.commands();
    expect(run.clusterTypes()).to.not.include('HubNotAccepting');
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
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

describe('cluster order: changes of the spec', () => {
  it('reserve room, send the spec, record it, and become ready again', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 5);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(run.effect('resize')).to.deep.include({
      operation: 'resize',
      args: { hub: HUB, clusterId: ID, claim: { controlPlanes: 1, nodes: { fc430: 5, g5: 2 } } },
    });
    run.perform('resize', done({ resized: true }));
    expect(run.effect('apply').args).to.have.nested.property(
      'manifest.spec.nodeRequests[1].numberOfNodes',
      5,
    );
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.include('RecordSpecSynced');
    run.observe(scaled(5));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.effects()).to.deep.equal(['read']);
  });
  it('give room back only after the hub took the smaller spec', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 1);
    expect(run.effects()).to.deep.equal(['apply', 'read']);
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    expect(run.effect('resize').args['claim']).to.deep.equal({
      controlPlanes: 1,
      nodes: { fc430: 1, g5: 2 },
    });
    run.perform('resize', done({ resized: true }));
    expect(run.effects()).to.deep.equal(['read']);
  });
  it('know what room they have before they rely on it, when giving some back may have happened or not', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 1);
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    run.perform('resize', { outcome: 'unknown', reason: 'StoreOutcomeUnknown', message: 'no answer' });
    scale(run, 3);
    expect(run.effects()).to.deep.equal(['resize', 'read']);
    expect(run.effect('resize').args['claim']).to.deep.equal({
      controlPlanes: 1,
      nodes: { fc430: 3, g5: 2 },
    });
    run.perform('resize', done({ resized: true }));
    expect(run.effects()).to.deep.equal(['apply', 'read']);
  });
  it('are sent as one when several come at once, the last one wins', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 4);
    scale(run, 6);
    run.perform('resize', done({ resized: true }));
    expect(
      run.pending().effects.filter(({ operation }) => operation === 'applyClusterOrder'),
    ).to.have.lengthOf(1);
    expect(run.effect('apply').args).to.have.nested.property(
      'manifest.spec.nodeRequests[1].numberOfNodes',
      6,
    );
  });
  it('wait for an effect that may still happen', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 2);
    const first = run.start('apply');
    scale(run, 3);
    expect(run.effect('apply').effectId).to.equal(first.effectId);
    run.result(first.effectId, done({ uid: 'uid-1' }));
    expect(run.effect('apply').effectId).to.not.equal(first.effectId);
  });
  it('wait when the hub has no room, and say so', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 50);
    run.perform(
      'resize',
      done({ resized: false, code: 'CAPACITY_EXCEEDED', message: '50 fc430 nodes wanted' }),
    );
    expect(run.effects()).to.deep.equal(['read']);
    expect(run.timers()).to.include('placement-retry');
    expect(run.commands()).to.deep.equal(['DeferPlacement']);
    expect(JSON.stringify(cluster.view(run.cluster()))).to.contain('no room for more nodes');
    run.fire('placement-retry');
    run.perform('resize', done({ resized: false }));
    scale(run, 4);
    expect(run.effects(), 'a smaller wish is tried at once').to.include('resize');
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    expect(run.cluster()).to.not.have.property('waiting');
  });
  it('cover sets, versions and keys', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    const version = { id: 'v2', name: 'v2', version: '4.22.0', releaseImage: 'r/r:4.22.0' };
    run.command({
      type: 'ReviseCluster',
      at: time(40),
      changes: {
        version,
        sshPublicKey: '',
        pullSecret: null,
        nodeSets: {
          workers: { hostType: { id: 'fc430' }, size: 3 },
          infra: { hostType: { id: 'fc430', name: 'fc430' }, size: 1 },
        },
      },
    });
    run.perform('resize', done({ resized: true }));
    const { args } = run.effect('apply');
    expect(args).to.not.have.property('pullSecret');
    expect(args).to.have.nested.property('manifest.spec.releaseImage', 'r/r:4.22.0');
    expect(args).to.have.deep.nested.property('manifest.spec.nodeRequests', [
      { resourceClass: 'fc430', numberOfNodes: 4 },
    ]);
  });
  it('are sent again when the hub shows another spec, but not for ever', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    const other = (image: string) =>
      healthy({ order: observedOrder({ spec: { ...clusterOrderSpec(ordered), releaseImage: image } }) });
    for (let round = 1; round <= 5; round += 1) {
      run.observe(other(`r/r:${round}`));
      run.observe(healthy({ hostedCluster: hosted({}, { fc430: round % 2 }) }));
      if (run.effects().includes('apply')) run.perform('apply', done({ uid: 'uid-1' }));
      run.commands();
    }
    expect(run.state()).to.have.property('drift', 3);
    expect(run.effects()).to.deep.equal(['read']);
  });
  it('that a private caller makes to the status end with the next observation', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    run.command({
      type: 'ReviseCluster',
      at: time(40),
      changes: { status: { state: 'CLUSTER_STATE_FAILED' } },
    });
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    run.observe(healthy());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
});

describe('cluster order: loss', () => {
  it('of the cluster order is checked, reported, and built again on a retry', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    run.observe(NOWHERE);
    expect(run.commands(), 'one look is not enough').to.deep.equal([]);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ReportLost']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    expect(run.effects(), 'it is not built again by itself').to.deep.equal(['read']);
    run.command({ type: 'RetryCluster', at: time(45) });
    run.perform('apply', done({ uid: 'uid-2' }));
    run.commands();
    run.observe(healthy());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.cluster()).to.have.property('uid', 'uid-2');
  });
  it('of the hosted cluster clears when it is there again', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    const without = healthy({ hostedCluster: null });
    run.observe(without);
    run.perform('check', done(without));
    run.commands();
    expect(run.clusterTypes()).to.include('ClusterLostOnHub');
    run.command({ type: 'RetryCluster', at: time(45) });
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    run.observe(healthy());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('that a stale observation pretends is found out', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    run.observe(NOWHERE);
    run.perform('check', done(healthy()));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.effects()).to.deep.equal(['read']);
    lost(run);
    run.observe(healthy());
    run.commands();
    expect(run.clusterTypes()).to.not.include('ClusterLostOnHub');
  });
});

describe('cluster order: the end', () => {
  const remove = (run: ReturnType<typeof createOrderRun>) =>
    run.command({ type: 'DeleteCluster', at: time(50) });

  it('is immediate before anything was reserved', () => {
    const run = createOrderRun();
    run.order();
    remove(run);
    expect(run.state()).to.deep.equal({ status: 'closed' });
    expect(run.runTypes().at(-1)).to.equal('RunClosed');
    expect(run.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
    expect(run.observe(healthy())).to.deep.equal([]);
  });
  it('gives back what was reserved, also when the answer comes late', () => {
    const run = createOrderRun();
    run.order();
    const { effectId } = run.start('place');
    remove(run);
    const settling = { mode: 'observe', operation: 'release', args: { clusterId: ID } };
    expect(run.effect('place'), 'the reservation may have happened').to.deep.include(settling);
    run.result(effectId, done(placedOn()));
    expect(run.effect('release').args).to.deep.equal({ hub: HUB, clusterId: ID });
    run.perform('release', done());
    expect(run.state()).to.deep.equal({ status: 'closed' });
    expect(run.clusterTypes()).to.include('ClusterDeleted').and.not.include('HubSelected');
  });
  it('gives back what a crashed attempt may have reserved', () => {
    const run = createOrderRun();
    run.order();
    run.start('place');
    remove(run);
    run.perform('place', done());
    run.perform('release', done());
    expect(run.state()).to.deep.equal({ status: 'closed' });
  });
  it('does not dispatch what was cancelled meanwhile', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    const [select] = run.pending().commands;
    run.command({ type: 'CancelOrder', at: time(50) });
    expect(select?.command.type).to.equal('SelectHub');
    expect(run.commands()).to.deep.equal([]);
    expect(run.effects()).to.deep.equal(['release']);
  });
  it('answers a refused dispatch by waiting for the deletion that caused it', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    const refuse = (key: string) =>
      run.input({
        kind: 'command-result',
        commandKey: key,
        result: { accepted: false, code: 'DELETION_REQUESTED', message: 'being deleted' },
        now: time(1),
      });
    refuse('select-hub:0');
    expect(run.pending().commands).to.deep.equal([]);
    const other = createOrderRun();
    other.order();
    other.perform('place', done(placedOn()));
    other.input({
      kind: 'command-result',
      commandKey: 'select-hub:0',
      result: { accepted: true, events: [] },
      now: time(1),
    });
    other.input({
      kind: 'command-result',
      commandKey: 'start-dispatch:0',
      result: { accepted: false, code: 'DELETION_REQUESTED', message: 'being deleted' },
      now: time(1),
    });
    expect(other.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
  });
  it('waits for confirmed absence, then gives the capacity back', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    remove(run);
    expect(run.effects()).to.deep.equal(['delete']);
    run.perform('delete', done({ existed: true }));
    const deleting = healthy({
      order: observedOrder({ deletionTimestamp: time(50), finalizers: ['osac.openshift.io/infrastructure'] }),
    });
    run.observe(deleting);
    expect(run.commands()).to.deep.equal(['BlockDeletion']);
    expect(run.cluster()).to.deep.include({
      waitingFor: [`HostedCluster ${ORDER_NAME}`, 'finalizer osac.openshift.io/infrastructure'],
      status: 'dispatched',
    });
    run.observe(NOWHERE);
    expect(run.commands(), 'absence is confirmed by a look of its own').to.deep.equal([]);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
    expect(run.cluster()).to.have.property('status', 'deleted');
    expect(run.effects()).to.deep.equal(['release']);
    run.perform('release', done());
    expect(run.state()).to.deep.equal({ status: 'closed' });
    expect(run.runTypes().at(-1)).to.equal('RunClosed');
  });
  it('never takes an observation from before the deletion for absence', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    run.observe(NOWHERE);
    const { effectId } = run.start('check');
    remove(run);
    expect(run.observe(NOWHERE), 'the deletion was not sent yet').to.deep.equal([]);
    run.perform('delete', done({ existed: true }));
    run.result(effectId, done(NOWHERE));
    expect(run.commands(), 'that look may have been made before').to.deep.equal([]);
    expect(run.effect('check').effectId).to.match(/\.deletion$/);
    const leaving = observedOrder({ deletionTimestamp: time(50), finalizers: [] });
    run.perform('check', done(healthy({ order: leaving, hostedCluster: null })));
    expect(run.commands()).to.deep.equal([]);
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
  });
  it('settles a dispatch that may have happened before it deletes', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    run.commands();
    const { effectId } = run.start('apply');
    remove(run);
    expect(run.effects()).to.deep.equal(['apply']);
    expect(run.effect('apply'), 'a look ends the doubt').to.deep.include({
      operation: 'observeCluster',
      mode: 'observe',
    });
    run.perform('apply', failed());
    expect(run.effects(), 'the doubt stays').to.deep.equal(['apply']);
    run.result(effectId, done(NOWHERE));
    expect(run.effects()).to.deep.equal(['delete']);
    run.perform('delete', done({ existed: false }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
  });
  it('deletes again what arrives on the hub only after the deletion found nothing there', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    run.commands();
    run.start('apply');
    remove(run);
    run.result(run.start('apply').effectId, done(NOWHERE));
    run.perform('delete', done({ existed: false }));
    run.observe(healthy());
    expect(run.effects()).to.deep.equal(['delete']);
    run.perform('delete', failed());
    run.perform('delete', done({ existed: true }));
    expect(run.effects()).to.deep.equal(['read']);
    run.observe(healthy({ order: observedOrder({ deletionTimestamp: time(50), finalizers: [] }) }));
    expect(run.effects()).to.deep.equal(['read']);
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
  });
  it('goes on when the hub refuses, and tells what it waits for', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    remove(run);
    for (let attempt = 1; attempt <= 11; attempt += 1) run.perform('delete', refused);
    expect(count(run, 'EffectRefused')).to.equal(0);
    expect(run.commands()).to.deep.equal(['BlockDeletion']);
    expect(run.cluster()).to.have.deep.property('waitingFor', [
      'ValidationFailed: spec.releaseImage is wrong',
    ]);
    run.perform('delete', done({ existed: true }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    run.commands();
    run.perform('release', done());
    expect(run.state()).to.deep.equal({ status: 'closed' });
  });
  it('leaves the cluster to its foreign finalizers', () => {
    const run = createOrderRun();
    run.toHub();
    run.command({ type: 'ReviseCluster', at: time(40), changes: { finalizers: ['bench'] } });
    remove(run);
    run.perform('delete', done({ existed: true }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
    run.perform('release', done());
    expect(run.state()).to.deep.equal({ status: 'closed' });
    expect(run.cluster()).to.have.property('status', 'dispatched');
    run.command({ type: 'ReviseCluster', at: time(41), changes: { finalizers: [] } });
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
  it('ignores the answer of a resize that comes too late', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 5);
    const { effectId } = run.start('resize');
    remove(run);
    run.result(effectId, done({ resized: true }));
    expect(run.state()).to.have.nested.property('held.nodes.fc430', 3);
  });
});
