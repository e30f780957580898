import { expect } from 'chai';
import { TENANT_ANNOTATION, type CallOptions } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import { EXTERNAL_IP_POOL as POOL } from '../../../src/domain/networks/hub-objects.ts';
import { failure, untilHolds, type ManagementClusterUnderTest } from './contract-kit.ts';
import { manifestOf } from './kubernetes-stage.ts';

/**
 * What an adapter does with a declared kind besides ClusterOrders, which it has no word for. `ready`: pools come to Ready
 * there by themselves.
 */
export const describeDeclaredKindContract = (
  name: string,
  factory: () => Promise<ManagementClusterUnderTest>,
  pools: 'kept' | 'ready',
): void => {
  describe(`a declared kind besides ClusterOrders: ${name}`, function () {
    this.timeout(120_000);
    let hub: ManagementClusterUnderTest;
    const aborts: AbortController[] = [];

    beforeEach(async () => {
      hub = await factory();
    });
    afterEach(async () => {
      for (const abort of aborts.splice(0)) abort.abort();
      await hub.close();
    });

    const by = (): CallOptions => ({
      effectId: `pools-${process.pid}`,
      deadlineMs: 60_000,
      signal: new AbortController().signal,
    });
    const refOf = (of: string) => ({ namespace: hub.namespace, name: of });
    const create = (order: string) =>
      hub.cluster.create(CLUSTER_ORDER, { ...manifestOf(order), namespace: hub.namespace }, by());
    const until = <T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> =>
      untilHolds(read, holds, hub.patienceMs);

    const spec = { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4' } as const;
    const poolOf = (pool: string, id = `id-of-${pool}`) => ({
      name: pool,
      namespace: hub.namespace,
      labels: { [POOL.idLabel]: id },
      annotations: { [TENANT_ANNOTATION]: 'acme' },
      spec,
    });
    const make = (pool: string, id?: string) => hub.cluster.create(POOL, poolOf(pool, id), by());

    it('is created, read by name and by label, and shown whole', async () => {
      const made = await make('pool-a');
      expect(made).to.include({
        name: 'pool-a',
        namespace: hub.namespace,
        id: 'id-of-pool-a',
        generation: 1,
      });
      expect(made.spec).to.deep.equal(spec);
      expect((await hub.cluster.get(POOL, refOf('pool-a'), by()))?.uid).to.equal(made.uid);
      const found = await hub.cluster.find(POOL, hub.namespace, 'id-of-pool-a', by());
      expect(found.map(({ uid }) => uid)).to.deep.equal([made.uid]);
      const whole = await hub.cluster.read(POOL, refOf('pool-a'), by());
      expect(whole).to.include({ apiVersion: 'osac.openshift.io/v1alpha1', kind: 'ExternalIPPool' });
      expect(await hub.cluster.get(POOL, refOf('nobody'), by())).to.equal(undefined);
    });

    it('of a name that is taken shows whose it is; an order of that name is another object', async () => {
      await make('pool-a', 'another');
      const taken = await failure(make('pool-a'));
      expect([taken.kind, taken.object?.id]).to.deep.equal(['already-exists', 'another']);
      expect((await create('pool-a')).id).to.equal('id-of-pool-a');
      expect(await hub.cluster.find(POOL, hub.namespace, 'id-of-pool-a', by())).to.deep.equal([]);
    });

    it('is refused when its codec or its hub refuses it', async () => {
      const bad = { ...poolOf('pool-a'), spec: { ...spec, cidrs: 7 } } as unknown as ReturnType<
        typeof poolOf
      >;
      const codec = await failure(hub.cluster.create(POOL, bad, by()));
      expect([codec.kind, codec.message]).to.satisfy(
        ([kind, text]: string[]) => kind === 'invalid' && text?.includes('spec.cidrs') === true,
      );
      await make('pool-a');
      const changed = hub.cluster.patch(POOL, refOf('pool-a'), { cidrs: ['198.51.100.0/24'] }, by());
      expect((await failure(changed)).kind).to.equal('invalid');
    });

    it('is watched by itself, to the end', async () => {
      const abort = new AbortController();
      aborts.push(abort);
      const seen: HubObjectEvent[] = [];
      const ended = (async () => {
        for await (const event of hub.cluster.watch(POOL, hub.namespace, abort.signal)) seen.push(event);
      })();
      const saw = (type: HubObjectEvent['type']) =>
        until(
          () => Promise.resolve(seen.some((event) => event.type === type)),
          (yes) => yes,
        );
      await saw('synced');
      await create('order-a');
      const { uid } = await make('pool-a');
      await saw('applied');
      if (pools === 'ready')
        await until(
          () => hub.cluster.get(POOL, refOf('pool-a'), by()),
          (pool) => pool?.phase === 'Ready',
        );
      const other = { ...refOf('pool-a'), uid: `${uid.startsWith('0') ? 1 : 0}${uid.slice(1)}` };
      expect((await failure(hub.cluster.delete(POOL, other, by()))).kind).to.equal('conflict');
      expect(await hub.cluster.delete(POOL, { ...refOf('pool-a'), uid }, by())).to.equal(true);
      await saw('deleted');
      expect(await hub.cluster.delete(POOL, refOf('pool-a'), by())).to.equal(false);
      const names = seen.map((event) => (event.type === 'synced' ? 'pool-a' : event.object.name));
      expect([...new Set(names)]).to.deep.equal(['pool-a']);
      abort.abort();
      await ended;
    });

    it('is of unknown outcome when its answer is lost', async () => {
      await hub.misbehave.loseNextAnswer();
      expect((await failure(make('pool-a'))).kind).to.equal('unknown-outcome');
      await hub.misbehave.healthy();
      expect((await hub.cluster.get(POOL, refOf('pool-a'), by()))?.id).to.equal('id-of-pool-a');
    });
  });
};
