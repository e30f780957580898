import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { cluster } from '../../../src/domain/clusters/cluster.resource.ts';
import { listAt, objectAt, own, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { hubCapacity } from '../../../src/app/hubs/scheduler.ts';
import { claimOf } from '../../../src/domain/hubs/capacity.ts';
import { eventually } from '../../support/eventually.ts';
import { orderFixture, type OrderFixture } from '../../support/hubs/order-fixture.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';

const HUB = 'sim-a';

/** A cluster that is READY and is to grow on a hub that has no room for it now: it runs on, and nothing of it fails. */
describe('a scale that finds no room', function () {
  this.timeout(60_000);
  let folder = '';
  let fixture: OrderFixture;
  afterEach(async () => {
    await fixture.close();
    rmSync(folder, { recursive: true });
  });

  const status = async (id: string): Promise<JsonObject> => {
    const view = cluster.view(await fixture.cluster(id));
    return view.exists ? objectAt(view.document, 'status') : {};
  };
  const shows = (id: string, state: string, ready: string | RegExp): Promise<void> =>
    eventually(
      `${id} is ${state} with ${String(ready)}`,
      async () => {
        const shown = await status(id);
        const condition = listAt(shown, 'conditions').find(
          (one) => stringAt(one, 'type') === 'CLUSTER_CONDITION_TYPE_READY',
        );
        const told = `${stringAt(condition, 'reason')}: ${stringAt(condition, 'message')}`;
        return (
          stringAt(shown, 'state') === `CLUSTER_STATE_${state}` &&
          (typeof ready === 'string' ? told === ready : ready.test(told))
        );
      },
      20_000,
    );
  const nodes = async (id: string): Promise<number> =>
    own((await status(id))['node_sets'] as { [name: string]: { size: number } }, 'workers')?.size ?? 0;
  const scale = (id: string, size: number): Promise<void> =>
    fixture.command(id, {
      type: 'ReviseCluster',
      at: new Date().toISOString(),
      changes: { nodeSets: { workers: { hostType: { id: 'fc430' }, size } } },
    });
  const held = async (id: string): Promise<number | undefined> =>
    claimOf((await fixture.commandRunner.load(hubCapacity, HUB)).state, { kind: 'cluster', id })?.nodes[
      'fc430'
    ];
  const hubHolds = (count: number, more: JsonObject): Promise<void> =>
    fixture.revise(HUB, { capacity: { nodes: { fc430: count } }, ...more });

  it('waits READY with the reason, is taken back, goes on with more room, and is deleted', async () => {
    folder = mkdtempSync(join(tmpdir(), 'orders-'));
    fixture = orderFixture({ folder });
    const more = { zone: 'east' };
    await fixture.register(HUB, { capacity: { nodes: { fc430: 7 } }, ...more });
    await fixture.order('c1', { zone: 'east' });
    await fixture.order('c2');
    for (const id of ['c1', 'c2']) await shows(id, 'READY', 'AsExpected: ');

    await scale('c1', 6);
    const waits =
      "ResizeWaiting: resize of node set 'workers' from 2 to 6: waiting for 4 × fc430 in zone east";
    await shows('c1', 'READY', waits);
    expect(await held('c1'), 'nothing is taken meanwhile').to.equal(2);
    await scale('c1', 2);
    await shows('c1', 'READY', 'AsExpected: ');
    expect(await nodes('c1')).to.equal(2);

    await scale('c1', 6);
    await shows('c1', 'READY', waits);
    await hubHolds(8, more);
    await shows('c1', 'READY', 'AsExpected: ');
    await eventually('six nodes', async () => (await nodes('c1')) === 6, 20_000);
    expect(await held('c1')).to.equal(6);

    await scale('c1', 7);
    await shows('c1', 'READY', /^ResizeWaiting: .*: waiting for 1 × fc430 in zone east$/);
    await fixture.command('c2', { type: 'DeleteCluster', at: new Date().toISOString() });
    await shows('c1', 'READY', 'AsExpected: ');
    await eventually('seven nodes', async () => (await nodes('c1')) === 7, 20_000);

    await scale('c1', 9);
    await shows('c1', 'READY', /^ResizeWaiting: /);
    await fixture.command('c1', { type: 'DeleteCluster', at: new Date().toISOString() });
    await eventually('deleted', async () => (await fixture.cluster('c1')).status === 'deleted', 20_000);
    await eventually('its room is free again', async () => (await held('c1')) === undefined);
    const types = (await readAll(fixture.store, 'cluster-c1')).map(({ type }) => type);
    expect(types).to.not.include('ClusterFailed').and.to.not.include('ClusterChangeFailed');
  });
});
