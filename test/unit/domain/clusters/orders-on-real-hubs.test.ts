import { expect } from 'chai';
import type { ClusterObservation, ObservedHosted } from '../../../../src/domain/clusters/observed.ts';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun, done } from './order-run.ts';
import { healthy, hosted, observedOrder, ORDER_NAME } from './samples.ts';
import { onHub, up, leaving, scale, withSize, msUntil, types, remove } from './automated-run.ts';

describe('cluster order on a real hub', () => {
  it('sends a burst of changes at its end, and not later than after some seconds', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up());
    run.commands();
    const change = (size: number): number => {
      scale(run, size);
      run.commands();
      run.perform('resize', done({ resized: true }));
      return msUntil(run, run.effect('apply'));
    };
    expect(change(4)).to.be.within(1_800, 2_000);
    run.after(1_500);
    expect(change(5), 'counted from the last one').to.be.within(1_800, 2_000);
    for (let i = 0; i < 5; i += 1) {
      run.after(1_500);
      change(6 + i);
    }
    run.after(1_000);
    expect(change(20)).to.be.lessThan(1_000);
    const sent = run.effect('apply').args['manifest'] as { spec: { nodeRequests: unknown[] } };
    expect(sent.spec.nodeRequests).to.deep.include({ resourceClass: 'fc430', numberOfNodes: 20 });
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    expect(run.effects()).to.not.include('apply');
  });
  it('a simulated hub and a first order do not wait', () => {
    const run = createOrderRun();
    run.toReady(healthy());
    scale(run, 4);
    run.commands();
    run.perform('resize', done({ resized: true }));
    expect(run.effect('apply')).to.not.have.property('notBefore');
  });
  it('records which fields somebody had changed on the hub', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(withSize(7));
    run.perform('apply', done({ uid: 'uid-1', did: 'patched', fields: ['nodeRequests'] }));
    run.commands();
    expect(run.clusterTypes()).to.include('ClusterDriftCorrected');
    expect(types(run, 'AutomationRequested'), 'what is asked for is the same').to.equal(1);
  });
  it('tells of further objects with the cluster’s label once, and keeps to its own', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up({ duplicates: ['order-copy'] }));
    run.commands();
    expect(types(run, 'ClusterOrdersDuplicated')).to.equal(1);
    expect(run.observe(up()), 'a look by name says nothing of others').to.deep.equal([]);
    run.observe(up({ duplicates: [] }));
    run.observe(up({ duplicates: ['order-copy'] }));
    run.commands();
    expect(types(run, 'ClusterOrdersDuplicated')).to.equal(2);
  });
  it('is not gone while its HostedCluster is there without its order', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up());
    run.commands();
    remove(run);
    const orphaned: ClusterObservation = { order: null, hostedCluster: hosted() };
    run.observe(orphaned);
    run.commands();
    expect(run.effects()).to.deep.equal(['read']);
    expect(run.cluster()).to.have.deep.property('waitingFor', [`HostedCluster ${ORDER_NAME}`]);
    run.observe({ order: null });
    run.perform('check', done(orphaned));
    run.commands();
    expect(run.cluster()).to.have.property('status', 'dispatched');
    run.observe({ order: null });
    run.perform('check', done({ order: null }));
    run.commands();
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
  it('raises an alarm when the teardown takes too long, and goes on', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    remove(run);
    run.observe(leaving());
    run.commands();
    expect(run.timers()).to.include('deadline:teardown');
    run.fire('deadline:teardown');
    run.perform('check', done(leaving()));
    run.commands();
    expect(run.cluster()).to.have.nested.property('overdue.since');
    const view = cluster.view(run.cluster());
    expect(view.exists && cluster.marks?.(view.document)).to.deep.equal(['deletion-overdue']);
    expect(run.effects()).to.include('read');
    run.observe({ order: null });
    run.perform('check', done({ order: null }));
    run.commands();
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
});

describe('cluster order: what the watch of a hub and timed reads tell side by side', () => {
  /** The order in a state of its own version, with so many nodes. */
  const shown = (version: number, nodes: number, change: Partial<ClusterObservation> = {}) =>
    healthy({
      order: observedOrder({ resourceVersion: String(version) }),
      hostedCluster: hosted({}, { fc430: nodes, g5: 2 }),
      ...change,
    });
  const counted = (run: ReturnType<typeof createOrderRun>): unknown => {
    run.commands();
    const { readyNodes } = run.cluster() as { readyNodes?: { workers?: number } };
    return readyNodes?.workers;
  };
  const watched = (version: number, nodes: number) => {
    const run = createOrderRun();
    run.toReady(shown(version, nodes));
    return run;
  };

  it('an older state that comes late is not told after the newer one', () => {
    const run = watched(10, 3);
    expect(run.observe(shown(9, 0))).to.deep.equal([]);
    const askedAt = '2026-11-21T11:59:00.000Z';
    expect(run.observe(shown(9, 0, { askedAt })), 'asked before the newer one came').to.deep.equal([]);
    expect(counted(run)).to.equal(3);
    run.observe(shown(11, 2));
    expect(counted(run)).to.equal(2);
    expect(counted(watched(99, 3))).to.equal(3);
    const longer = watched(99, 3);
    longer.observe(shown(100, 2));
    expect(counted(longer), 'versions are numbers').to.equal(2);
  });
  it('what a timed read saw is not told when it was overtaken before its answer came', () => {
    const run = watched(10, 3);
    const askedAt = run.at();
    run.observe(shown(12, 2));
    run.observe(shown(11, 0, { askedAt }));
    expect(counted(run)).to.equal(2);
  });
  it('a hub whose versions went back is believed when it was asked after that, and its watch from then on', () => {
    const run = watched(10, 3);
    run.after(1_000);
    run.observe(shown(5, 1, { askedAt: run.at() }));
    expect(counted(run)).to.equal(1);
    run.observe(shown(6, 2));
    expect(counted(run)).to.equal(2);
  });
  it('another object under the name has versions of its own', () => {
    const run = watched(10, 3);
    run.observe(shown(5, 1, { order: observedOrder({ uid: 'another', resourceVersion: '5' }) }));
    expect(counted(run)).to.equal(1);
  });
  it('versions that are no numbers say nothing of which is newer', () => {
    const run = createOrderRun();
    const named = (name: string, nodes: number) =>
      shown(0, nodes, { order: observedOrder({ resourceVersion: name }) });
    run.toReady(named('b', 3));
    run.observe(named('a', 1));
    expect(counted(run)).to.equal(1);
  });
  /** One state of the order, and its HostedCluster in one of its own. */
  const beside = (
    hostedVersion: string,
    nodes: number,
    change: Partial<ClusterObservation> = {},
    uid = 'h',
  ) =>
    shown(10, nodes, {
      hostedCluster: {
        ...(hosted({}, { fc430: nodes, g5: 2 }) as ObservedHosted),
        uid,
        resourceVersion: hostedVersion,
      },
      ...change,
    });
  const watchedBeside = (hostedVersion: string, nodes: number) => {
    const run = createOrderRun();
    run.toReady(beside(hostedVersion, nodes));
    return run;
  };
  it('of one state of the order an older HostedCluster that comes late is not told after the newer one', () => {
    const run = watchedBeside('99', 3);
    run.observe(beside('100', 2));
    expect(counted(run)).to.equal(2);
    const askedAt = '2026-11-21T11:59:00.000Z';
    for (const late of [beside('99', 3), beside('99', 3, { askedAt })])
      expect(run.observe(late)).to.deep.equal([]);
    expect(counted(run)).to.equal(2);
    run.after(1_000);
    run.observe(beside('98', 1, { askedAt: run.at() }));
    expect(counted(run), 'asked after that: it was restored').to.equal(1);
  });
  it('another HostedCluster, and one whose version is no number, is told as it comes', () => {
    const run = watchedBeside('100', 3);
    run.observe(beside('5', 2, {}, 'another'));
    expect(counted(run)).to.equal(2);
    run.observe(beside('a', 1, {}, 'another'));
    expect(counted(run)).to.equal(1);
    run.observe(beside('100', 3, { order: observedOrder({ resourceVersion: '11' }) }));
    expect(counted(run), 'a newer state of the order').to.equal(3);
  });
  it('the next life knows which state was told last', () => {
    const run = watched(10, 3);
    expect(run.replayed()).to.deep.equal(run.state());
    expect(run.state()).to.have.nested.property('subject.seenVersion.resourceVersion', '10');
    const withHosted = watchedBeside('99', 3);
    expect(withHosted.replayed()).to.deep.equal(withHosted.state());
    expect(withHosted.state()).to.have.nested.property('subject.seenVersion.hosted.resourceVersion', '99');
  });
});
