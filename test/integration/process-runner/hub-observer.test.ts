import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { createSimulatedHubs } from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { CLUSTER_ORDER, type ObservedClusterOrder } from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import type { HubCapacityCommand } from '../../../src/domain/hubs/capacity.ts';
import { hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import { commandContext, fakeCluster } from '../../support/hubs/hub-fixture.ts';
import { call, manifest, observingStage, order, scripted } from './observing.ts';
import { manualTime } from '../../support/manual-time.ts';
import { eventually } from '../../support/eventually.ts';

describe('hub observer', function () {
  this.timeout(20_000);
  const { closing, observing, onFake } = observingStage();

  it('tells the run of each cluster what its hub shows, from creation to absence', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'observer-'));
    closing.push(async () => rmSync(folder, { recursive: true }));
    const hubs = createSimulatedHubs({
      dir: folder,
      clock: systemClock(),
      timers: systemTimers(),
      inline: true,
      settings: 'factor=0.02',
    });
    closing.push(() => hubs.close());
    const { fed, register, observer } = observing(hubs);
    await register('sim-a');
    const hub = hubs.of({ id: 'sim-a', namespace: 'orders' }) as SimulatedHub;
    await hub.create(CLUSTER_ORDER, manifest('c1'), call());
    const last = () => fed.at(-1)?.observation;
    await eventually('nodes ready', () => last()?.hostedCluster?.nodePools?.[0]?.ready === 1);
    expect(fed.every(({ clusterId }) => clusterId === 'c1')).to.equal(true);
    expect(observer.status()[0]).to.include({ hub: 'sim-a', synced: true, orders: 1 });
    await hub.delete(CLUSTER_ORDER, { namespace: 'orders', name: 'order-c1' }, call());
    await eventually('absence', () => last()?.order === null);
    expect(observer.status()[0]?.orders).to.equal(0);
  });

  it('feeds nothing twice when the watch lists everything again', async () => {
    const listed: HubObjectEvent<ObservedClusterOrder>[] = [
      { type: 'applied', object: order('c1') },
      { type: 'applied', object: order('c2') },
      { type: 'synced', names: ['order-c1', 'order-c2'], resourceVersion: '1' },
    ];
    const script = scripted(listed, listed, [
      { type: 'applied', object: order('c2', { phase: 'Progressing' }) },
      ...listed.slice(0, 1),
      { type: 'synced', names: ['order-c1', 'order-c2'], resourceVersion: '2' },
    ]);
    const { fed, register } = onFake({ watchClusterOrders: script.watch });
    await register('sim-a');
    await eventually('last connection', () => script.opened() === 4);
    await eventually('change seen', () => fed.length >= 3);
    expect(fed.map(({ clusterId, observation }) => [clusterId, observation.order?.phase])).to.deep.equal([
      ['c1', undefined],
      ['c2', undefined],
      ['c2', 'Progressing'],
    ]);
  });

  it('leaves no timer once it has stopped, right after it read something', async () => {
    const time = manualTime();
    const script = scripted([{ type: 'applied', object: order('c1') }]);
    const { fed, register, end } = onFake(
      { watchClusterOrders: script.watch },
      undefined,
      undefined,
      time.timers,
    );
    await register('sim-a');
    await eventually('c1', () => fed.length === 1);
    await end();
    expect(time.waiting()).to.equal(0);
  });

  it('reports what vanished while the watch was down, and only that', async () => {
    const script = scripted(
      [
        { type: 'applied', object: order('c1') },
        { type: 'applied', object: order('c2') },
        { type: 'synced', names: ['order-c1', 'order-c2'], resourceVersion: '1' },
      ],
      [
        { type: 'applied', object: order('c2') },
        { type: 'synced', names: ['order-c2'], resourceVersion: '5' },
      ],
    );
    const { fed, register, observer } = onFake({ watchClusterOrders: script.watch });
    await register('sim-a');
    await eventually('absence', () => fed.some(({ observation }) => observation.order === null));
    expect(
      fed.filter(({ observation }) => observation.order === null).map(({ clusterId }) => clusterId),
    ).to.deep.equal(['c1']);
    expect(observer.status()[0]).to.include({ orders: 1, lastError: 'the watch broke' });
    expect(observer.status()[0]?.lastErrorAt).to.match(/^\d{4}-.*Z$/);
  });

  it('leaves objects without our label alone', async () => {
    const { id: _label, ...foreign } = order('c1');
    const script = scripted([
      { type: 'applied', object: foreign },
      { type: 'applied', object: order('c2') },
      { type: 'deleted', object: foreign },
    ]);
    const { fed, register } = onFake({ watchClusterOrders: script.watch });
    await register('sim-a');
    await eventually('c2', () => fed.length === 1);
    expect(fed[0]?.clusterId).to.equal('c2');
  });

  it('reads the newest of many changes and keeps at most a few reads at once', async () => {
    let reading = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const reference = { clusterReference: { namespace: 'n', hostedClusterName: 'h' } };
    const many = Array.from({ length: 30 }, (_, i) => order(`c${i}`, reference));
    const script = scripted([
      ...many.map((each): HubObjectEvent<ObservedClusterOrder> => ({ type: 'applied', object: each })),
      ...many.map(
        (each): HubObjectEvent<ObservedClusterOrder> => ({
          type: 'applied',
          object: { ...each, phase: 'Ready' },
        }),
      ),
    ]);
    const { fed, register } = onFake({
      watchClusterOrders: script.watch,
      getHostedCluster: async () => {
        reading += 1;
        most = Math.max(most, reading);
        await gate.promise;
        reading -= 1;
        return undefined;
      },
    });
    await register('sim-a');
    await eventually('all seen', () => script.opened() === 2);
    gate.resolve();
    const ready = () => fed.filter(({ observation }) => observation.order?.phase === 'Ready').length;
    await eventually('all ready', () => ready() === 30);
    expect(most).to.equal(16);
    expect(fed.length).to.be.at.most(46);
  });

  it('lets no read of an order overtake an earlier one of the same order', async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    const reference = { clusterReference: { namespace: 'n', hostedClusterName: 'h' } };
    const script = scripted([
      { type: 'applied', object: order('c1', reference) },
      { type: 'applied', object: order('c1', { ...reference, phase: 'Progressing' }) },
      { type: 'applied', object: order('c1', { ...reference, phase: 'Ready' }) },
    ]);
    const { fed, register } = onFake({
      watchClusterOrders: script.watch,
      getHostedCluster: async () => {
        reads += 1;
        await gates[reads - 1]?.promise;
        return undefined;
      },
    });
    await register('sim-a');
    await eventually('all seen', () => script.opened() === 2);
    expect(reads).to.equal(1);
    gates[1]?.resolve();
    gates[0]?.resolve();
    await eventually('both fed', () => fed.length === 2);
    expect(fed.map(({ observation }) => observation.order?.phase)).to.deep.equal([undefined, 'Ready']);
  });

  it('looks at an order at once, and at what it writes right after that half a second later, the newest alone', async () => {
    const time = manualTime();
    const reference = { clusterReference: { namespace: 'n', hostedClusterName: 'h' } };
    let more = Promise.withResolvers<HubObjectEvent<ObservedClusterOrder>[]>();
    const shown = (phase: 'Progressing' | 'Ready'): HubObjectEvent<ObservedClusterOrder> => ({
      type: 'applied',
      object: order('c1', { ...reference, phase }),
    });
    const watch = async function* (): AsyncGenerator<HubObjectEvent<ObservedClusterOrder>> {
      for (let events = await more.promise; events.length > 0; events = await more.promise) {
        more = Promise.withResolvers();
        yield* events;
      }
    };
    const { fed, register } = onFake({ watchClusterOrders: watch }, undefined, undefined, time.timers);
    const phases = () => fed.map(({ observation }) => observation.order?.phase);
    await register('sim-a');
    more.resolve([{ type: 'applied', object: order('c1', reference) }]);
    await eventually('the first', () => fed.length === 1);
    more.resolve([shown('Progressing'), shown('Ready')]);
    await time.pass(499);
    expect(phases()).to.deep.equal([undefined]);
    await time.pass(1);
    await eventually('the newest', () => fed.length === 2);
    expect(phases()).to.deep.equal([undefined, 'Ready']);
    more.resolve([]);
  });

  it('stops watching a hub that was deregistered and starts with one that was registered', async () => {
    const watched = new Set<string>();
    const fake = (id: string) =>
      fakeCluster(id, {
        getHostedCluster: async () => undefined,
        watchClusterOrders: async function* (_namespace, signal) {
          watched.add(id);
          yield { type: 'synced', names: [], resourceVersion: '1' };
          await new Promise<void>((resolve) =>
            signal.addEventListener('abort', () => resolve(), { once: true }),
          );
          watched.delete(id);
        },
      });
    const { register, deregister, observer } = observing({
      of: ({ id }) => (id === 'no' ? undefined : fake(id)),
    });
    await register('a');
    await register('no');
    await eventually('a is watched', () => watched.has('a'));
    await register('b');
    await eventually('b is watched', () => watched.has('b'));
    await deregister('a');
    await eventually('a is left', () => !watched.has('a'));
    expect(observer.status().map(({ hub }) => hub)).to.deep.equal(['b']);
  });

  it('watches every namespace in which a hub keeps orders of tenants', async () => {
    const watched = new Set<string>();
    const { register, observer } = onFake({
      watchClusterOrders: async function* (namespace, signal) {
        watched.add(namespace);
        yield { type: 'synced', names: [], resourceVersion: '1' };
        await new Promise<void>((resolve) =>
          signal.addEventListener('abort', () => resolve(), { once: true }),
        );
      },
    });
    await register('a', { namespaces: { acme: 'acme-orders', globex: 'globex-orders' } });
    await eventually('all are watched', () => watched.size === 3);
    expect([...watched].toSorted()).to.deep.equal(['acme-orders', 'globex-orders', 'orders']);
    expect(observer.status().map(({ hub }) => hub)).to.deep.equal(['a', 'a', 'a']);
  });

  it('watches the namespace of a tenant from its first place on', async () => {
    const watched: string[] = [];
    const watchClusterOrders = (namespace: string, signal: AbortSignal) => {
      watched.push(namespace);
      return scripted().watch(namespace, signal);
    };
    const { register, commandRunner } = onFake({ watchClusterOrders });
    await register('sim-a', { tenant_namespaces: true });
    await eventually('the hub’s own', () => watched.includes('orders'));
    const reserve = async (command: HubCapacityCommand, id: string): Promise<void> => {
      await commandRunner.execute(hubCapacity, 'sim-a', command, commandContext(id, 'acme'));
    };
    const at = '2026-01-01T00:00:00.000Z';
    await reserve(
      { type: 'DeclareCapacity', at, hub: 'sim-a', limits: { nodes: {} }, hubRevision: 0 },
      'declare',
    );
    await reserve(
      {
        type: 'ReserveCapacity',
        at,
        holder: { kind: 'cluster', id: 'c1' },
        claim: { controlPlanes: 1, nodes: {} },
      },
      'reserve',
    );
    await eventually('the tenant’s', () => watched.includes('acme'));
    expect(watched.filter((namespace) => namespace === 'orders')).to.have.length(1);
  });
});
