import { expect } from 'chai';
import { externalIpPool, poolDecider } from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { actingExternalIpPool } from '../../../../src/domain/networks/external-ip-pool.workflow.ts';
import { externalIp, externalIpDecider } from '../../../../src/domain/networks/external-ip.resource.ts';
import { actingExternalIp } from '../../../../src/domain/networks/external-ip.workflow.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import { tenantSpaceId } from '../../../../src/domain/tenancy/tenant-space.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done, refused, unknown } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
const REAL = { ...HUB, hub: 'munich', simulated: false };
const PLACED = { placed: true, ...HUB, mode: 'operator', steps: {}, decision: { candidates: [] } };
const common = { tenant: 't1', project: '', creator: 'ann' };
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;

const orderPool = (annotations: object = {}) => {
  const run = createStepRun(actingExternalIpPool.workflow as AnyWorkflow, poolDecider);
  const spec = { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' };
  const document = { metadata: { name: 'p', annotations }, spec } as JsonObject;
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, name: 'p', ...common, document });
  const shown = () => {
    const view = externalIpPool.view(run.subject());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  return { ...run, shown };
};

const orderIp = () => {
  const run = createStepRun(actingExternalIp.workflow as AnyWorkflow, externalIpDecider);
  const document = { metadata: { name: 'i' }, spec: { pool: { id: 'p', name: 'p' } } };
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, name: 'i', ...common, document });
  const shown = () => {
    const view = externalIp.view(run.subject());
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  return { ...run, shown };
};

const seen = (object: object | null): object => ({ object, hub: HUB.hub });

describe('the way of an external IP pool', () => {
  it('is placed, sent to its hub, and ready once the hub shows it so', () => {
    const run = orderPool({ 'fulfillment-ledger/zone': 'west' });
    expect(run.effect('place').args).to.deep.equal({
      holder: { kind: 'externalIpPool', id: 'one' },
      tenant: 't1',
      withoutAutomation: true,
      objects: ['ExternalIPPool', 'ExternalIP'],
      zone: 'west',
    });
    run.perform('place', done(PLACED));
    const { args, lane } = run.effect('apply');
    expect(lane).to.equal('hub:sim-1:ExternalIPPool');
    expect(args).to.deep.include({ hub: 'sim-1', namespace: 'osac', id: 'one' });
    expect(args['spec']).to.deep.equal({ cidrs: ['192.0.2.0/29'], ipFamily: 'IPv4' });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Progressing' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_PENDING' });
    run.observe(seen({ phase: 'Ready' }));
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_READY', hub: 'sim-1' });
    expect(run.subjectTypes()).to.deep.equal([
      'ExternalIPPoolOrdered',
      'ExternalIPPoolPlaced',
      'ExternalIPPoolBecameReady',
    ]);
    expect(run.effects(), 'nothing is looked at any more').to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  });
  it('is not ready because nobody works on it', () => {
    const run = orderPool();
    run.perform('place', done({ ...PLACED, ...REAL, controller: 'ledger' }));
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: '' }, hub: 'munich' });
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_PENDING' });
  });
  it('waits while no hub takes it, and asks again when something changed', () => {
    const run = orderPool();
    run.perform('place', done({ placed: false, message: '', decision: {} }));
    run.commands();
    expect(run.shown()).to.include({ message: 'no hub can take it at the moment' });
    expect([run.effects(), run.timers()]).to.deep.equal([[], ['ask-again']]);
    run.fire('ask-again');
    run.perform('place', done(PLACED));
    expect(run.shown()).to.not.have.property('message');
    expect(run.timers()).to.not.include('ask-again');
  });
  it('rests also when the place that was found is refused', () => {
    const run = orderPool();
    run.start('place');
    // The answer comes when nothing can be recorded of it any more.
    run.command({ type: 'AbortOrder', at: run.now(), reason: 'enough' });
    run.result('place:0.0', done(PLACED));
    expect(run.effect('undo-place').args).to.include({ hub: 'sim-1' });
    run.perform('undo-place', done({}));
    run.commands();
    run.command({ type: 'RetryOrder', at: run.now() });
    expect(run.effects(), 'a retry asks at once').to.deep.equal(['place']);
    run.perform('place', done({ placed: false, message: 'no room' }));
    expect([run.effects(), run.timers()]).to.deep.equal([[], ['ask-again']]);
  });
  it('waits until its hub knows its tenant, or carries its kind, and is sent again then', () => {
    const run = orderPool();
    run.perform('place', done(PLACED));
    const space = `tenant-ready:${tenantSpaceId('sim-1', 't1')}`;
    expect(run.effect('apply').args).to.include({ tenant: true });
    run.perform('apply', done({ waiting: 'TenantNotReady: soon', detail: 'Forbidden' }));
    run.commands();
    expect(run.shown()).to.include({
      state: 'EXTERNAL_IP_POOL_STATE_PENDING',
      message: 'TenantNotReady: soon',
    });
    expect(run.subjectLog().at(-1)?.data).to.include({ detail: 'Forbidden' });
    expect([run.effects(), run.timers()]).to.deep.equal([[], [space]]);
    run.observe(seen(null));
    expect(run.shown(), 'nothing was sent, so nothing is lost').to.include({
      state: 'EXTERNAL_IP_POOL_STATE_PENDING',
    });
    run.fire(space);
    run.perform('apply', done({ waiting: 'not here', for: 'hub' }));
    expect([run.effects(), run.timers()]).to.deep.equal([[], ['hub-carries:sim-1']]);
    run.fire('hub-carries:sim-1');
    const { effectId } = run.start('apply');
    run.result(effectId, unknown);
    run.after(60_000);
    expect(run.effect('apply'), 'the same effect until it has an answer').to.include({
      effectId,
      mode: 'observe',
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Progressing', message: 'tenant t1 is not ready' }));
    expect(run.shown()).to.include({ message: 'the hub has not begun the external IP pool yet' });
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_READY' });
    expect([run.effects(), run.timers()]).to.deep.equal([[], []]);
    expect(run.isFolded()).to.equal(true);
  });
  it('leaves nothing where it is deleted while it waits for its tenant, and waits again after a retry', () => {
    const run = orderPool();
    run.perform('place', done(PLACED));
    run.perform('apply', done({ waiting: 'TenantNotReady: soon' }));
    run.commands();
    run.command({ type: 'AbortOrder', at: run.now(), reason: 'enough' });
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-place', done());
    run.commands();
    run.command({ type: 'RetryOrder', at: run.now() });
    run.perform('place', done(PLACED));
    run.perform('apply', done({ waiting: 'TenantNotReady: soon' }));
    run.commands();
    expect(run.timers()).to.have.length(1);
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-place', done());
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
    expect([run.isClosed(), run.isFolded()]).to.deep.equal([true, true]);
  });
  it('asks with growing rests while it waits, to ninety minutes', () => {
    const run = orderPool();
    const rests: number[] = [];
    for (let asked = 0; asked < 10; asked += 1) {
      run.perform('place', done({ placed: false, message: 'no room', decision: {} }));
      run.commands();
      const [timer] = run.pending().timers;
      rests.push(Date.parse(timer?.dueAt ?? '') - Date.parse(run.at()));
      run.after(rests.at(-1) ?? 0);
      run.fire('ask-again');
    }
    for (const [i, rest] of rests.entries()) {
      const full = Math.min(90, 2 ** i) * 60_000;
      expect(rest).to.be.within(full / 2 - 1_000, full);
    }
  });
  it('fails as its hub says, or because the hub refuses it; a retry sends it again', () => {
    const run = orderPool();
    run.perform('place', done(PLACED));
    run.perform('apply', refused);
    run.commands();
    expect(run.shown()).to.include({
      state: 'EXTERNAL_IP_POOL_STATE_FAILED',
      message: 'the hub refuses the order as invalid',
    });
    expect(run.command({ type: 'RetryOrder', at: run.now() })).to.include({ accepted: true });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Failed', message: 'no route' }));
    expect(run.shown()).to.include({
      state: 'EXTERNAL_IP_POOL_STATE_FAILED',
      message: 'the hub could not make the external IP pool ready',
    });
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_READY' });
    run.observe(seen(null));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_FAILED' });
  });
  it('is deleted from its hub, and gone once its absence was seen', () => {
    const run = orderPool();
    run.perform('place', done(PLACED));
    const { effectId } = run.start('apply');
    run.result(effectId, unknown);
    run.command({ type: 'DeleteDocument', at: run.now() });
    // Nobody knows what became of it: it is looked for first.
    expect(run.effect('apply').operation).to.equal('observeObject');
    run.perform('apply', done({ object: { phase: 'Progressing' } }));
    run.perform('undo-apply', done({ existed: true }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_DELETING' });
    run.perform('undo-apply', done({ existed: false }));
    run.perform('undo-place', done());
    expect(run.commands()).to.deep.equal(['ConfirmAbsence']);
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
    expect(run.isFolded()).to.equal(true);
  });
  it('ends at once where it has no place', () => {
    const run = orderPool();
    const { effectId } = run.start('place');
    run.command({ type: 'DeleteDocument', at: run.now() });
    run.result(effectId, done(PLACED));
    expect(run.subjectTypes().at(-1)).to.equal('ExternalIPPoolDeleted');
  });
});

describe('the way of an external IP', () => {
  const claimed = (place: object = HUB, answer: object = { generation: 1, address: '192.0.2.1' }) => {
    const run = orderIp();
    run.perform('place', done({ place: { ...place, objectName: 'of-the-pool' } }));
    run.perform('claim', done(answer));
    return run;
  };

  it('goes to the hub of its pool with the address that the pool gave it', () => {
    const run = orderIp();
    expect(run.effects()).to.deep.equal(['place']);
    run.perform('place', done({ place: null }));
    run.commands();
    expect(run.shown()).to.include({ message: 'its pool is on no hub yet' });
    run.fire('ask-again:p');
    run.perform('place', done({ place: { ...HUB, objectName: 'of-the-pool' } }));
    expect(run.effect('claim').args).to.deep.equal({ pool: 'p', holder: { kind: 'externalIp', id: 'one' } });
    run.perform('claim', done({ generation: 1, address: '192.0.2.1' }));
    const { args } = run.effect('apply');
    expect(args).to.deep.include({
      hub: 'sim-1',
      spec: { pool: 'p' },
      annotations: { 'fulfillment-ledger/address': '192.0.2.1' },
    });
    expect(stringAt(args, 'name')).to.match(/^externalip-[a-z2-7]{13}$/);
    run.perform('apply', done({ uid: 'u' }));
    // Another address than the one that it was given counts for nothing here.
    run.observe(seen({ phase: 'Ready', address: '192.0.2.99' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.1' });
    expect(run.isFolded()).to.equal(true);
  });
  it('waits until the address that rests may be given, or one was released', () => {
    const until = '2026-11-22T12:00:00.000Z';
    const run = claimed(HUB, { waiting: 'only resting ones', until });
    run.commands();
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_PENDING', message: 'only resting ones' });
    const [timer] = run.pending().timers.filter(({ timerId }) => timerId === 'ask-again:p');
    expect(timer?.dueAt).to.equal(until);
    run.fire('ask-again:p');
    run.perform('claim', done({ waiting: 'only resting ones', until }));
    expect(run.timers()).to.include('ask-again:p');
    run.fire('ask-again:p');
    run.perform('claim', done({ generation: 7, address: '192.0.2.3' }));
    expect(run.effects()).to.deep.equal(['apply']);
  });
  it('asks at the moment that it was told of, and rests when others were faster', () => {
    const run = claimed(HUB, { waiting: 'only resting ones', until: '2026-11-21T12:00:03.000Z' });
    const due = () => run.pending().timers.find(({ timerId }) => timerId === 'ask-again:p')?.dueAt ?? '';
    expect(due()).to.equal('2026-11-21T12:00:03.000Z');
    run.after(3_000);
    run.fire('ask-again:p');
    run.perform('claim', done({ waiting: 'only resting ones', until: '2026-11-21T12:00:04.000Z' }));
    expect(Date.parse(due()) - Date.parse(run.at())).to.be.within(59_000, 120_000);
  });
  it('asks at that moment however often it was woken before, and once', () => {
    const until = '2026-11-21T13:00:00.000Z';
    const answer = { waiting: 'only resting ones', until };
    const run = claimed(HUB, answer);
    const due = () => run.pending().timers.find(({ timerId }) => timerId === 'ask-again:p')?.dueAt ?? '';
    for (let woken = 0; woken < 9; woken += 1) {
      run.after(60_000);
      run.fire('ask-again:p');
      run.perform('claim', done(answer));
      expect(due()).to.equal(until);
    }
    run.after(Date.parse(until) - Date.parse(run.at()));
    run.fire('ask-again:p');
    run.perform('claim', done(answer));
    expect(Date.parse(due()) - Date.parse(until)).to.be.greaterThan(30 * 60_000);
    run.fire('ask-again:p');
    const next = '2026-11-21T18:00:00.000Z';
    run.perform('claim', done({ ...answer, until: next }));
    expect(due(), 'another time').to.equal(next);
    expect(run.isFolded()).to.equal(true);
  });
  it('leaves a hundred events a day at most while nothing becomes free', () => {
    const run = claimed(HUB, { waiting: 'the pool has no free address' });
    const before = run.runLog().length + run.subjectLog().length;
    const end = Date.parse(run.at()) + 24 * 60 * 60_000;
    while (Date.parse(run.at()) < end) {
      run.commands();
      const [timer] = run.pending().timers;
      run.after(Date.parse(timer?.dueAt ?? '') - Date.parse(run.at()));
      run.fire('ask-again:p');
      run.perform('claim', done({ waiting: 'the pool has no free address' }));
    }
    expect(run.runLog().length + run.subjectLog().length - before).to.be.within(60, 100);
  });
  it('records what the operator of its hub chose once the pool has it down', () => {
    const run = claimed(REAL, { generation: 1 });
    expect(run.effect('apply').args['annotations']).to.deep.equal({});
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Ready', address: '2001:DB8:0::7' }, hub: 'munich' });
    expect(run.shown(), 'nobody is told of it yet').to.include({ state: 'EXTERNAL_IP_STATE_PENDING' });
    expect(run.effect('register').args).to.include({ address: '2001:db8::7' });
    run.perform('register', done({ address: '2001:db8::7' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '2001:db8::7' });
  });
  it('follows its hub from one address to another and back', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    for (const address of ['192.0.2.1', '192.0.2.2', '192.0.2.1', '192.0.2.2']) {
      run.observe({ object: { phase: 'Ready', address }, hub: 'munich' });
      expect(run.effect('register').args).to.include({ address });
      run.perform('register', done({ address }));
      expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address });
      expect(run.effects()).to.deep.equal([]);
    }
    expect(run.isFolded()).to.equal(true);
  });
  it('ends at the address that its hub shows although the pool was slow to note the one before', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    const shows = (address: string) => run.observe({ object: { phase: 'Ready', address }, hub: 'munich' });
    shows('192.0.2.1');
    run.perform('register', done({ address: '192.0.2.1' }));
    shows('192.0.2.2');
    const { effectId } = run.start('register');
    shows('192.0.2.1');
    run.result(effectId, done({ address: '192.0.2.2' }));
    expect(run.effect('register').args).to.include({ address: '192.0.2.1' });
    run.perform('register', done({ address: '192.0.2.1' }));
    expect(run.shown()).to.include({ address: '192.0.2.1' });
    expect(run.effects()).to.deep.equal([]);
  });
  it('is not allocated where its hub shows what the pool refuses, and is once it shows something else', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Ready', address: '203.0.113.9' }, hub: 'munich' });
    run.perform('register', done({ reason: 'ADDRESS_OUTSIDE_POOL', message: 'none of the pool' }));
    expect(run.shown()).to.deep.equal({
      state: 'EXTERNAL_IP_STATE_FAILED',
      message: 'none of the pool',
      hub: 'munich',
    });
    run.observe({ object: { phase: 'Ready', address: '203.0.113.9' }, hub: 'munich' });
    expect(run.effects(), 'its object is looked at, the pool is not asked again').to.deep.equal(['read']);
    run.observe({ object: { phase: 'Ready', address: '192.0.2.2' }, hub: 'munich' });
    run.perform('register', done({ address: '192.0.2.2' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.2' });
  });
  it('is not allocated where its hub shows the address of another one, and asks again when somebody retries', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    const shows = { object: { phase: 'Ready', address: '192.0.2.1' }, hub: 'munich' };
    run.observe(shows);
    run.perform('register', done({ reason: 'AddressShownTwice', message: 'it belongs to another one' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED' });
    expect(run.shown()).to.not.have.property('address');
    run.command({ type: 'RetryOrder', at: run.now() });
    run.perform('apply', done({ uid: 'u' }));
    run.perform('register', done({ address: '192.0.2.1' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.1' });
    expect(run.shown()).to.not.have.property('message');
  });
  it('goes on by itself once the pool passes the address on to it that its hub showed for two', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    run.observe({ object: { phase: 'Ready', address: '192.0.2.1' }, hub: 'munich' });
    const twice = done({ address: '192.0.2.1', reason: 'AddressShownTwice', message: 'two have it' });
    const told = () => run.subjectTypes().filter((type) => type === 'ExternalIPFailed').length;
    for (const _asked of [1, 2]) {
      run.perform('register', twice);
      expect(run.commands(), 'a failure is no wait').to.deep.equal([]);
      expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED', message: 'two have it' });
      expect([run.effects(), told()]).to.deep.equal([['read'], 1]);
      // What the pool records of this address wakes it.
      run.fire('ask-again:p');
    }
    run.perform('register', done({ address: '192.0.2.1' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.1' });
    expect([run.effects(), run.timers()]).to.deep.equal([[], []]);
    expect(actingExternalIp.workflow.wakes?.flatMap(({ types }) => types)).to.include('AddressObserved');
    expect(run.isFolded()).to.equal(true);
  });
  it('is allocated again when the object of its hub failed and is ready with the same address', () => {
    const run = claimed(REAL, { generation: 1 });
    run.perform('apply', done({ uid: 'u' }));
    const shows = (phase: string) => run.observe({ object: { phase, address: '192.0.2.1' }, hub: 'munich' });
    shows('Ready');
    run.perform('register', done({ address: '192.0.2.1' }));
    shows('Failed');
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED' });
    shows('Ready');
    run.perform('register', done({ address: '192.0.2.1' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.1' });
    expect(run.effects()).to.deep.equal([]);
  });
  it('gives its address back only when nothing of it is left on the hub', () => {
    const run = claimed();
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Ready' }));
    run.command({ type: 'DeleteDocument', at: run.now() });
    expect(run.effects()).to.deep.equal(['undo-apply']);
    run.perform('undo-apply', done({ existed: true }));
    expect(run.effects()).to.not.include('undo-claim');
    run.perform('undo-apply', done({ existed: false }));
    const { operation, args } = run.effect('undo-claim');
    expect(operation).to.equal('release');
    expect(args, 'the one that it was given, whatever it may hold later').to.include({ generation: 1 });
    run.perform('undo-claim', done({}));
    run.commands();
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPDeleted', true]);
    expect(run.isFolded()).to.equal(true);
  });
});
