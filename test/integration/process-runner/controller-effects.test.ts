import type { FakeOrders } from '../../support/hubs/fake-orders.ts';
import { expect } from 'chai';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { createManagementClusterEffects } from '../../../src/app/hubs/management-cluster-effects.ts';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { ClusterOrderStatus, ObservedClusterOrder } from '../../../src/domain/clusters/hub-objects.ts';
import { orderName } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import { configVersion } from '../../../src/domain/clusters/observation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { defined } from '../../../src/domain/json-tools.ts';
import { aggregateOf, hub } from '../../../src/domain/kinds.ts';
import type { TenantSpaces } from '../../../src/app/hubs/tenant-spaces.ts';
import { commandContext, effectCall, fakeCluster, hubFixture } from '../../support/hubs/hub-fixture.ts';
import { eventually } from '../../support/eventually.ts';

const CLUSTER = '018f0000-0000-7000-8000-000000000001';
const NAME = orderName(CLUSTER);
const place = { hub: 'sim-a', namespace: 'orders', name: NAME, id: CLUSTER, object: 'ClusterOrder' };
const spec = { templateID: 'small', templateParameters: '{}', nodeRequests: [], releaseImage: 'q/r:1' };
const order = (more: Partial<ObservedClusterOrder> = {}): ObservedClusterOrder => ({
  name: NAME,
  namespace: 'orders',
  uid: 'uid-1',
  id: CLUSTER,
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-01-01T00:00:00Z',
  finalizers: [],
  annotations: {},
  spec,
  conditions: [],
  jobs: [],
  ...more,
});
const manifest = { name: NAME, namespace: 'orders', labels: {}, annotations: {}, spec };
const apply = (more: object = {}): JsonObject =>
  ({ object: 'ClusterOrder', id: CLUSTER, hub: 'sim-a', ...manifest, ...more }) as unknown as JsonObject;

describe('effects on a hub of which we know more', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const on = async (
    fake: Partial<ManagementCluster & FakeOrders>,
    { tenants, lacking }: { readonly tenants?: TenantSpaces; readonly lacking?: string } = {},
  ) => {
    const fixture = hubFixture({ of: ({ id }) => fakeCluster(id, fake) });
    closing.push(() => fixture.stop());
    await fixture.register('sim-a');
    await eventually('hub known', () => fixture.registry.get('sim-a') !== undefined);
    if (lacking !== undefined) {
      const kinds = [{ kind: lacking, code: 'CrdMissing', message: 'no such kind' }];
      const findings = { reachable: [], credentials: [], requirements: [], lacking: kinds };
      const report = { type: 'ReportHubCheck', at: systemClock().now(), findings } as const;
      await fixture.commandRunner.execute(aggregateOf(hub), 'sim-a', report, commandContext('look'));
      await eventually('it was seen', () => fixture.registry.get('sim-a')?.health.lacking !== undefined);
    }
    return createManagementClusterEffects({
      registry: fixture.registry,
      secrets: { reveal: async () => undefined },
      clock: systemClock(),
      looks: createObjectLooks(),
      ...defined({ tenants }),
    });
  };

  describe('as the controller of its orders', () => {
    it('prepares the place of an order and says what was missing', async () => {
      const asked: object[] = [];
      const port = await on({
        getClusterOrder: async () => order(),
        controller: {
          prepare: async (_kind, where) => {
            asked.push(where);
            return { created: ['Namespace x'] };
          },
          writeStatus: async () => undefined,
          release: async () => ({ released: true, waitingFor: [] }),
        },
      });
      const outcome = await port('prepareObject', place, effectCall());
      expect(outcome).to.deep.equal({ outcome: 'done', result: { created: ['Namespace x'] } });
      expect(asked).to.have.length(1);
    });
    it('writes a status with the time at which it was seen, and the version of the stored spec', async () => {
      const written: ClusterOrderStatus[] = [];
      const port = await on({
        getClusterOrder: async () => order(),
        controller: {
          prepare: async () => ({ created: [] }),
          writeStatus: async (_kind, _where, status) =>
            void written.push(status as unknown as ClusterOrderStatus),
          release: async () => ({ released: true, waitingFor: [] }),
        },
      });
      const at = '2026-01-02T00:00:00.000Z';
      const conditions = [
        { type: 'Accepted', status: 'True', reason: 'Initialized', message: '' },
        { type: 'Progressing', status: 'True', reason: 'Progressing', message: '' },
      ];
      const args = { ...place, status: { phase: 'Progressing', conditions }, at };
      expect(await port('writeStatus', args, effectCall())).to.deep.include({ outcome: 'done' });
      expect(written[0]?.desiredConfigVersion).to.equal(configVersion(spec));
      expect(written[0]?.conditions.map(({ lastTransitionTime }) => lastTransitionTime)).to.deep.equal([
        at,
        at,
      ]);
    });
    it('writes nothing to an order that is gone or somebody else’s', async () => {
      for (const found of [undefined, order({ id: 'another' })]) {
        const port = await on({
          getClusterOrder: async () => found,
          controller: {
            prepare: async () => ({ created: [] }),
            writeStatus: async () => {
              throw new Error('written');
            },
            release: async () => ({ released: true, waitingFor: [] }),
          },
        });
        const args = { ...place, status: { phase: 'Ready', conditions: [] }, at: '' };
        expect(await port('writeStatus', args, effectCall())).to.deep.equal({
          outcome: 'done',
          result: {},
        });
      }
    });
    it('neither prepares nor lets go what is somebody else’s under the name of an order', async () => {
      for (const found of [undefined, order({ id: 'another' })]) {
        const touched = async (): Promise<never> => {
          throw new Error('touched');
        };
        const port = await on({
          getClusterOrder: async () => found,
          controller: { prepare: touched, writeStatus: touched, release: touched },
        });
        expect(await port('prepareObject', place, effectCall())).to.include({
          outcome: 'failed',
          reason: 'NotFound',
        });
        expect(await port('releaseObject', place, effectCall())).to.deep.equal({
          outcome: 'done',
          result: {},
        });
      }
    });
    it('says what the end of an order waits for, and does not hold it against the hub', async () => {
      const port = await on({
        getClusterOrder: async () => order(),
        controller: {
          prepare: async () => ({ created: [] }),
          writeStatus: async () => undefined,
          release: async () => ({ released: false, waitingFor: ['Namespace orders-x'] }),
        },
      });
      expect(await port('releaseObject', place, effectCall())).to.deep.equal({
        outcome: 'failed',
        reason: 'BeingDeleted',
        message: 'waiting for Namespace orders-x',
        retryAfterMs: 5_000,
      });
    });
    it('fails where nothing of this release can do it', async () => {
      const port = await on({});
      expect(await port('prepareObject', place, effectCall())).to.include({ reason: 'NoController' });
    });
  });

  describe('on a real one', () => {
    const created: string[] = [];
    const real = (
      more: Partial<ManagementCluster & FakeOrders>,
    ): Partial<ManagementCluster & FakeOrders> => ({
      simulated: false,
      createClusterOrder: async ({ name }) => {
        created.push(name);
        return order();
      },
      ...more,
    });
    beforeEach(() => created.splice(0));

    it('takes over what OSAC’s own service once made under another name', async () => {
      const older = order({ name: 'order-dcxpq' });
      const port = await on(real({ findClusterOrders: async () => [older] }));
      const outcome = await port('applyObject', apply(), effectCall());
      expect(outcome).to.have.nested.property('result.name', 'order-dcxpq');
      expect(created).to.deep.equal([]);
    });
    it('makes no third one where there are two already', async () => {
      const two = [order({ name: 'order-a' }), order({ name: 'order-b' })];
      const port = await on(real({ findClusterOrders: async () => two }));
      expect(await port('applyObject', apply(), effectCall())).to.include({
        outcome: 'refused',
        reason: 'DuplicateOrders',
      });
      expect(created).to.deep.equal([]);
    });
    it('keeps to the one of our name among several', async () => {
      const two = [order({ name: 'order-a' }), order()];
      const port = await on(real({ findClusterOrders: async () => two }));
      const outcome = await port('applyObject', apply(), effectCall());
      expect(outcome).to.have.nested.property('result.did', 'unchanged');
    });
    it('makes the namespace of an order, asks for its Tenant where the hub can hold one, and does not wait', async () => {
      for (const lacking of [undefined, 'Tenant']) {
        const namespaces: string[] = [];
        const asked: string[] = [];
        const port = await on(
          real({
            findClusterOrders: async () => [],
            ensureTenantNamespace: async ({ name }) => ({ created: namespaces.push(name) > 0 }),
            createClusterOrder: async () => order(),
          }),
          {
            tenants: { settle: async (id) => ({ waiting: `after ${asked.push(id)}` }) },
            ...defined({ lacking }),
          },
        );
        const sent = apply({ tenantNamespace: true });
        expect(await port('applyObject', sent, effectCall())).to.have.nested.property(
          'result.did',
          'created',
        );
        expect(namespaces).to.deep.equal(['orders']);
        expect(asked).to.deep.equal(lacking === undefined ? ['sim-a'] : []);
      }
    });
    it('makes a tenant’s namespaces, and is done with their removal once none of them is left', async () => {
      const there = new Set(['acme']);
      const port = await on(
        real({
          ensureTenantNamespace: async ({ name }) => ({ created: there.size < there.add(name).size }),
          removeTenantNamespace: async ({ name }) => ({ existed: there.delete(name) }),
        }),
      );
      const args = { hub: place.hub, namespaces: ['acme', 'orders'] };
      expect(await port('prepareTenant', args, effectCall())).to.have.deep.nested.property('result.created', [
        'orders',
      ]);
      for (const existed of [true, false])
        expect(await port('removeTenant', args, effectCall())).to.have.deep.property('result', { existed });
    });
    it('waits for the end of what is being deleted under its name, whosever it is', async () => {
      const old = order({ id: 'another', deletionTimestamp: '2026-01-01T00:00:00Z' });
      const port = await on(
        real({
          findClusterOrders: async () => [],
          createClusterOrder: async () => {
            throw new HubError('already-exists', 'object is being deleted', { object: old });
          },
        }),
      );
      expect(await port('applyObject', apply(), effectCall())).to.include({
        outcome: 'failed',
        reason: 'BeingDeleted',
      });
    });
    it('sees the HostedCluster of an order that is gone, and none of somebody else’s', async () => {
      const hosted = { name: NAME, namespace: `orders-${NAME}`, conditions: [] };
      const gone = await on(
        real({
          getClusterOrder: async () => undefined,
          findClusterOrders: async () => [],
          getHostedCluster: async () => hosted,
        }),
      );
      expect(await gone('observeObject', place, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { order: null, hostedCluster: { name: NAME, conditions: [] } },
      });
      const foreign = await on(
        real({
          getClusterOrder: async () => order({ id: 'another' }),
          findClusterOrders: async () => [],
        }),
      );
      expect(await foreign('observeObject', place, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { order: null },
      });
    });
  });
});
