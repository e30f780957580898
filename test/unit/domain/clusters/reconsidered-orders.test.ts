import { expect } from 'chai';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { createOrderRun, done, failed, placedOn, unknown } from './order-run.ts';
import { healthy, noRoom, time } from './samples.ts';

describe('cluster order: one that is certainly on no hub', () => {
  const atHub = () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    run.commands();
    return run;
  };
  const stateOf = (run: ReturnType<typeof createOrderRun>): string | undefined => {
    const view = cluster.view(run.cluster());
    return view.exists ? view.state : undefined;
  };

  it('goes to another hub by itself', () => {
    const run = atHub();
    expect(run.timers(), 'also when its lane is closed and nothing is tried').to.deep.equal([
      'reconsider-hub',
    ]);
    for (let attempt = 1; attempt <= 3; attempt += 1) run.perform('apply', failed());
    run.fire('reconsider-hub');
    expect(run.effects()).to.deep.equal(['place']);
    expect(run.effect('place').args).to.include({ mayStay: true });
    run.perform('place', done(placedOn('sim-other')));
    expect(run.commands()).to.deep.equal(['SelectHub']);
    expect(run.cluster()).to.have.nested.property('hub.id', 'sim-other');
    const { effectId, attempt, lane } = run.effect('apply');
    expect({ effectId, attempt, lane }).to.deep.equal({
      effectId: 'apply:0.1.0',
      attempt: 1,
      lane: 'hub:sim-other',
    });
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.timers()).to.not.include('reconsider-hub');
    run.observe(healthy());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('says no more that it waits once it has a place again', () => {
    const run = atHub();
    run.fire('reconsider-hub');
    run.perform('place', done({ placed: false, message: 'no room anywhere', decision: noRoom }));
    expect(run.commands()).to.deep.equal(['DeferPlacement']);
    run.fire('placement-retry');
    run.perform('place', done(placedOn()));
    expect(run.commands()).to.deep.equal(['SelectHub']);
    expect(run.cluster()).to.not.have.property('waiting');
  });
  it('stays where it is when no other hub takes it, and asks less and less often', () => {
    const run = atHub();
    const waits: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const since = Date.parse(run.at());
      const due = run.pending().timers.find(({ timerId }) => timerId === 'reconsider-hub')?.dueAt ?? '';
      waits.push(Math.round((Date.parse(due) - since) / 60_000));
      run.fire('reconsider-hub');
      run.perform('place', done(placedOn()));
      expect(run.commands()).to.deep.equal([]);
    }
    expect(waits).to.deep.equal([1, 2, 4, 8, 10, 10]);
    expect(run.clusterTypes().filter((type) => type === 'HubSelected')).to.have.lengthOf(1);
    run.perform('apply', done({ uid: 'uid-1' }));
    expect(run.commands()).to.deep.equal(['RecordApplied']);
  });
  it('stays with its hub when an attempt may have come through', () => {
    for (const doubtful of [unknown, undefined]) {
      const run = atHub();
      const { effectId } = run.start('apply');
      if (doubtful !== undefined) run.result(effectId, doubtful);
      expect(run.timers()).to.deep.equal([]);
      run.perform('apply', failed());
      expect(run.timers(), 'the doubt stays').to.deep.equal([]);
      expect(run.fire('reconsider-hub')).to.deep.equal([]);
    }
  });
  it('hears nothing of what another hub shows', () => {
    const run = atHub();
    run.fire('reconsider-hub');
    run.perform('place', done(placedOn('sim-other')));
    run.commands();
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    expect(run.observe({ ...healthy(), hub: 'sim-left' })).to.deep.equal([]);
    expect(run.observe({ order: null, hub: 'sim-left' })).to.deep.equal([]);
    run.observe({ ...healthy(), hub: 'sim-other' });
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('stays on a retry where the refusal shows it on its hub', () => {
    const run = atHub();
    run.perform('apply', { outcome: 'refused', reason: 'DuplicateOrders', message: 'two of them' });
    run.commands();
    run.command({ type: 'RetryCluster', at: time(30) });
    expect(run.effects()).to.deep.equal(['apply']);
  });
  it('is deleted without its hub, which may be away for good', () => {
    for (const attempts of [0, 1, 3]) {
      const run = atHub();
      for (let attempt = 0; attempt < attempts; attempt += 1) run.perform('apply', failed());
      run.command({ type: 'DeleteCluster', at: time(50) });
      expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
      expect(run.effects()).to.deep.equal(['release']);
      run.perform('release', done());
      expect(run.cluster()).to.include({ status: 'deleted', how: 'not-dispatched' });
      expect(run.isClosed()).to.equal(true);
    }
  });
});
