import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { objectAt, withoutPaths } from '../../../../src/domain/json-tools.ts';
import { externalIpPool, poolDecider } from '../../../../src/domain/networks/external-ip-pool.resource.ts';
import { actingExternalIpPool } from '../../../../src/domain/networks/external-ip-pool.workflow.ts';
import { externalIp, externalIpDecider } from '../../../../src/domain/networks/external-ip.resource.ts';
import { actingExternalIp } from '../../../../src/domain/networks/external-ip.workflow.ts';
import type { RunEvent } from '../../../../src/domain/process/events.ts';
import { registry } from '../../../../src/domain/registry.ts';
import type { Workflow } from '../../../../src/domain/workflow.ts';
import { createStepRun, done, failed, refused, unknown } from '../../../support/domain/step-run.ts';

const HUB = { hub: 'sim-1', namespace: 'osac', simulated: true, controller: 'operator' } as const;
const PLACED = { placed: true, ...HUB, mode: 'operator', steps: {}, decision: { candidates: [] } };
const common = { tenant: 't1', project: '', creator: 'ann', name: 'x' };
const seen = (object: object | null): object => ({ object, hub: HUB.hub });
type AnyWorkflow = Workflow<{ readonly since: object }, RunEvent>;

const orderPool = () => {
  const run = createStepRun(actingExternalIpPool.workflow as AnyWorkflow, poolDecider);
  const spec = { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' };
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, ...common, document: { spec } });
  const shown = (): JsonObject => {
    const view = externalIpPool.view(run.subject());
    return view.exists ? view.document : {};
  };
  return { ...run, document: shown, shown: () => objectAt(shown(), 'status') };
};
const orderIp = () => {
  const run = createStepRun(actingExternalIp.workflow as AnyWorkflow, externalIpDecider);
  const document = { spec: { pool: { id: 'p', name: 'p' } } };
  run.command({ type: 'CreateDocument', at: run.now(), id: run.id, ...common, document });
  const shown = (): JsonObject => {
    const view = externalIp.view(run.subject());
    return view.exists ? view.document : {};
  };
  return { ...run, document: shown, shown: () => objectAt(shown(), 'status') };
};
type Pool = ReturnType<typeof orderPool>;
type Ip = ReturnType<typeof orderIp>;

const WAITS = done({ placed: false, message: 'no room', decision: {} });
/** How far a pool may have come. */
const POOLS: { readonly [state: string]: (run: Pool) => void } = {
  ordered: () => undefined,
  waiting: (run) => run.perform('place', WAITS),
  'failed without a place': (run) => run.perform('place', refused),
  placed: (run) => run.perform('place', done(PLACED)),
  'refused by its hub': (run) => {
    POOLS['placed']?.(run);
    run.perform('apply', refused);
  },
  'of unknown outcome': (run) => {
    POOLS['placed']?.(run);
    run.perform('apply', unknown);
  },
  'on its hub': (run) => {
    POOLS['placed']?.(run);
    run.perform('apply', done({ uid: 'u' }));
  },
  'failed on its hub': (run) => {
    POOLS['on its hub']?.(run);
    run.observe(seen({ phase: 'Failed', message: 'no route' }));
  },
  'late on its hub': (run) => {
    POOLS['on its hub']?.(run);
    run.fire('deadline:ready');
  },
};
const IPS: { readonly [state: string]: (run: Ip) => void } = {
  ordered: () => undefined,
  'without a hub': (run) => run.perform('place', done({ place: null })),
  placed: (run) => run.perform('place', done({ place: { ...HUB, objectName: 'pool' } })),
  'out of addresses': (run) => {
    IPS['placed']?.(run);
    run.perform('claim', done({ waiting: 'the pool has no free address' }));
  },
  'refused by its pool': (run) => {
    IPS['placed']?.(run);
    run.perform('claim', refused);
  },
  'with an address': (run) => {
    IPS['placed']?.(run);
    run.perform('claim', done({ generation: 1, address: '192.0.2.1' }));
  },
  'refused by its hub': (run) => {
    IPS['with an address']?.(run);
    run.perform('apply', refused);
  },
  'failed on its hub': (run) => {
    IPS['with an address']?.(run);
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Failed', message: 'no route' }));
  },
};

/** Carries out what is pending until only looks and timers are left; nothing is there any more. */
const settle = (run: Pool | Ip): string[] => {
  const performed: string[] = [];
  for (;;) {
    run.commands();
    const next = run.pending().effects.find(({ everyMs }) => everyMs === undefined);
    if (next === undefined) return performed;
    performed.push(next.operation);
    if (performed.length > 20) throw new Error(performed.join());
    run.begin(next);
    run.result(next.effectId, done(next.port === 'addresses' ? {} : { existed: false, object: null }));
  }
};
const abort = (run: Pool | Ip) =>
  run.command({ type: 'AbortOrder', at: run.now(), reason: 'the hub is scrap' });
const remove = (run: Pool | Ip) => run.command({ type: 'DeleteDocument', at: run.now() });

describe('a pool or an external IP that an operator aborts', () => {
  const aborted = (run: Pool | Ip, prefix: string): void => {
    expect(abort(run)).to.include({ accepted: true });
    settle(run);
    expect(run.shown()).to.deep.include({
      state: `${prefix}_STATE_FAILED`,
      message: 'aborted: the hub is scrap',
    });
    expect(run.shown()).to.not.have.any.keys('hub', 'address');
    expect(objectAt(run.document(), 'metadata')).to.not.have.property('finalizers');
    expect([run.effects(), run.timers(), run.isFolded()]).to.deep.equal([[], [], true]);
  };
  for (const [state, reach] of Object.entries(POOLS)) {
    it(`shows it, has nothing left on its hub, and is deleted: a pool ${state}`, () => {
      const run = orderPool();
      reach(run);
      run.commands();
      aborted(run, 'EXTERNAL_IP_POOL');
      expect(remove(run)).to.include({ accepted: true });
      expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
    });
    it(`begins anew with a retry, and may be aborted again: a pool ${state}`, () => {
      const run = orderPool();
      reach(run);
      run.commands();
      aborted(run, 'EXTERNAL_IP_POOL');
      expect(run.command({ type: 'RetryOrder', at: run.now() })).to.include({ accepted: true });
      run.perform('place', done(PLACED));
      run.perform('apply', done({ uid: 'v' }));
      aborted(run, 'EXTERNAL_IP_POOL');
      run.command({ type: 'RetryOrder', at: run.now() });
      run.perform('place', done(PLACED));
      run.perform('apply', done({ uid: 'w' }));
      run.observe(seen({ phase: 'Ready' }));
      expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_READY', hub: 'sim-1' });
    });
  }
  for (const [state, reach] of Object.entries(IPS)) {
    it(`gives its address back, and is deleted or tried anew: an IP ${state}`, () => {
      const run = orderIp();
      reach(run);
      run.commands();
      aborted(run, 'EXTERNAL_IP');
      expect(run.runTypes().includes('EffectStarted') && run.effects().includes('undo-claim')).to.equal(
        false,
      );
      run.command({ type: 'RetryOrder', at: run.now() });
      run.perform('place', done({ place: { ...HUB, objectName: 'pool' } }));
      run.perform('claim', done({ generation: 9, address: '192.0.2.2' }));
      run.perform('apply', done({ uid: 'v' }));
      run.observe(seen({ phase: 'Ready' }));
      expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_ALLOCATED', address: '192.0.2.2' });
      run.observe(seen({ phase: 'Failed', message: 'gone bad' }));
      expect(abort(run)).to.include({ accepted: true });
      expect(run.effect('undo-apply').operation).to.equal('deleteObject');
      expect(settle(run)).to.include('release');
      expect(remove(run)).to.include({ accepted: true });
      expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPDeleted', true]);
    });
  }
  it('is not retried before everything is undone, and takes nothing in meanwhile', () => {
    const run = orderIp();
    IPS['failed on its hub']?.(run);
    abort(run);
    expect(run.command({ type: 'RetryOrder', at: run.now() })).to.include({ code: 'ABORTING' });
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ message: 'aborted: the hub is scrap', hub: 'sim-1' });
    expect(abort(run)).to.deep.equal({ accepted: true, changed: false });
  });
  it('is refused where it is as it should be, is deleted, or is used', () => {
    const ready = orderPool();
    POOLS['on its hub']?.(ready);
    ready.observe(seen({ phase: 'Ready' }));
    expect(abort(ready)).to.include({ code: 'NOTHING_TO_ABORT' });
    const holder = { kind: 'externalIp', id: 'i' };
    ready.command({ type: 'ClaimAddress', at: ready.now(), holder });
    ready.observe(seen({ phase: 'Failed', message: 'no route' }));
    ready.command({ type: 'RecordFailure', at: ready.now(), reason: 'R', message: 'm' });
    expect(abort(ready)).to.include({ code: 'STILL_IN_USE' });
    ready.command({ type: 'ReleaseAddress', at: ready.now(), holder, generation: 1 });
    expect(abort(ready)).to.include({ accepted: true });
    expect(ready.command({ type: 'ClaimAddress', at: ready.now(), holder })).to.include({
      code: 'POOL_GONE',
    });
    const deleted = orderPool();
    POOLS['on its hub']?.(deleted);
    remove(deleted);
    expect(abort(deleted)).to.include({ code: 'DELETION_REQUESTED' });
    const attached = orderIp();
    attached.command({
      type: 'AttachTo',
      at: attached.now(),
      holder: { kind: 'natGateway', id: 'n' },
      by: 'c1',
    });
    expect(abort(attached)).to.include({ code: 'NOT_RELEASABLE' });
  });
  it('is deleted while it is being undone, which goes on', () => {
    const run = orderIp();
    IPS['failed on its hub']?.(run);
    abort(run);
    expect(remove(run)).to.include({ accepted: true });
    expect(settle(run)).to.deep.equal(['deleteObject', 'release']);
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPDeleted', true]);
  });
});

describe('a deletion', () => {
  for (const [state, reach] of Object.entries(POOLS)) {
    it(`runs through for a pool ${state}`, () => {
      const run = orderPool();
      reach(run);
      run.commands();
      expect(remove(run)).to.include({ accepted: true });
      settle(run);
      expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
    });
  }
  for (const [state, reach] of Object.entries(IPS)) {
    const isWaiting = state === 'without a hub' || state === 'out of addresses';
    it(`${isWaiting ? 'runs through' : 'is refused, as OSAC does,'} for an IP ${state}`, () => {
      const run = orderIp();
      reach(run);
      run.commands();
      if (isWaiting) {
        expect(remove(run)).to.include({ accepted: true });
        settle(run);
        expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPDeleted', true]);
        return;
      }
      expect(remove(run)).to.include({ code: 'NOT_RELEASABLE' });
    });
  }

  const deleting = () => {
    const run = orderPool();
    POOLS['on its hub']?.(run);
    run.observe(seen({ phase: 'Ready' }));
    remove(run);
    return run;
  };
  /** Plays what is due for so long; the object stays. Returns how many events that left. */
  const wait = (run: Pool | Ip, minutes: number, outcome = done({ existed: true })): number => {
    const before = run.runLog().length + run.subjectLog().length;
    const end = Date.parse(run.at()) + minutes * 60_000;
    for (let tick = 0; Date.parse(run.at()) < end; tick += 1) {
      run.after(10_000);
      run.observe(seen({ phase: 'Deleting', deletionTimestamp: '2026-11-21T12:00:00Z', tick }));
      for (const { timerId, dueAt } of run.pending().timers) if (dueAt <= run.at()) run.fire(timerId);
      run.commands();
      for (const next of run.pending().effects)
        if (next.everyMs === undefined && (next.notBefore ?? '') <= run.at()) {
          run.begin(next);
          run.result(next.effectId, outcome);
        }
    }
    return run.runLog().length + run.subjectLog().length - before;
  };

  it('that takes long says why, then that it failed, and goes on trying', () => {
    const run = deleting();
    wait(run, 10, failed('Forbidden'));
    expect(run.shown()).to.include({
      state: 'EXTERNAL_IP_POOL_STATE_DELETING',
      message: 'it is not gone yet: the hub of this order denies the service what it needs',
    });
    expect(externalIpPool.marks?.(run.document())).to.deep.equal([]);
    wait(run, 55, failed('Forbidden'));
    expect(run.shown()).to.include({
      state: 'EXTERNAL_IP_POOL_STATE_DELETE_FAILED',
      message:
        'the hub takes unusually long to clean up: the hub of this order denies the service what it needs',
    });
    expect(externalIpPool.marks?.(run.document())).to.deep.equal(['deletion-overdue']);
    expect(run.effects()).to.have.members(['undo-apply', 'look-for-absence']);
    run.observe(seen(null));
    // Its place on the hub is given back.
    run.perform('undo-place', done({}));
    run.commands();
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
    expect(run.isFolded()).to.equal(true);
  });
  it('that is stuck is tried on by itself, and takes no retry', () => {
    const run = deleting();
    wait(run, 65, failed('Forbidden'));
    const before = run.subjectLog().length;
    expect(run.command({ type: 'RetryOrder', at: run.now() })).to.include({ code: 'DELETION_REQUESTED' });
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_DELETE_FAILED' });
    expect(run.subjectLog()).to.have.length(before);
  });
  it('that others hold says so, and to the provider who they are', () => {
    const document = {
      spec: { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' },
      metadata: { name: 'x', finalizers: ['other/x', 'other/y'] },
    };
    for (const minutes of [1, 65]) {
      const run = orderPool();
      POOLS['on its hub']?.(run);
      run.command({ type: 'ReviseDocument', at: run.now(), document });
      remove(run);
      wait(run, minutes);
      run.observe(seen(null));
      settle(run);
      const message = 'it is held by finalizers of others';
      expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_DELETING', message });
      const waiting = () => actingExternalIpPool.order.details(run.subject());
      expect(waiting()).to.deep.include({
        waiting: { waiting: { message: `${message}: other/x, other/y` } },
        failure: {},
      });
      const metadata = { ...document.metadata, finalizers: ['other/y'] };
      run.command({ type: 'ReviseDocument', at: run.now(), document: { ...document, metadata } });
      expect(waiting().waiting).to.deep.equal({ waiting: { message: `${message}: other/y` } });
      expect(run.isFolded()).to.equal(true);
    }
  });
  it('is told as overdue also where nothing of its hub is heard, and of what is aborted', () => {
    const away = deleting();
    away.start('undo-apply');
    away.after(61 * 60_000);
    away.fire('deadline:absence');
    away.commands();
    expect(away.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_DELETE_FAILED' });
    const run = orderIp();
    IPS['failed on its hub']?.(run);
    abort(run);
    wait(run, 65);
    expect(run.shown()['state']).to.equal('EXTERNAL_IP_STATE_FAILED');
    expect(run.shown()['message']).to.match(/^the hub takes unusually long/);
    expect(externalIp.marks?.(run.document())).to.deep.equal(['deletion-overdue']);
    run.observe(seen(null));
    run.perform('undo-claim', done({}));
    run.commands();
    expect(run.shown()).to.include({ message: 'aborted: the hub is scrap' });
  });
  it('that waits for its hub leaves a handful of events in an hour, and fewer in the next', () => {
    const run = deleting();
    expect(wait(run, 60)).to.be.at.most(12);
    expect(wait(run, 60)).to.be.at.most(6);
    expect(run.isFolded()).to.equal(true);
  });
});

describe('what a hub shows', () => {
  it('is no news where only its words change, for ten minutes', () => {
    const run = orderPool();
    POOLS['on its hub']?.(run);
    const before = run.subjectLog().length;
    for (let look = 0; look < 100; look += 1) {
      run.observe(seen({ phase: 'Failed', message: `try ${look}` }));
      run.after(10_000);
    }
    expect(run.subjectLog().length - before).to.be.within(2, 3);
    run.observe(seen({ phase: 'Ready' }));
    run.observe(seen({ phase: 'Failed', message: 'another one' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_FAILED' });
  });

  it('is no loss before a retry has sent the object again', () => {
    const run = orderPool();
    POOLS['on its hub']?.(run);
    run.observe(seen({ phase: 'Ready' }));
    run.observe(seen(null));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_FAILED' });
    run.command({ type: 'RetryOrder', at: run.now() });
    run.observe(seen(null));
    expect(run.shown(), 'it is not ready before it was seen to be').to.include({
      state: 'EXTERNAL_IP_POOL_STATE_PENDING',
    });
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Progressing' }));
    expect(run.shown()).to.not.have.property('message');
    run.observe(seen({ phase: 'Ready' }));
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_POOL_STATE_READY' });
  });
});

describe('an object that shows up on its hub after nothing of it was left there', () => {
  const late = (end: (run: Pool) => unknown) => {
    const run = orderPool();
    POOLS['of unknown outcome']?.(run);
    end(run);
    settle(run);
    run.observe(seen({ phase: 'Ready' }));
    return run;
  };
  const removed = (run: Pool): void => {
    const { effectId, operation, args, lane } = run.effect('undo-apply');
    expect([operation, lane, args['hub'], args['namespace']]).to.deep.equal([
      'deleteObject',
      'hub:sim-1:ExternalIPPool',
      'sim-1',
      'osac',
    ]);
    expect(args['name']).to.match(/^externalippool-/);
    run.start('undo-apply');
    run.result(effectId, done({ existed: true }));
    run.observe({ object: null, hub: 'sim-2' });
    expect(run.effects(), 'another hub says nothing of it').to.include('undo-apply');
    run.observe(seen(null));
    expect(run.effects()).to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  };
  it('is removed from there where the order was aborted', () => {
    const run = late(abort);
    removed(run);
    expect(run.shown()).to.include({ message: 'aborted: the hub is scrap' });
    remove(run);
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
  });
  it('is removed from there where others hold the deletion, and the run ends after that', () => {
    const spec = { cidrs: ['192.0.2.0/29'], ip_family: 'IP_FAMILY_IPV4' };
    const hold = (run: Pool, finalizers: string[]) =>
      run.command({
        type: 'ReviseDocument',
        at: run.now(),
        document: { spec, metadata: { name: 'x', finalizers } },
      });
    const run = late((held) => {
      hold(held, ['other/x']);
      remove(held);
    });
    hold(run, []);
    expect(run.isClosed()).to.equal(false);
    removed(run);
    expect([run.subjectTypes().at(-1), run.isClosed()]).to.deep.equal(['ExternalIPPoolDeleted', true]);
  });
});

describe('what the hub of a pool or an external IP says of itself', () => {
  const AT = 'https://10.1.2.3:6443: connect ECONNREFUSED';
  /** What tenants may read of it: the document, and its events as they see them. */
  const readable = (run: Pool | Ip): string =>
    JSON.stringify([
      run.shown(),
      run.subjectLog().map(({ type, data }) => withoutPaths(registry.get(type)?.providerOnly ?? [])(data)),
    ]);
  const detailsOf = (run: Ip) => actingExternalIp.order.details(run.subject());
  it('is told to the provider alone: of what is not taken there', () => {
    const run = orderIp();
    IPS['with an address']?.(run);
    for (let attempt = 0; attempt < 10; attempt += 1) {
      run.perform('apply', { outcome: 'failed', reason: 'Unavailable', message: AT });
      run.after(60 * 60_000);
    }
    run.commands();
    const message = 'the hub of this order does not answer';
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED', message });
    expect(detailsOf(run).failure).to.deep.equal({
      failure: { reason: 'Unavailable', message, detail: AT },
    });
    expect(readable(run)).to.not.include('10.1.2.3');
  });
  it('is told to the provider alone: of what is not gone from there', () => {
    const run = orderIp();
    IPS['failed on its hub']?.(run);
    abort(run);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      run.perform('undo-apply', { outcome: 'failed', reason: 'HubNotRegistered', message: `munich, ${AT}` });
      run.after(60 * 60_000);
    }
    run.commands();
    const message = 'it is not gone yet: the hub of this order is not available';
    expect(run.shown()).to.include({ message });
    expect(detailsOf(run).waiting).to.deep.equal({ waiting: { message, detail: `munich, ${AT}` } });
    run.fire('deadline:absence');
    run.commands();
    expect(detailsOf(run).waiting).to.deep.equal({
      waiting: {
        message: 'the hub takes unusually long to clean up: the hub of this order is not available',
        detail: `munich, ${AT}`,
      },
    });
    expect(readable(run)).to.not.include('munich');
  });
  it('is told to the provider alone: the words of who works there', () => {
    const run = orderIp();
    IPS['with an address']?.(run);
    run.perform('apply', done({ uid: 'u' }));
    run.observe(seen({ phase: 'Failed', message: `leaf-7 of rack 3: ${AT}` }));
    const message = 'the hub could not make the external IP ready';
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED', message });
    expect(detailsOf(run).failure).to.deep.equal({
      failure: { reason: 'ProvisioningFailed', message, detail: `leaf-7 of rack 3: ${AT}` },
    });
    expect(readable(run)).to.not.include('leaf-7');
  });
  it('is not mixed up with what our own rules say, which is written for tenants', () => {
    const run = orderIp();
    IPS['placed']?.(run);
    const message = 'address 192.0.2.9 is not free';
    run.perform('claim', { outcome: 'refused', reason: 'ADDRESS_TAKEN', message });
    run.commands();
    expect(run.shown()).to.include({ state: 'EXTERNAL_IP_STATE_FAILED', message });
  });
});
