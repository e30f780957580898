import type { FakeOrders } from '../../support/hubs/fake-orders.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createSimulatedHubs,
  simulatedHubFile,
} from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import type { SimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import type { ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import {
  createManagementClusterEffects,
  type ApplyObjectArgs,
  type ObjectArgs,
} from '../../../src/app/hubs/management-cluster-effects.ts';
import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import {
  clusterOrderDraft,
  orderName,
  type ClusterOrderDraft,
} from '../../../src/domain/clusters/cluster-order-manifest.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
import { effectCall, fakeCluster, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { eventually } from '../../support/eventually.ts';

export const HUB = 'sim-a';
export const CLUSTER = '018f0000-0000-7000-8000-000000000001';
export const SECRET = '{"auths":{"registry":"very-secret"}}';
export const secretRef: SecretRef = { id: 's1', version: 'v1', kind: 'pull-secret', fingerprint: 'f' };

export type OrderArgs = ApplyObjectArgs & ClusterOrderDraft;
export const applyArgs = (size = 2, more: Partial<ApplyObjectArgs> = {}): JsonObject => {
  const manifest = clusterOrderDraft(
    {
      id: CLUSTER,
      tenant: 'acme',
      template: { id: 'small' },
      templateParameters: {},
      nodeSets: { workers: { hostType: { id: 'fc430', name: 'fc430' }, size } },
      version: { releaseImage: 'quay.io/release:4.17' },
    },
    { namespace: 'orders', mode: 'operator', simulated: true },
  );
  return { object: 'ClusterOrder', id: CLUSTER, hub: HUB, ...manifest, ...more } as unknown as JsonObject;
};
export const ref: ObjectArgs = {
  object: 'ClusterOrder',
  id: CLUSTER,
  hub: HUB,
  namespace: 'orders',
  name: orderName(CLUSTER),
};
export const orderRef = ref as unknown as JsonObject;

export const observedLegacy = (spec: OrderArgs['spec']) => ({
  name: 'generated-x7k2p',
  namespace: 'orders',
  uid: 'u',
  resourceVersion: '1',
  generation: 1,
  creationTimestamp: '2026-11-21T09:00:00Z',
  finalizers: [],
  annotations: {},
  spec,
  conditions: [],
  jobs: [],
});

/** What specs of the effects on a management cluster start from: to be called in their `describe`. */
export const effectsStage = () => {
  let folder = '';
  const closing: (() => Promise<void>)[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'effects-'));
  });
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    rmSync(folder, { recursive: true });
  });

  const OWNERS: Readonly<Record<string, string>> = { s1: 'acme', 'of-template': 'shared' };
  const secrets = {
    reveal: async ({ id }: SecretRef, tenant: string) =>
      OWNERS[id] === tenant ? new TextEncoder().encode(SECRET) : undefined,
  };
  const ready = (fixture: HubFixture) =>
    eventually('hub known', () => fixture.registry.get(HUB) !== undefined);
  const onSimulatedHub = async (settings?: string) => {
    const hubs = createSimulatedHubs({
      dir: folder,
      clock: systemClock(),
      timers: systemTimers(),
      inline: true,
    });
    closing.push(() => hubs.close());
    const fixture = hubFixture(hubs);
    closing.push(() => fixture.stop());
    await fixture.register(HUB);
    await ready(fixture);
    const hub = hubs.of({ id: HUB, namespace: 'orders' }) as SimulatedHub | undefined;
    if (settings !== undefined) await hub?.control.configure(settings);
    const port = createManagementClusterEffects({
      registry: fixture.registry,
      secrets,
      clock: systemClock(),
      looks: createObjectLooks(),
      callDeadlineMs: 300,
    });
    const file = simulatedHubFile(folder, HUB);
    return { port, hub, file };
  };
  const onFake = async (fake: Partial<ManagementCluster & FakeOrders>) => {
    const fixture = hubFixture({ of: ({ id }) => fakeCluster(id, fake) });
    closing.push(() => fixture.stop());
    await fixture.register(HUB);
    await ready(fixture);
    const { registry } = fixture;
    return createManagementClusterEffects({
      registry,
      secrets,
      clock: systemClock(),
      looks: createObjectLooks(),
    });
  };
  /** Deletion of an order that no controller has taken up yet is over at once. */
  const takenUp = (port: EffectPort) =>
    eventually('finalizers', async () => {
      const seen = await port('observeObject', orderRef, effectCall());
      const order = seen.outcome === 'done' ? (seen.result['order'] as JsonObject | null) : null;
      return ((order?.['finalizers'] ?? []) as string[]).length > 0;
    });
  const observing = (): EffectCall => effectCall({ attempt: 2, mode: 'observe' });
  return { closing, secrets, ready, onSimulatedHub, onFake, takenUp, observing };
};
