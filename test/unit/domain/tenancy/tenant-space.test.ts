import { expect } from 'chai';
import {
  tenantSpaceDecider,
  tenantSpaceId,
  type TenantSpaceCommand,
  type TenantSpaceEvent,
} from '../../../../src/domain/tenancy/tenant-space.ts';
import { tenantSpaceWorkflow } from '../../../../src/domain/tenancy/tenant-space.workflow.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { createStepRun, done, failed, refused, unknown } from '../../../support/domain/step-run.ts';

const at = '2026-11-21T12:00:00.000Z';
const { given } = specify(tenantSpaceDecider);
const order = {
  hub: 'east',
  tenant: 'acme',
  namespace: 'osac',
  namespaces: ['acme'],
  simulated: false,
  controller: 'operator',
} as const;
const ask: TenantSpaceCommand = { type: 'RequestSpace', at, ...order };
const requested: TenantSpaceEvent = { type: 'TenantSpaceRequested', data: { at, ...order } };
const ready: TenantSpaceEvent = { type: 'TenantSpaceBecameReady', data: { at } };
const removing: TenantSpaceEvent = { type: 'TenantSpaceRemovalRequested', data: { at } };
const removed: TenantSpaceEvent = { type: 'TenantSpaceRemoved', data: { at } };

describe('what a hub holds of a tenant', () => {
  it('is asked for once, and again where the hub was given another cluster or namespace', () => {
    given().when(ask).thenEvents(requested);
    given(requested).when(ask).thenNothing();
    given(requested, ready).when(ask).thenNothing();
    const other = { ...order, cluster: 'another' };
    given(requested, ready)
      .when({ type: 'RequestSpace', at, ...other })
      .thenEvents({ type: 'TenantSpaceRequested', data: { at, ...other } });
  });
  it('is ready once the hub shows it, and made again when it is lost', () => {
    given(requested).when({ type: 'RecordSpaceReady', at }).thenEvents(ready);
    given(requested, ready).when({ type: 'RecordSpaceReady', at }).thenNothing();
    given(requested, ready)
      .when({ type: 'RecordSpaceLost', at })
      .thenEvents({ type: 'TenantSpaceLost', data: { at } });
    given().when({ type: 'RecordSpaceLost', at }).thenNothing();
  });
  it('says once why it does not go on', () => {
    const failure = { at, reason: 'Forbidden', message: '403' };
    const told: TenantSpaceEvent = { type: 'TenantSpaceFailed', data: failure };
    given(requested)
      .when({ type: 'RecordSpaceFailure', ...failure })
      .thenEvents(told);
    given(requested, told)
      .when({ type: 'RecordSpaceFailure', ...failure, message: '403 again' })
      .thenNothing();
    given(requested, ready)
      .when({ type: 'RecordSpaceFailure', ...failure })
      .thenNothing();
  });
  it('is refused while the former one is being removed, and begins anew after that', () => {
    given(requested, ready).when({ type: 'RemoveSpace', at }).thenEvents(removing);
    given(requested, removing).when({ type: 'RemoveSpace', at }).thenNothing();
    given(requested, removing).when(ask).thenRejected('SPACE_REMOVING');
    given(requested, removing).when({ type: 'ConfirmSpaceRemoved', at }).thenEvents(removed);
    given(requested, removing, removed).when(ask).thenEvents(requested);
    given(requested).when({ type: 'ConfirmSpaceRemoved', at }).thenNothing();
  });
});

const SPACE = tenantSpaceId('east', 'acme');
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;
const begin = () => {
  const run = createStepRun(tenantSpaceWorkflow as unknown as AnyWorkflow, tenantSpaceDecider, { id: SPACE });
  run.command(ask);
  return run;
};
const made = () => {
  const run = begin();
  run.perform('prepare', done({ created: ['acme'] }));
  run.perform('apply', done({ uid: 'u' }));
  run.observe({ object: { phase: 'Ready' }, hub: 'east' });
  return run;
};
const gone = (run: ReturnType<typeof made>) => {
  run.fire('tenant-gone:acme');
  run.perform('tenant', done({ gone: true }));
};

describe('the way of what a hub holds of a tenant', () => {
  it('makes namespaces, then the Tenant of that name, and is ready as the hub shows', () => {
    const run = begin();
    expect(run.effects()).to.deep.equal(['prepare']);
    expect(run.effect('prepare')).to.deep.include({
      operation: 'prepareTenant',
      lane: 'hub:east:Tenant',
      args: { hub: 'east', namespaces: ['acme'] },
    });
    run.perform('prepare', done({ created: ['acme'] }));
    expect(run.effect('apply').args).to.deep.equal({
      hub: 'east',
      object: 'Tenant',
      namespace: 'osac',
      name: 'acme',
      id: 'acme',
      spec: {},
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Progressing' }, hub: 'east' });
    expect(run.subject()).to.include({ status: 'requested' });
    run.observe({ object: { phase: 'Ready' }, hub: 'east' });
    expect(run.subject()).to.include({ status: 'ready' });
    expect([run.effects(), run.timers()]).to.deep.equal([['read'], ['tenant-gone:acme']]);
    expect(run.isFolded()).to.equal(true);
  });
  it('goes on after a refusal, because somebody will mend what refuses it, and says why', () => {
    const run = begin();
    run.perform('prepare', refused);
    run.commands();
    run.after(31 * 60_000);
    expect(run.effects()).to.include('prepare');
    for (let tries = 0; tries < 12; tries += 1) run.perform('prepare', failed('Forbidden'));
    run.commands();
    expect(run.subject()).to.deep.include({ status: 'requested' });
    expect(run.subjectTypes()).to.include('TenantSpaceFailed');
    run.perform('prepare', done({ created: [] }));
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Ready' }, hub: 'east' });
    expect(run.subject()).to.not.have.property('failure');
  });
  it('is made again where the hub lost it', () => {
    const run = made();
    run.observe({ object: null, hub: 'east' });
    expect(run.subject()).to.include({ status: 'requested' });
    run.perform('prepare', done({ created: [] }));
    run.perform('apply', done({ uid: 'v' }));
    run.observe({ object: { phase: 'Ready' }, hub: 'east' });
    expect(run.subject()).to.include({ status: 'ready' });
    expect(run.isFolded()).to.equal(true);
  });
  it('stays while its tenant does, and goes with it: the Tenant first, then the namespaces', () => {
    const run = made();
    run.fire('tenant-gone:acme');
    run.perform('tenant', done({ gone: false }));
    expect([run.subject(), run.timers()]).to.deep.equal([
      { ...order, status: 'ready' },
      ['tenant-gone:acme'],
    ]);
    gone(run);
    expect(run.subject()).to.include({ status: 'removing' });
    expect(run.effects()).to.deep.equal(['undo-apply']);
    run.perform('undo-apply', done({ existed: true }));
    run.after(31 * 60_000);
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-prepare', done({ existed: true }));
    run.after(31 * 60_000);
    run.perform('undo-prepare', done({ existed: false }));
    expect(run.commands()).to.deep.equal(['ConfirmSpaceRemoved']);
    expect(run.subject()).to.include({ status: 'removed' });
    expect([run.effects(), run.timers(), run.isClosed()]).to.deep.equal([[], [], false]);
    expect(run.isFolded()).to.equal(true);
    run.command(ask);
    run.perform('prepare', done({ created: ['acme'] }));
    run.perform('apply', done({ uid: 'w' }));
    run.observe({ object: { phase: 'Ready' }, hub: 'east' });
    expect(run.subject()).to.include({ status: 'ready' });
    gone(run);
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-prepare', done({ existed: false }));
    expect(run.commands()).to.deep.equal(['ConfirmSpaceRemoved']);
    expect(run.isFolded()).to.equal(true);
  });
  it('outlasts a hub that is away for an hour, with a few events, and is there once it is back', () => {
    const run = begin();
    run.perform('prepare', done({ created: [] }));
    const until = Date.parse(run.at()) + 3_600_000;
    while (Date.parse(run.at()) < until) {
      const { notBefore = run.at() } = run.effect('apply');
      run.after(Math.max(0, Date.parse(notBefore) - Date.parse(run.at())));
      run.perform('apply', failed('Unavailable'));
      run.commands();
    }
    expect(run.runLog().length).to.be.lessThan(60);
    expect(run.subjectTypes()).to.deep.equal(['TenantSpaceRequested', 'TenantSpaceFailed']);
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Ready' }, hub: 'east' });
    expect(run.subject()).to.deep.equal({ ...order, status: 'ready' });
  });
  it('is not taken for removed while nobody knows what became of it', () => {
    const run = begin();
    run.perform('prepare', done({ created: [] }));
    const { effectId } = run.start('apply');
    run.result(effectId, unknown);
    gone(run);
    expect(run.effect('apply').operation).to.equal('observeObject');
    run.perform('apply', done({ object: { phase: 'Progressing' } }));
    run.perform('undo-apply', done({ existed: false }));
    expect(run.subject()).to.include({ status: 'removing' });
    run.perform('undo-prepare', done({ existed: false }));
    run.commands();
    expect(run.subject()).to.include({ status: 'removed' });
  });
});
