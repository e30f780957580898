import { expect } from 'chai';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { createHubObserver } from '../../../src/app/hubs/hub-observer.ts';
import type { CallOptions } from '../../../src/app/hubs/management-cluster.ts';
import { createManagementClusterEffects } from '../../../src/app/hubs/management-cluster-effects.ts';
import { ownedObjects } from '../../../src/domain/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { eventually } from '../../support/eventually.ts';
import { effectCall, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';
import { EXTERNAL_IP_POOL as POOL } from '../../../src/domain/networks/hub-objects.ts';

const HUB = 'sim-a';
const ARGS = {
  object: POOL.kind,
  hub: HUB,
  namespace: 'orders',
  id: 'pool-1',
  name: POOL.nameOf('pool-1'),
};
const SPEC = { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4' };
const by = (): CallOptions => ({
  effectId: 'test',
  deadlineMs: 5_000,
  signal: new AbortController().signal,
});

describe('effects on objects of a declared kind', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  const stage = async () => {
    const [clock, timers, looks] = [systemClock(), systemTimers(), createObjectLooks()];
    const hub = createSimulatedHub({
      hubId: HUB,
      file: ':memory:',
      clock,
      timers,
      inline: true,
      settings: { factor: '0.05' },
      watchPollMs: 10,
    });
    closing.push(() => hub.close());
    const fixture = hubFixture({ of: () => hub });
    closing.push(() => fixture.stop());
    await fixture.register(HUB);
    await eventually('the hub is known', () => fixture.registry.get(HUB) !== undefined);
    const { registry } = fixture;
    const port = createManagementClusterEffects({
      registry,
      secrets: { reveal: async () => undefined },
      clock,
      looks,
    });
    const run = (operation: string, args: object, more: Parameters<typeof effectCall>[0] = {}) =>
      port(operation, args as JsonObject, effectCall(more));
    const { revise } = fixture;
    return { hub, registry, revise, run, clock, timers, looks };
  };

  it('create an object and find it again', async () => {
    const { hub, run } = await stage();
    const first = await run('applyObject', { ...ARGS, spec: SPEC });
    expect(first).to.deep.include({ outcome: 'done' });
    expect(first.outcome === 'done' && first.result).to.include({ name: ARGS.name, did: 'created' });
    const again = await run('applyObject', { ...ARGS, spec: SPEC }, { mode: 'observe', attempt: 2 });
    expect(again.outcome === 'done' && again.result['did']).to.equal('unchanged');
    const stored = await hub.get(POOL, ARGS, by());
    expect(stored?.annotations).to.include({ 'osac.openshift.io/tenant': 'acme' });
    expect(stored?.id).to.equal('pool-1');
  });

  it('refuse a change that the hub never takes, and a name that belongs to somebody else', async () => {
    const { run } = await stage();
    await run('applyObject', { ...ARGS, spec: SPEC });
    const fixed = await run('applyObject', { ...ARGS, spec: { ...SPEC, cidrs: ['198.51.100.0/24'] } });
    expect(fixed).to.include({ outcome: 'refused', reason: 'ValidationFailed' });
    const taken = await run('applyObject', { ...ARGS, id: 'pool-2', spec: SPEC });
    expect(taken).to.include({ outcome: 'refused', reason: 'NameTaken' });
    expect(taken.outcome === 'refused' && taken.message).to.include('belongs to external IP pool pool-1');
  });

  it('observe it until it is gone, and ask for its end once', async () => {
    const { run } = await stage();
    const shown = async (): Promise<JsonObject | null> => {
      const seen = await run('observeObject', ARGS);
      if (seen.outcome !== 'done') throw new Error(seen.outcome);
      return seen.result['object'] === null ? null : objectAt(seen.result, 'object');
    };
    expect(await shown()).to.equal(null);
    await run('applyObject', { ...ARGS, spec: SPEC });
    await eventually('it is ready', async () => (await shown())?.['phase'] === 'Ready');
    expect(await run('deleteObject', ARGS)).to.deep.equal({ outcome: 'done', result: { existed: true } });
    await eventually('it is gone', async () => (await shown()) === null);
    expect(await run('deleteObject', ARGS)).to.deep.equal({ outcome: 'done', result: { existed: false } });
  });

  it('are told to the run of its id by the watch of its kind', async () => {
    const { registry, revise, run, clock, timers, looks } = await stage();
    const told: string[] = [];
    const observer = createHubObserver({
      registry,
      looks,
      observe: (kind, id, observation) => {
        const object = observation['object'] ?? null;
        told.push(`${kind} ${id} ${object === null ? 'gone' : stringAt(object, 'phase')}`);
        return true;
      },
      clock,
      timers,
      logger: silentLogger,
    });
    const stop = new AbortController();
    const ended = observer.run(stop.signal);
    closing.push(async () => {
      stop.abort();
      await ended;
    });
    const kinds = ownedObjects().flatMap(({ kind, unwatched }) => (unwatched === true ? [] : [kind]));
    const followed = () => observer.status().map(({ kind }) => kind);
    await eventually('all kinds are followed', () => followed().length === kinds.length);
    // Of a hub that changed they still are.
    await revise(HUB, { zone: 'elsewhere' });
    await eventually('the hub has changed', () => registry.get(HUB)?.facts.zone === 'elsewhere');
    expect(followed()).to.have.members(kinds);
    await run('applyObject', { ...ARGS, spec: SPEC });
    await eventually('it is seen ready', () => told.includes('ExternalIPPool pool-1 Ready'));
    expect(observer.status().find(({ kind }) => kind === POOL.kind)?.orders).to.equal(1);
    expect(observer.ordersOn(HUB)).to.equal(0);
    await run('deleteObject', ARGS);
    await eventually('its end is seen', () => told.includes('ExternalIPPool pool-1 gone'));
  });

  it('are refused for a kind that is only read', async () => {
    const { run } = await stage();
    const outcome = await run('applyObject', { ...ARGS, object: 'Secret', spec: {} });
    expect(outcome).to.include({ outcome: 'refused', reason: 'NotWritten' });
  });
});
