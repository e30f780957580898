import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMadeObjectEffects } from '../../../src/app/hubs/made-object-effects.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { autoObjects, boundObjects } from '../../../src/domain/clusters/endpoints.ts';
import { clusterDecider } from '../../../src/domain/clusters/decide.ts';
import { isStoredCluster } from '../../../src/domain/clusters/state.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { aggregateOf, cluster, kinds, lifecycle } from '../../../src/domain/kinds.ts';
import { externalIp } from '../../../src/domain/networks/external-ip.resource.ts';
import { externalIpAttachment } from '../../../src/domain/networks/external-ip-attachment.resource.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { commandContext, effectCall } from '../../support/hubs/hub-fixture.ts';
import { ID, ordered } from '../domain/clusters/samples.ts';

const IDS = { API: { ip: 'ip-1', attachment: 'at-1' }, INGRESS: { ip: 'ip-2', attachment: 'at-2' } };
const order = { ...ordered, externalIps: { pool: { id: 'p', name: 'p' }, hub: 'h', ids: IDS } };

/** A cluster whose external IPs the service makes and removes. */
const stage = async () => {
  const store = createMemoryEventStore();
  const { runner, resources, clock } = createIncarnation(store, 'one', {
    codec: createEventCodec(eventTypes),
    kinds,
    lifecycle,
  });
  const effects = createMadeObjectEffects({ commandRunner: runner, commands: resources, clock });
  const run = await runner.execute(
    aggregateOf(cluster),
    ID,
    { type: 'OrderCluster', ...order },
    commandContext('order', 't1'),
  );
  const state = run.loaded.state;
  if (!isStoredCluster(state)) throw new Error('no cluster');
  const owner = { kind: 'cluster', id: ID };
  const call = () => effectCall({ tenant: 't1', project: '' });
  const ask = (operation: string, args: object) =>
    effects(operation, { owner, ...args } as unknown as JsonObject, call());
  const stateOf = async (kind: typeof externalIp | typeof externalIpAttachment, id: string) => {
    const view = kind.view((await runner.load(aggregateOf(kind as typeof externalIp), id)).state);
    return view.exists ? (view.archived ? 'gone' : view.name) : 'absent';
  };
  const all = async () => ({
    ips: await Promise.all(['ip-1', 'ip-2'].map((id) => stateOf(externalIp, id))),
    attachments: await Promise.all(['at-1', 'at-2'].map((id) => stateOf(externalIpAttachment, id))),
  });
  return {
    runner,
    all,
    make: () => ask('make', { objects: autoObjects(state) }),
    remove: async () => {
      const now = (await runner.load(aggregateOf(cluster), ID)).state;
      return ask('remove', { groups: isStoredCluster(now) ? boundObjects(now) : [] });
    },
  };
};

describe('what the service makes for an object', () => {
  it('is made once, however often it is asked for', async () => {
    const { make, all, runner } = await stage();
    for (let times = 0; times < 2; times += 1)
      expect(await make()).to.deep.equal({ outcome: 'done', result: {} });
    expect(await all()).to.deep.equal({
      ips: ['my-cluster-api-ip-1', 'my-cluster-ingress-ip-2'],
      attachments: ['my-cluster-api-ip-1', 'my-cluster-ingress-ip-2'],
    });
    const { state } = await runner.load(aggregateOf(cluster), ID);
    expect(clusterDecider.decide(state, { type: 'DeleteCluster', at: order.at })).to.have.length(1);
  });
  it('goes in the order of its groups, also what could not be deleted as it is', async () => {
    const { make, remove, all } = await stage();
    await make();
    expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
    expect(await all()).to.deep.equal({ ips: ['gone', 'gone'], attachments: ['gone', 'gone'] });
    expect(await remove(), 'again').to.deep.equal({ outcome: 'done', result: {} });
  });
  it('does not come after its removal', async () => {
    const { make, remove, all } = await stage();
    expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
    expect(await make()).to.include({ outcome: 'refused', reason: 'CREATION_ABANDONED' });
    expect(await all()).to.deep.equal({ ips: ['absent', 'absent'], attachments: ['absent', 'absent'] });
  });
  it('stays, and says why, while somebody else uses it', async () => {
    const { make, remove, all, runner } = await stage();
    await make();
    const ip = aggregateOf(externalIp);
    const holder = { kind: 'externalIpAttachment', id: 'at-1' };
    const free = { type: 'DetachFrom', at: order.at, holder, generation: 1 } as const;
    await runner.execute(ip, 'ip-1', free, commandContext('free', 't1'));
    const other = { kind: 'natGateway', id: 'n1' };
    await runner.execute(
      ip,
      'ip-1',
      { type: 'AttachTo', at: order.at, holder: other },
      commandContext('take', 't1'),
    );
    const outcome = await remove();
    expect(outcome).to.include({ outcome: 'failed', reason: 'StillThere' });
    expect('message' in outcome && outcome.message).to.include("NAT gateway 'n1' uses it");
    expect((await all()).ips).to.deep.equal(['my-cluster-api-ip-1', 'gone']);
  });
});
