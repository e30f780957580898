import { expect } from 'chai';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun, done, refused } from './order-run.ts';
import { HUB, healthy, hosted, ID, observedOrder, ordered, time } from './samples.ts';
import { NOWHERE, stateOf, lost, scale, scaled } from './order-steps.ts';

describe('cluster order: changes of the spec', () => {
  it('reserve room, send the spec, record it, and become ready again', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 5);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(run.effect('resize')).to.deep.include({
      operation: 'resize',
      args: {
        hub: HUB,
        holder: { kind: 'cluster', id: ID },
        claim: { controlPlanes: 1, nodes: { fc430: 5, g5: 2 } },
      },
    });
    run.perform('resize', done({ resized: true }));
    expect(run.effect('apply').args).to.have.nested.property(
      'manifest.spec.nodeRequests[1].numberOfNodes',
      5,
    );
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.include('RecordApplied');
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
  it('that the hub holds after all are no refusal: it took them before it refused to take them again', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 1);
    run.start('apply'); // and nobody knows what became of it
    run.perform('apply', refused);
    run.commands();
    expect(run.cluster()).to.have.nested.property('changeFailed.reason', 'ValidationFailed');
    run.observe(scaled(1));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.cluster()).to.deep.include({ specPending: false });
    expect(run.effects(), 'what shrinks gives its room back').to.deep.equal(['resize', 'read']);
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
    expect(JSON.stringify(cluster.view(run.cluster()))).to.contain('waiting for 47 × fc430');
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
    expect(run.state()).to.have.nested.property('memo.drift', 3);
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
    expect(run.commands(), 'one look is not enough').to.deep.equal(['RecordObservation']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
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
    expect(run.clusterTypes()).to.not.include('ClusterLostOnHub');
    lost(run);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    run.observe(healthy());
    expect(stateOf(run), 'it is there again').to.equal('CLUSTER_STATE_READY');
  });
});
