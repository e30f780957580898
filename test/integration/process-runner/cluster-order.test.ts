import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { FAILPOINTS, type FailpointName } from '../../../src/app/process-runner/types.ts';
import { assertNoSecondObject, readHubCalls, readHubOrders } from '../../support/hubs/hub-journal.ts';
import { orderFixture, type OrderFixture } from '../../support/hubs/order-fixture.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';
import { eventually } from '../../support/eventually.ts';

describe('cluster orders on simulated hubs', function () {
  this.timeout(60_000);
  let folder = '';
  const closing: (() => Promise<void>)[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'orders-'));
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    rmSync(folder, { recursive: true });
  });
  const start = (options: Partial<Parameters<typeof orderFixture>[0]> = {}): OrderFixture => {
    const fixture = orderFixture({ folder, ...options });
    closing.push(fixture.close);
    return fixture;
  };
  const typesOf = async ({ store }: OrderFixture, id: string): Promise<string[]> =>
    (await readAll(store, `cluster-${id}`)).map((event) => event.type);
  const has = (fixture: OrderFixture, id: string, type: string, count = 1) =>
    eventually(
      `${type} of ${id}`,
      async () => (await typesOf(fixture, id)).filter((each) => each === type).length >= count,
      20_000,
    );

  it('goes from the order to READY, scales, and is deleted once its absence was seen', async () => {
    const fixture = start();
    await fixture.register('sim-a');
    await fixture.order('c1');
    await has(fixture, 'c1', 'ClusterBecameReady');
    await fixture.command('c1', {
      type: 'ReviseCluster',
      at: new Date().toISOString(),
      changes: { nodeSets: { workers: { hostType: { id: 'fc430' }, size: 4 } } },
    });
    await has(fixture, 'c1', 'ClusterBecameReady', 2);
    await fixture.command('c1', { type: 'DeleteCluster', at: new Date().toISOString() });
    await has(fixture, 'c1', 'ClusterDeleted');
    await eventually('run closed', () => fixture.processes.status().closedRuns === 1);
    const [order] = readHubOrders(fixture.hubFile('sim-a'));
    expect(order?.goneAt).to.be.a('number');
    const created = readHubCalls(fixture.hubFile('sim-a')).filter((call) => call.result === 'created');
    expect(created).to.have.length(1);
    expect(fixture.processes.status().parkedRuns).to.deep.equal([]);
  });

  it('removes an order that arrives at the hub after its cluster was deleted', async () => {
    const fixture = start();
    await fixture.register('sim-a');
    await fixture.order('c1');
    await has(fixture, 'c1', 'ClusterOrderPlaced');
    await fixture.command('c1', { type: 'DeleteCluster', at: new Date().toISOString() });
    await has(fixture, 'c1', 'ClusterDeleted');
    await eventually('run closed', () => fixture.processes.isClosed('clusterOrder', 'c1'));
    await fixture.late('sim-a', 'c1');
    const orders = () => readHubOrders(fixture.hubFile('sim-a'));
    await eventually('the late one is there', () => orders().length === 2);
    await eventually('and asked to go', () => orders().every((order) => order.deletionAt !== undefined));
  });

  it('waits with a reason until a hub fits', async () => {
    const fixture = start();
    await fixture.order('c1', { zone: 'north' });
    await has(fixture, 'c1', 'PlacementDeferred');
    await fixture.register('sim-south', { zone: 'south' });
    await has(fixture, 'c1', 'PlacementDeferred', 2);
    await fixture.register('sim-north', { zone: 'north' });
    await has(fixture, 'c1', 'ClusterBecameReady');
    const selected = (await readAll(fixture.store, 'cluster-c1')).find(
      (event) => event.type === 'HubSelected',
    );
    expect(selected?.data['hub']).to.equal('sim-north');
  });

  it('goes on at once with what waited for a place because the lane of its hub was held back', async () => {
    const fixture = start();
    await fixture.register('sim-a');
    await eventually('live', () => fixture.processes.status().state === 'live');
    fixture.processes.pauseLane('hub:sim-a');
    await fixture.order('c1');
    await has(fixture, 'c1', 'PlacementDeferred');
    fixture.processes.resumeLane('hub:sim-a');
    // Its own pause is 30 s; this waits for 20.
    await has(fixture, 'c1', 'HubSelected');
  });

  for (const point of FAILPOINTS.filter((name) => name !== 'before-timer')) {
    it(`survives a crash at ${point}: READY with one order on the hub`, async () => {
      const store = createMemoryEventStore();
      let seen = 0;
      let crashed = false;
      // The second effect is the write to the hub; the first was the placement.
      const failpoint = async (name: FailpointName): Promise<void> => {
        if (name === point) seen += 1;
        if (crashed || seen === 2) {
          crashed = true;
          await new Promise<never>(() => undefined);
        }
      };
      const first = orderFixture({
        folder,
        store,
        instance: 'first',
        more: { failpoint, settings: { stopGraceMs: 0 } },
      });
      await first.register('sim-a');
      await first.order('c1');
      await eventually('crash', () => crashed);
      await first.close();
      const second = start({ store, instance: 'second' });
      await has(second, 'c1', 'ClusterBecameReady');
      assertNoSecondObject(second.hubFile('sim-a'));
    });
  }

  it('brings 60 orders over three hubs to READY while one hub is dead', async () => {
    const fixture = start({
      hubs: 'factor=0.005',
      more: { settings: { laneConcurrency: 4, breakerFailures: 3 } },
    });
    for (const id of ['sim-a', 'sim-b', 'sim-dead']) await fixture.register(id);
    await fixture.killHub('sim-dead');
    const ids = Array.from({ length: 60 }, (_, i) => `c${i}`);
    await Promise.all(ids.map((id) => fixture.order(id, { size: 1 })));
    const states = async (): Promise<string[]> =>
      Promise.all(
        ids.map(async (id) => {
          const types = await typesOf(fixture, id);
          const hub = (await readAll(fixture.store, `cluster-${id}`)).find(
            ({ type }) => type === 'HubSelected',
          );
          if (types.includes('ClusterBecameReady')) return 'ready';
          return hub?.data['hub'] === 'sim-dead' ? 'on the dead hub' : 'under way';
        }),
      );
    await eventually(
      'all others ready',
      async () => (await states()).every((state) => state !== 'under way'),
      40_000,
    );
    const ready = (await states()).filter((state) => state === 'ready').length;
    expect(ready).to.be.at.least(20);
    expect(fixture.processes.status().parkedRuns).to.deep.equal([]);
    for (const hub of ['sim-a', 'sim-b']) assertNoSecondObject(fixture.hubFile(hub));
  });
});
