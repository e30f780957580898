import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { fenceOf } from '../../../src/app/tenancy/project-entries.ts';
import { createMadeObjectEffects } from '../../../src/app/hubs/made-object-effects.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { autoObjects, boundObjects } from '../../../src/domain/clusters/endpoints.ts';
import { clusterDecider } from '../../../src/domain/clusters/decide.ts';
import { isStoredCluster } from '../../../src/domain/clusters/state.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { aggregateOf, cluster, kindOf, kinds, lifecycle, type AnyKind } from '../../../src/domain/kinds.ts';
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
  /** What happens just before the next of these is created. */
  let before: { readonly id: string; readonly happens: () => Promise<unknown> } | undefined;
  const execute = async (kind: AnyKind, id: string, ...rest: readonly unknown[]) => {
    const { happens } = before?.id === id ? before : {};
    if (happens !== undefined) before = undefined;
    await happens?.();
    return (resources.execute as (...args: readonly unknown[]) => Promise<unknown>)(kind, id, ...rest);
  };
  const commands = { execute: execute as typeof resources.execute };
  const effects = createMadeObjectEffects({ commandRunner: runner, commands, clock });
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
    interrupt: (id: string, happens: () => Promise<unknown>): void => {
      before = { id, happens };
    },
    /** As what gives back claims and names of a creation that died does first. */
    fence: async (name: string, id: string, times = 1) => {
      const kind = kindOf(name);
      if (kind === undefined) throw new Error(`no kind is called ${name}`);
      const fence = { type: 'FenceEntry', at: order.at, commandId: 'repair' } as const;
      const context = commandContext(`fence ${id} ${times}`);
      return runner.execute(fenceOf(kind), id, fence, context, { step: true });
    },
    deleteOwner: () =>
      runner.execute(
        aggregateOf(cluster),
        ID,
        { type: 'DeleteCluster', at: order.at },
        commandContext('delete', 't1'),
      ),
    /** Somebody chooses its id for an external IP of their own. */
    occupy: (id: string, tenant: string) =>
      resources.execute(
        externalIp,
        id,
        {
          type: 'CreateDocument',
          at: order.at,
          id,
          tenant,
          project: '',
          name: 'mine',
          creator: 'somebody',
          document: { spec: { pool: { id: 'p', name: 'p' } } },
        },
        commandContext(`occupy ${id}`, tenant),
      ),
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
    const { make, remove, all, deleteOwner } = await stage();
    await deleteOwner();
    expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
    expect(await make()).to.include({ outcome: 'refused', reason: 'DELETION_REQUESTED' });
    expect(await all()).to.deep.equal({ ips: ['absent', 'absent'], attachments: ['absent', 'absent'] });
  });
  it('does not come after a removal that overtook it', async () => {
    const { make, remove, all, deleteOwner, interrupt } = await stage();
    interrupt('at-2', async () => {
      await deleteOwner();
      expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
    });
    expect(await make()).to.include({ outcome: 'failed', reason: 'CREATION_ABANDONED' });
    expect(await all()).to.deep.equal({ ips: ['gone', 'gone'], attachments: ['gone', 'absent'] });
  });
  it('comes after its creation was given up, before or while it is asked for', async () => {
    const { make, all, fence, interrupt } = await stage();
    await fence('externalIpAttachment', 'at-1');
    await fence('externalIpAttachment', 'at-1', 2);
    interrupt('ip-2', () => fence('externalIp', 'ip-2'));
    expect(await make()).to.include({ outcome: 'failed', reason: 'CREATION_ABANDONED' });
    expect(await make()).to.deep.equal({ outcome: 'done', result: {} });
    expect((await all()).attachments).to.deep.equal(['my-cluster-api-ip-1', 'my-cluster-ingress-ip-2']);
  });
  it('is made as far as it can be', async () => {
    const { make, all, runner } = await stage();
    const holder = { kind: 'externalIpAttachment', id: 'mine' };
    const taken = { type: 'AttachTo', at: order.at, holder, part: 'API' } as const;
    await runner.execute(aggregateOf(cluster), ID, taken, commandContext('take', 't1'));
    expect(await make()).to.include({ outcome: 'refused', reason: 'ALREADY_EXISTS' });
    expect((await all()).attachments).to.deep.equal(['absent', 'my-cluster-ingress-ip-2']);
  });
  for (const tenant of ['t1', 't2'])
    it(`is not what somebody of ${tenant} has made under its id, which stays`, async () => {
      const { make, remove, all, occupy, deleteOwner } = await stage();
      await occupy('ip-1', tenant);
      expect(await make()).to.include({ outcome: 'refused', reason: 'ALREADY_EXISTS' });
      const attachments = ['absent', 'my-cluster-ingress-ip-2'];
      expect(await all()).to.deep.equal({ ips: ['mine', 'my-cluster-ingress-ip-2'], attachments });
      await deleteOwner();
      expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
      expect(await all()).to.deep.equal({ ips: ['mine', 'gone'], attachments: ['absent', 'gone'] });
    });
  it('holds its owner no longer once somebody else uses it, and stays theirs', async () => {
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
    expect(await remove()).to.deep.equal({ outcome: 'done', result: {} });
    expect((await all()).ips).to.deep.equal(['my-cluster-api-ip-1', 'gone']);
  });
});
