import { expect } from 'chai';
import { stringAt } from '../../../../src/domain/json-tools.ts';
import type { PendingEffect } from '../../../../src/domain/workflow.ts';
import { clusterOrderWorkflow } from '../../../../src/domain/clusters/order-workflow/workflow.ts';
import { failed, refused } from './order-run.ts';
import { stateOf } from './order-steps.ts';
import { createSiteOrder, withAddresses, type Fate, type SiteOrder } from './site-order.ts';
import { ID, time } from './samples.ts';

const isReady = (run: SiteOrder) => (): boolean => stateOf(run) === 'CLUSTER_STATE_READY';
const isWithdrawn = (run: SiteOrder) => (): boolean => run.clusterTypes().includes('ClusterWithdrawn');
const called = (run: SiteOrder): readonly string[] =>
  run.model.journal.filter((name) => !name.endsWith('.look'));
const ending =
  (operation: string, fate: Fate) =>
  (effect: PendingEffect): Fate =>
    effect.operation === operation ? fate : 'answer';

const FORWARD = [
  'agents.select',
  'pools.vlan',
  'site.l2-create',
  'site.ports-bind',
  'agents.addresses',
  'pools.prefix',
  'site.l3-create',
  'site.l3-bind',
  'made-objects.values',
  'site.nat-ensure',
  'site.dns-ensure',
  'site.dns-propagated',
];
const BACK = [
  'site.dns-remove',
  'site.nat-remove',
  'made-objects.remove',
  'site.l3-unbind',
  'site.l3-delete',
  'pools.release-prefix',
  'site.ports-reset',
  'site.l2-delete',
  'pools.release-vlan',
  'agents.return',
  'scheduler.release',
];

describe('an order whose steps the ledger does', () => {
  it('goes through them one after the other and is ready once it was validated', () => {
    const run = createSiteOrder(withAddresses);
    run.play(isReady(run));
    expect(run.model.wrongs).to.deep.equal([]);
    expect(called(run)).to.deep.equal([
      'scheduler.place',
      'made-objects.make',
      ...FORWARD,
      'management-cluster.applyObject',
      ...Array.from({ length: 7 }, () => 'site.task'),
    ]);
    expect(run.clusterTypes().slice(-2)).to.deep.equal(['ClusterInstalled', 'ClusterBecameReady']);
    expect(run.isFolded()).to.equal(true);
    expect(run.timers()).to.deep.equal([]);
  });

  it('gives everything back in reverse order when it is deleted', () => {
    const run = createSiteOrder(withAddresses);
    run.play(isReady(run));
    run.model.journal.splice(0);
    run.delete();
    run.play(run.isClosed);
    expect(run.model.wrongs).to.deep.equal([]);
    expect(called(run)[0]).to.equal('management-cluster.deleteObject');
    expect(called(run).slice(1).toSorted()).to.deep.equal(BACK.toSorted());
    expect(run.model.held()).to.deep.equal([]);
    expect(run.isClosed()).to.equal(true);
    expect(run.clusterTypes().at(-1)).to.equal('ClusterDeleted');
  });

  it('shows each step with its rule, its attempts and the id of its effect', () => {
    const run = createSiteOrder();
    run.model.patience.set('vlan', 1_000);
    run.play(() => run.timers().includes('pool-retry'));
    const shown = clusterOrderWorkflow.shownSteps(run.state());
    expect(shown.find(({ step }) => step === 'agents')).to.deep.include({
      rule: 'agents',
      state: 'done',
      effect: `clusterOrder-${ID}/agents:0.0`,
      attempts: 1,
    });
    expect(shown.find(({ step }) => step === 'vlan')).to.include({
      state: 'waits',
      waiting: 'no VLAN is free',
    });
    expect(shown.find(({ step }) => step === 'l2')).to.include({ state: 'pending' });
    run.command({ type: 'AbortOrder', at: time(40), reason: 'wrong site' });
    run.play(isWithdrawn(run));
    const undone = clusterOrderWorkflow.shownSteps(run.state());
    expect(undone.find(({ step }) => step === 'agents')).to.include({
      state: 'undone',
      effect: `clusterOrder-${ID}/undo-agents:0`,
    });
  });

  it('waits where something is short, and asks again', () => {
    const run = createSiteOrder();
    for (const what of ['agents', 'vlan', 'addresses', 'dns']) run.model.patience.set(what, 2);
    run.play(isReady(run));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(called(run).filter((name) => name === 'agents.select')).to.have.lengthOf(3);
  });

  it('asks at once when a pool has news', () => {
    const run = createSiteOrder();
    run.model.patience.set('agents', 1);
    const timer = `agents-retry:${ID}`;
    run.play(() => run.timers().includes(timer));
    expect(run.ready()).to.deep.equal([]);
    run.fire(timer);
    expect(run.ready().map(({ operation }) => operation)).to.deep.equal(['select']);
  });

  it('binds the ports once more where no address shows, and then fails', () => {
    const run = createSiteOrder();
    run.model.patience.set('addresses', 1_000);
    run.play(isWithdrawn(run));
    expect(called(run).filter((name) => name === 'site.ports-bind')).to.have.lengthOf(2);
    expect(run.clusterEvents().find(({ type }) => type === 'ClusterFailed')?.data).to.include({
      reason: 'AddressesNotObserved',
      permanent: true,
    });
    expect(run.model.held()).to.deep.equal([]);
  });
});

describe('an order of which a step fails for good', () => {
  const OPERATIONS = [
    'select',
    'vlan',
    'l2-create',
    'ports-bind',
    'prefix',
    'l3-create',
    'l3-bind',
    'nat-ensure',
    'dns-ensure',
  ];
  for (const operation of OPERATIONS) {
    it(`is undone in reverse order: ${operation} is refused`, () => {
      const run = createSiteOrder(withAddresses);
      run.play(isWithdrawn(run), ending(operation, refused));
      expect(run.model.wrongs).to.deep.equal([]);
      expect(run.model.held()).to.deep.equal([]);
      expect(run.clusterTypes()).to.include.members(['ClusterFailed', 'ClusterAborted', 'ClusterWithdrawn']);
      expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
      expect(called(run)).to.not.include('management-cluster.applyObject');
      expect(run.isFolded()).to.equal(true);
    });
  }

  it('is undone after as many attempts as its row allows', () => {
    const run = createSiteOrder();
    run.play(isWithdrawn(run), ending('l2-create', failed('SiteUnavailable')));
    expect(run.model.held()).to.deep.equal([]);
    const attempts = run
      .runLog()
      .filter(({ type, data }) => type === 'EffectStarted' && stringAt(data, 'effectId').startsWith('l2:'));
    expect(attempts.length).to.be.within(5, 6);
  });

  it('is undone when its cluster does not pass its validation', () => {
    const run = createSiteOrder(withAddresses);
    run.model.patience.set('applications', 1_000);
    run.play(isWithdrawn(run));
    expect(run.clusterEvents().find(({ type }) => type === 'ClusterFailed')?.data).to.include({
      reason: 'ValidationFailed',
      message: 'task applications did not pass: not yet',
    });
    expect(called(run)).to.include('management-cluster.deleteObject');
    expect(run.model.wrongs).to.deep.equal([]);
    expect(run.model.held()).to.deep.equal([]);
  });

  it('repeats a task that did not pass at first', () => {
    const run = createSiteOrder();
    run.model.patience.set('certificates', 2);
    run.play(isReady(run));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });

  it('is kept where its annotation says so, until somebody decides', () => {
    const keep = { annotations: { 'fulfillment-ledger/keep-on-failure': 'true' } };
    const run = createSiteOrder(keep);
    run.play(() => stateOf(run) === 'CLUSTER_STATE_FAILED', ending('dns-ensure', refused));
    expect(run.clusterTypes()).to.not.include('ClusterAborted');
    expect(run.model.held()).to.include('agents');
    run.command({ type: 'RetryCluster', at: time(40) });
    run.play(isReady(run));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });

  it('may be retried once it is undone', () => {
    const run = createSiteOrder();
    run.play(isWithdrawn(run), ending('dns-ensure', refused));
    expect(run.command({ type: 'RetryCluster', at: time(40) }).accepted).to.equal(true);
    run.play(isReady(run));
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.model.wrongs).to.deep.equal([]);
    run.delete();
    run.play(run.isClosed);
    expect(run.model.held()).to.deep.equal([]);
  });

  it('is deleted at once after that', () => {
    const run = createSiteOrder();
    run.play(isWithdrawn(run), ending('dns-ensure', refused));
    run.delete();
    run.play(run.isClosed);
    expect(run.clusterTypes().at(-1)).to.equal('ClusterDeleted');
    expect(run.isClosed()).to.equal(true);
  });

  it('goes on past a step that an operator skips', () => {
    const keep = { annotations: { 'fulfillment-ledger/keep-on-failure': 'true' } };
    const run = createSiteOrder(keep);
    run.play(() => stateOf(run) === 'CLUSTER_STATE_FAILED', ending('task', refused));
    expect(
      run.decided({
        type: 'SkipStep',
        step: 'post-install-certificates',
        at: time(41),
        by: 'op',
        reason: 'by hand',
      }).accepted,
    ).to.equal(true);
    expect(
      run.decided({ type: 'SkipStep', step: 'vlan', at: time(41), by: 'op', reason: 'by hand' }),
    ).to.deep.include({ code: 'NOT_SKIPPABLE' });
  });
});

describe('an order that somebody gives up', () => {
  it('is cancelled as long as it was never ready, and gives back what it took', () => {
    const run = createSiteOrder(withAddresses);
    run.play(() => called(run).includes('site.dns-ensure'));
    expect(run.command({ type: 'CancelOrder', at: time(40) }).accepted).to.equal(true);
    run.play(run.isClosed);
    expect(run.model.wrongs).to.deep.equal([]);
    expect(run.model.held()).to.deep.equal([]);
    expect(run.clusterTypes().at(-1)).to.equal('ClusterDeleted');
  });

  it('is aborted with a reason, and never after it was ready', () => {
    const run = createSiteOrder();
    run.play(() => called(run).includes('site.ports-bind'));
    expect(run.command({ type: 'AbortOrder', at: time(40), reason: 'wrong site' }).accepted).to.equal(true);
    expect(run.command({ type: 'RetryCluster', at: time(40) })).to.deep.include({ code: 'BEING_UNDONE' });
    run.play(isWithdrawn(run));
    expect(run.model.held()).to.deep.equal([]);
    run.command({ type: 'RetryCluster', at: time(41) });
    run.play(isReady(run));
    expect(run.command({ type: 'AbortOrder', at: time(42), reason: 'x' })).to.deep.include({
      code: 'PIVOT_PASSED',
    });
    expect(run.command({ type: 'CancelOrder', at: time(42) })).to.deep.include({
      code: 'ALREADY_DISPATCHED',
    });
  });

  it('undoes what succeeds after that', () => {
    const run = createSiteOrder();
    run.play(() => run.ready().some(({ operation }) => operation === 'l2-create'));
    const [effect] = run.ready();
    if (effect === undefined) throw new Error('nothing to start');
    run.begin(effect);
    run.command({ type: 'AbortOrder', at: time(40), reason: 'wrong site' });
    run.play(isWithdrawn(run));
    expect(run.model.held()).to.deep.equal([]);
    // The call was on its way all that time.
    run.result(effect.effectId, { outcome: 'done', result: run.model.perform(effect) ?? {} });
    run.play();
    expect(run.model.held()).to.deep.equal([]);
  });
});
