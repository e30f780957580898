import { expect } from 'chai';
import { createOrderRun, done, failed, placedOn, refused } from './order-run.ts';
import { HUB, healthy, ID, ORDER_NAME, observedOrder, time } from './samples.ts';
import { NOWHERE, count, scale } from './order-steps.ts';

describe('cluster order: the end', () => {
  const remove = (run: ReturnType<typeof createOrderRun>) =>
    run.command({ type: 'DeleteCluster', at: time(50) });

  it('is immediate before anything was reserved', () => {
    const run = createOrderRun();
    run.order();
    remove(run);
    expect(run.isClosed()).to.equal(true);
    expect(run.isClosed()).to.equal(true);
    expect(run.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
    expect(run.observe(healthy())).to.deep.equal([]);
  });
  it('gives back what was reserved, also when the answer comes late', () => {
    const run = createOrderRun();
    run.order();
    const { effectId } = run.start('place');
    remove(run);
    const settling = { mode: 'observe', operation: 'release', args: { holder: { kind: 'cluster', id: ID } } };
    expect(run.effect('place'), 'the reservation may have happened').to.deep.include(settling);
    run.result(effectId, done(placedOn()));
    expect(run.effect('release').args).to.deep.equal({ hub: HUB, holder: { kind: 'cluster', id: ID } });
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
    expect(run.clusterTypes()).to.include('ClusterDeleted').and.not.include('HubSelected');
  });
  it('gives back what a crashed attempt may have reserved', () => {
    const run = createOrderRun();
    run.order();
    run.start('place');
    remove(run);
    run.perform('place', done());
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
  });
  it('does not dispatch what was cancelled while its place was found', () => {
    const run = createOrderRun();
    run.order();
    const { effectId } = run.start('place');
    run.command({ type: 'CancelOrder', at: time(50) }, 'unheard');
    run.result(effectId, done(placedOn()));
    expect(run.commands()).to.deep.equal(['SelectHub']);
    expect(run.clusterTypes()).to.not.include('HubSelected');
    expect(run.effects()).to.deep.equal(['release']);
    expect(run.effect('release').args).to.deep.equal({ hub: HUB, holder: { kind: 'cluster', id: ID } });
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
    expect(run.commands()).to.deep.equal(['RecordObservation']);
    expect(run.cluster()).to.deep.include({
      waitingFor: [`HostedCluster ${ORDER_NAME}`, 'finalizer osac.openshift.io/infrastructure'],
      status: 'dispatched',
    });
    run.observe(NOWHERE);
    expect(run.commands(), 'absence is confirmed by a look of its own').to.deep.equal(['RecordObservation']);
    expect(run.cluster()).to.have.property('status', 'dispatched');
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.include('ConfirmAbsence');
    expect(run.cluster()).to.have.property('status', 'deleted');
    expect(run.effects()).to.deep.equal(['release']);
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
    expect(run.isClosed()).to.equal(true);
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
    expect(run.commands(), 'that look may have been made before').to.not.include('ConfirmAbsence');
    expect(run.effect('check').effectId).to.match(/\.deletion\./);
    const leaving = observedOrder({ deletionTimestamp: time(50), finalizers: [] });
    run.perform('check', done(healthy({ order: leaving, hostedCluster: null })));
    run.observe(NOWHERE);
    run.commands();
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.include('ConfirmAbsence');
  });
  it('confirms absence on a machine whose clock is behind the one that deleted', () => {
    const run = createOrderRun();
    run.toHub();
    remove(run);
    run.perform('delete', done({ existed: true }));
    run.takeOver(3_600_000);
    run.observe(NOWHERE);
    run.commands();
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.include('ConfirmAbsence');
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
      operation: 'observeObject',
      mode: 'observe',
    });
    run.perform('apply', failed());
    expect(run.effects(), 'the doubt stays').to.deep.equal(['apply']);
    run.result(effectId, done(NOWHERE));
    expect(run.effects()).to.deep.equal(['delete']);
    run.perform('delete', done({ existed: false }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.include('ConfirmAbsence');
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
    expect(run.commands()).to.include('ConfirmAbsence');
  });
  it('goes on when the hub refuses, and tells what it waits for', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    remove(run);
    for (let attempt = 1; attempt <= 11; attempt += 1) run.perform('delete', refused);
    expect(count(run, 'EffectRefused')).to.equal(0);
    expect(run.commands()).to.deep.equal(['BlockDeletion']);
    expect(run.cluster()).to.have.deep.property('waitingFor', ['ValidationFailed: the spec is wrong']);
    run.perform('delete', done({ existed: true }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    run.commands();
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
  });
  it('leaves the cluster to its foreign finalizers', () => {
    const run = createOrderRun();
    run.toHub();
    run.command({ type: 'ReviseCluster', at: time(40), changes: { finalizers: ['bench'] } });
    remove(run);
    run.perform('delete', done({ existed: true }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.commands()).to.include('ConfirmAbsence');
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
    expect(run.cluster()).to.have.property('status', 'dispatched');
    run.command({ type: 'ReviseCluster', at: time(41), changes: { finalizers: [] } });
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
  it('confirms the absence of what was lost before, by a look after the deletion', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    expect(run.clusterTypes()).to.include('ClusterLostOnHub');
    remove(run);
    expect(run.effects(), 'a look from before the deletion confirms nothing').to.not.include('check');
    run.perform('delete', done({ existed: false }));
    run.observe(NOWHERE);
    run.perform('check', done(NOWHERE));
    run.commands();
    run.perform('release', done());
    expect(run.isClosed()).to.equal(true);
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
  it('ignores the answer of a resize that comes too late', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 5);
    const { effectId } = run.start('resize');
    remove(run);
    run.result(effectId, done({ resized: true }));
    expect(run.effects()).to.deep.equal(['delete']);
  });
});
