import { expect } from 'chai';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { done, failed, unknown } from './order-run.ts';
import { hosted, ID, ORDER_NAME, ordered, time } from './samples.ts';
import {
  MINUTE,
  onHub,
  job,
  manual,
  up,
  nothing,
  busy,
  leaving,
  stateOf,
  scale,
  withSize,
  watched,
  msUntil,
  types,
  remove,
  type Run,
} from './automated-run.ts';

describe('cluster order on a hub whose automation we run: aap', () => {
  it('launches one job for what the hub holds, follows it, and is ready when job and hub say so', () => {
    const run = onHub('aap');
    const trigger = run.effect('trigger');
    expect(trigger).to.deep.include({
      port: 'automation',
      operation: 'trigger',
      lane: 'automation:aap:east-1',
      mode: 'perform',
      args: {
        hub: 'east-1',
        mode: 'aap',
        purpose: 'provision',
        place: { namespace: 'osac-hub', name: ORDER_NAME, clusterId: ID },
      },
    });
    run.perform('trigger', done(job('101', 'Pending')));
    expect(run.commands()).to.deep.equal(['RecordAutomationRequest']);
    expect(run.effects()).to.have.members(['job', 'read']);
    expect(run.effect('job').args).to.deep.include({ job: { id: '101', workflow: true } });
    run.observe(up());
    run.commands();
    expect(stateOf(run), 'the playbook still works on it').to.equal('CLUSTER_STATE_PROGRESSING');
    watched(run, job('101', 'Succeeded').job);
    run.commands();
    run.observe(up());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(run.effects(), 'a job that has ended is looked at no more').to.deep.equal(['read']);
    expect(run.clusterTypes()).to.include.members(['AutomationRequested', 'AutomationJobChanged']);
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('is FAILED while the last job has failed, launches again after a while, and stays so meanwhile', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    watched(run, job('101', 'Failed', { outputTail: 'fatal: no hosts' }).job);
    run.observe(nothing);
    run.commands();
    expect(run.cluster()).to.have.nested.property('failure.reason', 'JobFailed');
    expect(run.cluster()).to.have.nested.property('failure.permanent', false);
    expect(run.cluster()).to.have.nested.property(
      'failure.detail',
      'job 101 ended as Failed: fatal: no hosts',
    );
    const again = run.effect('trigger');
    expect(again.effectId).to.equal('trigger:0.0.1');
    expect(msUntil(run, again)).to.be.within(MINUTE, 2 * MINUTE);
    run.perform('trigger', done(job('102', 'Running')));
    run.observe(busy);
    run.commands();
    expect(stateOf(run), 'until a job succeeds').to.equal('CLUSTER_STATE_FAILED');
    watched(run, job('102', 'Failed').job);
    expect(msUntil(run, run.effect('trigger')), 'twice as long').to.be.within(3 * MINUTE, 4 * MINUTE);
  });
  it('launches for a changed spec only when the job before has ended', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    scale(run, 5);
    run.commands();
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    expect(run.effects()).to.not.include('trigger');
    watched(run, job('101', 'Succeeded').job);
    expect(run.effect('trigger').effectId).to.match(/^trigger:[1-9]\d*\.0\.0$/);
    expect(run.effect('trigger').args).to.deep.include({ again: 'nodes' });
    run.perform('trigger', done(job('102', 'Running')));
    run.observe(withSize(5));
    run.commands();
    expect(stateOf(run), 'the first job was for the old spec').to.equal('CLUSTER_STATE_PROGRESSING');
    watched(run, job('102', 'Succeeded').job);
    run.observe(withSize(5));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('says so when a job’s record is gone, looks on, and believes what the hub shows', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    watched(run, null);
    expect(watched(run, null), 'told once').to.deep.equal([]);
    run.observe(busy);
    run.commands();
    expect(run.cluster()).to.have.nested.property('failure.reason', 'JobStatusUnknown');
    expect(run.effects()).to.include('job').and.to.not.include('trigger');
    run.observe(up());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    watched(run, job('101', 'Succeeded').job);
    expect(run.effects()).to.not.include('job');
  });
  it('takes no news of another job for its own', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    expect(watched(run, job('99', 'Failed').job)).to.deep.equal([]);
    expect(watched(run, job('101', 'Running').job)).to.deep.equal([]);
  });
  it('cancels a running job before it has the cluster torn down, and waits for its end', () => {
    const run = onHub('aap');
    run.perform('trigger', done(job('101', 'Running')));
    remove(run);
    run.observe(leaving());
    run.commands();
    expect(run.effects()).to.have.members(['cancel', 'job', 'read']);
    expect(run.cluster()).to.have.nested.property('waitingFor[0]', 'job 101 Running');
    run.perform('cancel', done({ cancelled: true }));
    expect(run.effects(), 'it has not ended yet').to.have.members(['job', 'read']);
    watched(run, job('101', 'Canceled').job);
    expect(run.effect('undo')).to.deep.include({ effectId: 'undo:0.0', operation: 'trigger' });
    expect(run.effect('undo').args).to.deep.include({ purpose: 'deprovision' });
    run.perform('undo', done(job('102', 'Running')));
    expect(run.effect('job').args).to.deep.include({ job: { id: '102', workflow: true } });
    watched(run, job('102', 'Failed', { outputTail: 'x\ncannot detach\n' }).job);
    run.commands();
    expect(run.cluster()).to.have.nested.property('waitingFor[0]', 'job 102 Failed: cannot detach');
    expect(msUntil(run, run.effect('undo')), 'never given up').to.be.within(MINUTE, 2 * MINUTE);
    expect(types(run, 'AutomationRequested')).to.equal(2);
  });
  it('names the job that a deletion waits for once, where the status shows it, too', () => {
    const run = onHub('aap', 'ledger');
    run.perform('prepare', done({ did: ['finalizer'] }));
    run.perform('trigger', done(job('101', 'Running')));
    watched(run, job('101', 'Succeeded').job);
    remove(run);
    run.observe(leaving());
    run.perform('undo', done(job('102', 'Running')));
    const jobs = [{ jobId: '102', type: 'deprovision', state: 'Pending', timestamp: time(50) }] as const;
    run.observe(leaving({ order: manual({ deletionTimestamp: time(50), finalizers: [], jobs: [...jobs] }) }));
    run.commands();
    const { waitingFor } = run.cluster() as { waitingFor?: readonly string[] };
    expect(waitingFor?.filter((what) => what.startsWith('job'))).to.deep.equal(['job 102 Running']);
  });
  it('a deletion looks for a job that an attempt may have left, and launches none', () => {
    const run = onHub('aap');
    const { effectId } = run.start('trigger');
    run.result(effectId, unknown);
    run.command({ type: 'DeleteCluster', at: time(45) });
    expect(run.effect('trigger')).to.deep.include({ operation: 'lookUp', mode: 'observe' });
    run.perform('trigger', done(job('101', 'Running')));
    expect(run.effect('cancel').args).to.deep.include({ job: { id: '101', workflow: true } });
  });
});

describe('cluster order on a hub whose automation we run: eda', () => {
  it('a webhook that was taken is no end: the hub shows what came of it', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(busy);
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(run.effects()).to.deep.equal(['read']);
    run.observe(up());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('is not ready by what the hub showed before the webhook was taken', () => {
    const run = onHub('eda');
    run.observe(up());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
  });
  it('posts again when nothing came of it for long, and only with a look before', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    const posted = run.at();
    expect(run.effects(), 'nothing was seen since').to.deep.equal(['read']);
    run.observe(nothing);
    const again = run.effect('trigger');
    expect(again.effectId).to.equal('trigger:0.0.1');
    expect(msUntil(run, again)).to.be.within(4 * MINUTE, 5 * MINUTE);
    expect(again.args['since'], 'the port looks first').to.satisfy((since: string) => since <= posted);
    run.observe(busy);
    expect(run.effects(), 'it is at work after all').to.deep.equal(['read']);
  });
  it('posts again where the first playbook left a node pool out: finalizer and cluster say nothing of that', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up({ hostedCluster: hosted({}, { fc430: 3 }) }));
    const again = run.effect('trigger');
    expect(again.effectId).to.equal('trigger:0.0.1');
    expect(again.args)
      .to.deep.include({ purpose: 'provision', again: 'nodes' })
      .and.to.have.property('since');
    expect(msUntil(run, again)).to.be.within(4 * MINUTE, 5 * MINUTE);
  });
  it('posts again for what is no node count, where pools are left out: that they are there says nothing of it', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up());
    const version = { id: 'v2', name: '4-22', version: '4.22.0', releaseImage: 'r/r:4.22.0' };
    run.command({ type: 'ReviseCluster', at: time(40), changes: { version } });
    run.commands();
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    expect(run.effect('trigger').args).to.deep.include({ again: 'other' });
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    const spec = clusterOrderSpec({ ...ordered, version });
    run.observe(up({ order: manual({ spec }), hostedCluster: hosted({}, { fc430: 3 }) }));
    const again = run.effect('trigger');
    expect(again.args).to.deep.include({ again: 'other' }).and.to.have.property('since');
  });
  it('says nothing of a repetition that turned out to be needless', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(nothing);
    run.perform('trigger', done({ queued: true, did: 'observed', evidence: 'a workflow has reported' }));
    run.commands();
    expect(types(run, 'AutomationRequested')).to.equal(1);
  });
  it('does not disturb a playbook at work with the next change', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(busy);
    scale(run, 5);
    run.commands();
    run.perform('resize', done({ resized: true }));
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    expect(msUntil(run, run.effect('trigger'))).to.be.greaterThan(50 * MINUTE);
    const settled = onHub('eda');
    settled.perform('trigger', done({ queued: true, did: 'posted' }));
    settled.observe(up());
    scale(settled, 5);
    settled.commands();
    settled.perform('resize', done({ resized: true }));
    settled.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    settled.commands();
    expect(msUntil(settled, settled.effect('trigger'))).to.equal(0);
  });
  it('has it torn down after the DELETE, and asks for nothing where nothing was built', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up());
    run.commands();
    remove(run);
    expect(run.effects(), 'not before the deletion shows').to.deep.equal(['read']);
    run.observe(leaving());
    expect(run.effects()).to.have.members(['undo', 'read']);
    run.perform('undo', done({ queued: true, did: 'posted' }));
    run.commands();
    run.observe({ order: null });
    run.perform('check', done({ order: null }));
    run.commands();
    expect(run.cluster()).to.have.property('status', 'deleted');
    const unbuilt = onHub('eda');
    remove(unbuilt);
    unbuilt.observe(leaving({ hostedCluster: null }, ['osac.openshift.io/finalizer']));
    expect(unbuilt.effects()).to.deep.equal(['read']);
  });
  it('asks again for a teardown that left Ansible’s mark, and says that the cluster had gone before', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true, did: 'posted' }));
    run.observe(up());
    run.commands();
    remove(run);
    run.observe(leaving());
    run.perform('undo', done({ queued: true, did: 'posted' }));
    run.commands();
    run.observe(leaving());
    expect(run.effect('undo').args, 'nothing came of it yet').to.not.have.property('cleaning');
    // Its playbook took the cluster away, and failed before the mark.
    const cleaning = leaving({ hostedCluster: null });
    run.observe(cleaning);
    const again = run.effect('undo');
    expect(again.effectId).to.equal('undo:0.1');
    expect(again.args).to.deep.include({ purpose: 'deprovision', cleaning: true });
    expect(again.args).to.have.property('since');
    expect(msUntil(run, again)).to.be.within(29 * MINUTE, 30 * MINUTE);
    run.perform('undo', done({ queued: true, did: 'posted' }));
    expect(run.commands()).to.include('RecordAutomationRequest');
    run.observe(cleaning);
    expect(run.effect('undo').args, 'never given up').to.deep.include({ cleaning: true });
    expect(run.replayed()).to.deep.equal(run.state());
  });
});

describe('cluster order on a hub whose controller we are', () => {
  const ready = (): Run => {
    const run = onHub('aap', 'ledger');
    run.perform('prepare', done({ created: ['Namespace x'] }));
    run.perform('trigger', done(job('101', 'Running')));
    watched(run, job('101', 'Succeeded').job);
    run.observe(up());
    run.commands();
    return run;
  };
  it('prepares its place first, then triggers, and needs nobody’s phase', () => {
    const run = onHub('aap', 'ledger');
    expect(run.effects()).to.have.members(['prepare', 'read']);
    expect(run.effect('prepare')).to.deep.include({ operation: 'prepareOrder', lane: 'hub:east-1' });
    run.perform('prepare', done({ created: ['Namespace osac-hub-x', 'ServiceAccount osac'] }));
    expect(run.commands()).to.deep.equal(['RecordPrepared']);
    expect(run.effects()).to.have.members(['trigger', 'read']);
    run.perform('trigger', done(job('101', 'Running')));
    const { phase: _none, ...silent } = manual({ conditions: [] });
    run.observe({ order: silent, hostedCluster: null });
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(run.timers()).to.deep.equal(['deadline:control-plane']);
  });
  it('writes what it has seen into the order’s status, once for each thing', () => {
    const run = ready();
    const write = run.effect('status');
    expect(write).to.deep.include({ operation: 'writeOrderStatus', effectId: 'status:0' });
    expect(write.args['status']).to.deep.include({ phase: 'Ready' });
    expect(write.args).to.have.nested.property('status.jobs[0].state', 'Succeeded');
    expect(write.args)
      .to.have.nested.property('status.nodeRequests')
      .that.deep.equals([
        { resourceClass: 'g5', numberOfNodes: 2 },
        { resourceClass: 'fc430', numberOfNodes: 3 },
      ]);
    run.perform('status', done());
    expect(run.effects()).to.deep.equal(['read']);
    run.observe(up({ order: manual({ phase: 'Ready' }) }));
    expect(run.effects(), 'our own words say nothing new').to.deep.equal(['read']);
    run.observe(up({ hostedCluster: hosted({ Degraded: 'True' }) }));
    expect(run.effect('status').effectId).to.equal('status:1');
    expect(run.effect('status').args).to.have.nested.property('status.phase', 'Ready');
  });
  it('a failure that it wrote itself does not hold it', () => {
    const run = ready();
    const failedPhase = manual({ phase: 'Failed' });
    run.observe(up({ order: failedPhase }));
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
  it('lets the order go last: job ended, HostedCluster gone, then namespace and finalizer', () => {
    const run = ready();
    remove(run);
    run.observe(leaving());
    run.perform('undo', done(job('102', 'Running')));
    run.commands();
    run.observe(leaving({ hostedCluster: null }, ['osac.openshift.io/finalizer']));
    expect(run.effects(), 'its job still runs').to.not.include('finish');
    watched(run, job('102', 'Succeeded').job);
    run.commands();
    expect(run.effect('finish')).to.deep.include({ operation: 'releaseOrder' });
    run.perform('finish', failed('BeingDeleted', 5_000));
    expect(run.effect('finish').attempt).to.equal(2);
    run.perform('finish', done());
    run.observe({ order: null });
    run.perform('check', done({ order: null }));
    run.commands();
    expect(run.cluster()).to.have.property('status', 'deleted');
  });
});
