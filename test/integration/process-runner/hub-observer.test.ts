import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { SimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { createSimulatedHubs } from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createClusterLooks } from '../../../src/app/hub-looks.ts';
import { createHubObserver } from '../../../src/app/hub-observer.ts';
import {
  HubError,
  type ClusterOrderManifest,
  type ClusterOrderWatchEvent,
  type ManagementCluster,
  type ManagementClusters,
  type ObservedClusterOrder,
} from '../../../src/app/management-cluster.ts';
import { orderName } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import type { ClusterObservation } from '../../../src/domain/clusters/observed.ts';
import type { HubCapacityCommand } from '../../../src/domain/hubs/capacity.ts';
import { hubCapacity } from '../../../src/app/scheduler.ts';
import { commandContext, fakeCluster, hubFixture } from '../../support/hub-fixture.ts';
import { eventually, silentLogger } from '../../support/toy-workflow.ts';

const manifest = (clusterId: string, annotations: { [key: string]: string } = {}): ClusterOrderManifest => ({
  name: `order-${clusterId}`,
  namespace: 'orders',
  labels: { 'osac.openshift.io/clusterorder-uuid': clusterId },
  annotations,
  spec: {
    templateID: 'small',
    templateParameters: '{}',
    nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 1 }],
    releaseImage: 'quay.io/release:4.17',
  },
});
const order = (clusterId: string, more: Partial<ObservedClusterOrder> = {}): ObservedClusterOrder => ({
  name: `order-${clusterId}`,
  uid: `uid-${clusterId}`,
  clusterId,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-01-01T00:00:00Z',
  finalizers: [],
  annotations: {},
  spec: manifest(clusterId).spec,
  conditions: [],
  jobs: [],
  ...more,
});
const call = () => ({ effectId: 'test', deadlineMs: 1_000, signal: new AbortController().signal });

/** A watch whose events the test writes; each list of events is one connection, after which it breaks. */
const scripted = (...connections: ClusterOrderWatchEvent[][]) => {
  let opened = 0;
  const watch = async function* (
    _namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<ClusterOrderWatchEvent> {
    const events = connections[opened] ?? [];
    opened += 1;
    if (opened > connections.length) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      return;
    }
    yield* events;
    throw new HubError('unavailable', 'the watch broke');
  };
  return { watch, opened: () => opened };
};

describe('hub observer', function () {
  this.timeout(20_000);
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
  });

  type Question = (clusterId: string) => boolean;
  const never: Question = () => false;
  const observing = (clusters: ManagementClusters, isOver: Question = never, isUnknown: Question = never) => {
    const fixture = hubFixture(clusters);
    const fed: { clusterId: string; observation: ClusterObservation }[] = [];
    const observer = createHubObserver({
      registry: fixture.registry,
      looks: createClusterLooks(),
      observe: (clusterId, observation) => {
        fed.push({ clusterId, observation: observation as unknown as ClusterObservation });
        return true;
      },
      isOver,
      isUnknown,
      clock: systemClock(),
      timers: systemTimers(),
      logger: silentLogger(),
      backoffMs: 5,
      backoffMaxMs: 20,
    });
    const stop = new AbortController();
    const ended = observer.run(stop.signal);
    closing.push(() => fixture.stop());
    closing.push(async () => {
      stop.abort();
      await ended;
    });
    return { ...fixture, observer, fed };
  };
  const onFake = (fake: Partial<ManagementCluster>, isOver?: Question, isUnknown?: Question) =>
    observing(
      { of: ({ id }) => fakeCluster(id, { getHostedCluster: async () => undefined, ...fake }) },
      isOver,
      isUnknown,
    );

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
    await hub.createClusterOrder(manifest('c1'), call());
    const last = () => fed.at(-1)?.observation;
    await eventually('nodes ready', () => last()?.hostedCluster?.nodePools?.[0]?.ready === 1);
    expect(fed.every(({ clusterId }) => clusterId === 'c1')).to.equal(true);
    expect(observer.status()[0]).to.include({ hub: 'sim-a', synced: true, orders: 1 });
    await hub.deleteClusterOrder({ namespace: 'orders', name: 'order-c1' }, call());
    await eventually('absence', () => last()?.order === null);
    expect(observer.status()[0]?.orders).to.equal(0);
  });

  it('feeds nothing twice when the watch lists everything again', async () => {
    const listed: ClusterOrderWatchEvent[] = [
      { type: 'applied', order: order('c1') },
      { type: 'applied', order: order('c2') },
      { type: 'synced', names: ['order-c1', 'order-c2'], resourceVersion: '1' },
    ];
    const script = scripted(listed, listed, [
      { type: 'applied', order: order('c2', { phase: 'Progressing' }) },
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

  it('reports what vanished while the watch was down, and only that', async () => {
    const script = scripted(
      [
        { type: 'applied', order: order('c1') },
        { type: 'applied', order: order('c2') },
        { type: 'synced', names: ['order-c1', 'order-c2'], resourceVersion: '1' },
      ],
      [
        { type: 'applied', order: order('c2') },
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
    const { clusterId: _label, ...foreign } = order('c1');
    const script = scripted([
      { type: 'applied', order: foreign },
      { type: 'applied', order: order('c2') },
      { type: 'deleted', order: foreign },
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
      ...many.map((each): ClusterOrderWatchEvent => ({ type: 'applied', order: each })),
      ...many.map(
        (each): ClusterOrderWatchEvent => ({ type: 'applied', order: { ...each, phase: 'Ready' } }),
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
      { type: 'applied', order: order('c1', reference) },
      { type: 'applied', order: order('c1', { ...reference, phase: 'Progressing' }) },
      { type: 'applied', order: order('c1', { ...reference, phase: 'Ready' }) },
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

  it('deletes what is left on a hub of a cluster that is over', async () => {
    const deleted: string[] = [];
    const script = scripted([
      { type: 'applied', order: order('over') },
      { type: 'applied', order: order('leaving', { deletionTimestamp: '2026-01-01T00:00:00Z' }) },
      { type: 'applied', order: order('c1') },
    ]);
    const { fed, register, observer } = onFake(
      {
        watchClusterOrders: script.watch,
        deleteClusterOrder: async ({ name }, { effectId }) => {
          deleted.push(`${name} by ${effectId}`);
          return true;
        },
      },
      (clusterId) => clusterId !== 'c1',
    );
    await register('sim-a');
    await eventually('deleted', () => deleted.length > 0 && fed.length > 0);
    expect(deleted).to.deep.equal(['order-over by orphan/sim-a/order-over']);
    expect(fed.map(({ clusterId }) => clusterId)).to.deep.equal(['c1']);
    expect(observer.status()[0]?.orphans).to.equal(1);
  });

  it('counts orders that nobody here ever ordered, leaves them alone and reads nothing of them', async () => {
    const read: string[] = [];
    const script = scripted([
      { type: 'applied', order: order('strange') },
      { type: 'applied', order: order('strange', { phase: 'Ready' }) },
      { type: 'applied', order: order('stranger') },
      { type: 'applied', order: order('c1') },
      { type: 'synced', names: ['order-strange', 'order-stranger', 'order-c1'], resourceVersion: '1' },
      { type: 'deleted', order: order('stranger') },
    ]);
    const { fed, register, observer } = onFake(
      {
        watchClusterOrders: script.watch,
        getHostedCluster: async ({ name }) => {
          read.push(name);
          return undefined;
        },
      },
      undefined,
      (clusterId) => clusterId !== 'c1',
    );
    await register('sim-a');
    await eventually('one is left', () => script.opened() === 2 && observer.status()[0]?.unknown === 1);
    await eventually('ours is fed', () => fed.some(({ clusterId }) => clusterId === 'c1'));
    expect(observer.status()[0]).to.include({ orders: 2, unknown: 1, orphans: 0 });
    expect(read).to.deep.equal(['order-c1']);
  });

  it('no longer counts an order that was taken over since', async () => {
    let asked = 0;
    const script = scripted(
      [
        { type: 'applied', order: order('adopted') },
        { type: 'synced', names: ['order-adopted'], resourceVersion: '1' },
      ],
      [
        { type: 'applied', order: order('adopted', { phase: 'Ready' }) },
        { type: 'synced', names: ['order-adopted'], resourceVersion: '2' },
      ],
    );
    const { fed, register, observer } = onFake({ watchClusterOrders: script.watch }, undefined, () => {
      asked += 1;
      return asked === 1;
    });
    await register('sim-a');
    await eventually('it is ours', () => fed.some(({ clusterId }) => clusterId === 'adopted'));
    expect(observer.status()[0]).to.include({ orders: 1, unknown: 0 });
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

  it('tells of two orders with the label of one cluster, and keeps to the one of its name', async () => {
    const ours = orderName('c1');
    const copy = order('c1', { name: 'order-copy', uid: 'uid-copy' });
    const first = order('c1', { name: ours });
    const connection = scripted([
      { type: 'applied', order: copy },
      { type: 'applied', order: first },
      { type: 'synced', names: [ours, 'order-copy'], resourceVersion: '2' },
      { type: 'deleted', order: copy },
    ]);
    const hub = { watchClusterOrders: connection.watch, getClusterOrder: async () => first };
    const { fed, register } = onFake(hub);
    await register('sim-a');
    const last = () => fed.at(-1)?.observation;
    await eventually('one is left', () => last()?.duplicates?.length === 0);
    const about = fed.filter(({ observation }) => observation.order?.uid === first.uid);
    expect(fed.some(({ observation }) => observation.order === null)).to.equal(false);
    expect(about.length).to.be.greaterThan(0);
    expect(last()?.order?.uid).to.equal(first.uid);
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
      { type: 'ReserveCapacity', at, clusterId: 'c1', claim: { controlPlanes: 1, nodes: {} } },
      'reserve',
    );
    await eventually('the tenant’s', () => watched.includes('acme'));
    expect(watched.filter((namespace) => namespace === 'orders')).to.have.length(1);
  });
});
