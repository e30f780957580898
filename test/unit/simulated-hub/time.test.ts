import { expect } from 'chai';
import { CLUSTER_ORDER, type ObservedClusterOrder } from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import { createSimulatedHubs } from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import { createHubBench, manifestOf, NAMESPACE, REF } from './hub-support.ts';

describe('time on the simulated hub', () => {
  let bench: ReturnType<typeof createHubBench>;
  beforeEach(() => {
    bench = createHubBench();
  });
  afterEach(() => bench.close());

  const phase = async (hub = bench.hub) => (await hub.get(CLUSTER_ORDER, REF('order-a'), bench.by()))?.phase;

  it('goes on while nobody runs', async () => {
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.hub.close();
    await bench.time.advance(60_000);
    expect(await phase(bench.open())).to.equal('Ready');
  });

  it('does not follow a jump of the wall clock in a running instance', async () => {
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    bench.time.jumpWall(3_600_000);
    await bench.time.advance(400);
    expect(await phase()).to.equal('Progressing');
    bench.time.jumpWall(-7_200_000);
    await bench.time.advance(4000);
    expect(await phase()).to.equal('Ready');
  });

  it('never goes back for an instance that starts with a clock behind', async () => {
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.time.advance(4000);
    expect(await phase()).to.equal('Ready');
    bench.time.jumpWall(-3_600_000);
    const restarted = bench.open();
    expect(await phase(restarted)).to.equal('Ready');
    const deleted = await restarted.delete(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(2000);
    expect([deleted, await phase(restarted)]).to.deep.equal([true, undefined]);
  });

  it('is seen by a watch at the moment of each change, also of other instances', async () => {
    const seen: string[] = [];
    const end = new AbortController();
    const name = (event: HubObjectEvent<ObservedClusterOrder>): string =>
      event.type === 'synced' ? `synced ${event.names.join()}` : `${event.type} ${event.object.phase ?? '-'}`;
    const watching = (async () => {
      for await (const event of bench.hub.watch(CLUSTER_ORDER, NAMESPACE, end.signal)) seen.push(name(event));
    })();
    await bench.time.advance(100);
    const other = bench.open();
    await other.create(CLUSTER_ORDER, manifestOf('order-a', { simulation: 'factor=0.1' }), bench.by());
    await bench.time.advance(1000);
    await other.delete(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(1000);
    end.abort();
    await watching;
    expect(seen[0]).to.equal('synced ');
    expect(seen.filter((text, index) => text !== seen[index - 1])).to.deep.equal([
      'synced ',
      'applied -',
      'applied Progressing',
      'applied Ready',
      'applied Deleting',
      'deleted Deleting',
    ]);
  });

  it('shows a new watch nothing of an order that was gone before', async () => {
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.time.advance(4000);
    await bench.hub.delete(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(4000);
    expect(await phase()).to.equal(undefined);
    const seen = new Set<string>();
    const end = new AbortController();
    const restarted = bench.open();
    const watching = (async () => {
      for await (const event of restarted.watch(CLUSTER_ORDER, NAMESPACE, end.signal))
        seen.add(event.type === 'synced' ? `synced ${event.names.join()}` : event.object.name);
    })();
    await bench.time.advance(5000);
    await restarted.create(CLUSTER_ORDER, manifestOf('order-b'), bench.by());
    await bench.time.advance(100);
    end.abort();
    await watching;
    expect([...seen]).to.deep.equal(['synced ', 'order-b']);
  });

  it('a watch of another namespace sees nothing of it', async () => {
    const seen: string[] = [];
    const end = new AbortController();
    const watching = (async () => {
      for await (const event of bench.hub.watch(CLUSTER_ORDER, 'elsewhere', end.signal))
        seen.push(event.type);
    })();
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.time.advance(5000);
    end.abort();
    await watching;
    expect(seen).to.deep.equal(['synced']);
  });

  it('a hub in memory lives as any other and leaves nothing behind', async () => {
    const hub = bench.open({ file: ':memory:' });
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.time.advance(4000);
    expect(await phase(hub)).to.equal('Ready');
    await hub.close();
    expect(await phase(bench.open({ file: ':memory:' }))).to.equal(undefined);
  });

  it('hubs are simulated by their id, and keep apart', async () => {
    const hubs = createSimulatedHubs({
      dir: `${bench.file}.d`,
      clock: bench.time.clock,
      timers: bench.time.timers,
      inline: true,
    });
    expect(hubs.of({ id: 'prod-1', namespace: NAMESPACE })).to.equal(undefined);
    const one = hubs.of({ id: 'sim-1', namespace: NAMESPACE });
    expect(one).to.include({ hubId: 'sim-1', simulated: true });
    expect(hubs.of({ id: 'sim-1', namespace: NAMESPACE })).to.equal(one);
    const odd = hubs.of({ id: 'sim-../../x', namespace: NAMESPACE });
    await one?.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    expect(await odd?.get(CLUSTER_ORDER, REF('order-a'), bench.by())).to.equal(undefined);
    await hubs.close();
    expect(
      await one?.get(CLUSTER_ORDER, REF('order-a'), bench.by()).catch((error: unknown) => error),
    ).to.include({
      kind: 'unavailable',
    });
  });
});
