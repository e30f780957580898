import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  createSimulatedHubs,
  simulatedHubFile,
} from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import type { SimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { outcomeOfHubError } from '../../../src/app/hub-effects.ts';
import { createClusterLooks, type OrderRef } from '../../../src/app/hub-looks.ts';
import {
  HubError,
  type HubErrorKind,
  type ManagementCluster,
  type ObservedClusterOrder,
} from '../../../src/app/management-cluster.ts';
import {
  createManagementClusterEffects,
  type ApplyArgs,
} from '../../../src/app/management-cluster-effects.ts';
import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import { clusterOrderDraft, orderName } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import { configVersion } from '../../../src/domain/clusters/observation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
import { readHubCalls, readHubOrders } from '../../support/hub-journal.ts';
import { effectCall, fakeCluster, hubFixture, type HubFixture } from '../../support/hub-fixture.ts';
import { eventually } from '../../support/toy-workflow.ts';

const HUB = 'sim-a';
const CLUSTER = '018f0000-0000-7000-8000-000000000001';
const SECRET = '{"auths":{"registry":"very-secret"}}';
const secretRef: SecretRef = { id: 's1', version: 'v1', kind: 'pull-secret', fingerprint: 'f' };

const applyArgs = (size = 2, more: Partial<ApplyArgs> = {}): JsonObject => {
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
  return { hub: HUB, clusterId: CLUSTER, manifest, ...more } as unknown as JsonObject;
};
const ref: OrderRef = { hub: HUB, namespace: 'orders', name: orderName(CLUSTER), clusterId: CLUSTER };
const orderRef = ref as unknown as JsonObject;

const observedLegacy = (spec: ApplyArgs['manifest']['spec']) => ({
  name: 'generated-x7k2p',
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

describe('effects on a management cluster', function () {
  this.timeout(20_000);
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
      looks: createClusterLooks(),
      callDeadlineMs: 300,
    });
    const file = simulatedHubFile(folder, HUB);
    return { port, hub, file };
  };
  const onFake = async (fake: Partial<ManagementCluster>) => {
    const fixture = hubFixture({ of: ({ id }) => fakeCluster(id, fake) });
    closing.push(() => fixture.stop());
    await fixture.register(HUB);
    await ready(fixture);
    const { registry } = fixture;
    return createManagementClusterEffects({
      registry,
      secrets,
      clock: systemClock(),
      looks: createClusterLooks(),
    });
  };
  /** Deletion of an order that no controller has taken up yet is over at once. */
  const takenUp = (port: EffectPort) =>
    eventually('finalizers', async () => {
      const seen = await port('observeCluster', orderRef, effectCall());
      const order = seen.outcome === 'done' ? (seen.result['order'] as JsonObject | null) : null;
      return ((order?.['finalizers'] ?? []) as string[]).length > 0;
    });
  const observing = (): EffectCall => effectCall({ attempt: 2, mode: 'observe' });

  describe('applyClusterOrder', () => {
    it('creates the order under its short name, labelled and annotated', async () => {
      const { port, hub, file } = await onSimulatedHub();
      const outcome = await port(
        'applyClusterOrder',
        applyArgs(),
        effectCall({ effectId: 'clusterOrder-1/apply' }),
      );
      expect(outcome.outcome === 'done' && outcome.result).to.include({ name: ref.name, did: 'created' });
      const order = await hub?.getClusterOrder(ref, {
        effectId: 'test',
        deadlineMs: 1000,
        signal: new AbortController().signal,
      });
      expect(order?.clusterId).to.equal(CLUSTER);
      expect(order?.annotations['osac.openshift.io/tenant']).to.equal('acme');
      expect(readHubOrders(file)[0]).to.include({ effectId: 'clusterOrder-1/apply', name: ref.name });
    });

    it('finds its own object again instead of making a second one', async () => {
      const { port, file } = await onSimulatedHub();
      await port('applyClusterOrder', applyArgs(), effectCall());
      for (const call of [effectCall(), observing()]) {
        const again = await port('applyClusterOrder', applyArgs(), call);
        expect(again.outcome === 'done' && again.result).to.include({ did: 'unchanged' });
      }
      expect(readHubOrders(file)).to.have.length(1);
    });

    it('patches only what differs', async () => {
      const { port, file } = await onSimulatedHub();
      await port('applyClusterOrder', applyArgs(2), effectCall());
      const outcome = await port('applyClusterOrder', applyArgs(5), effectCall());
      expect(outcome.outcome === 'done' && outcome.result).to.include({ did: 'patched', generation: 2 });
      expect(readHubCalls(file).filter((call) => call.operation === 'patch')).to.have.length(1);
    });

    it('says unknown when the answer was lost, and finds the object by looking', async () => {
      const { port, file } = await onSimulatedHub('lostAnswer=1');
      const lost = await port('applyClusterOrder', applyArgs(), effectCall());
      expect(lost.outcome).to.equal('unknown');
      const found = await port('applyClusterOrder', applyArgs(), observing());
      expect(found.outcome === 'done' && found.result).to.include({ did: 'unchanged' });
      expect(readHubCalls(file).filter((call) => call.operation === 'create')).to.have.length(1);
    });

    it('waits for the end of an object of its name that is being deleted', async () => {
      const { port } = await onSimulatedHub('stuckDeletion=forever,accept=0');
      await port('applyClusterOrder', applyArgs(), effectCall());
      await takenUp(port);
      await port('deleteClusterOrder', orderRef, effectCall());
      const outcome = await port('applyClusterOrder', applyArgs(), effectCall());
      expect(outcome).to.include({ outcome: 'failed', reason: 'BeingDeleted' });
    });

    it('refuses the name when somebody else has it, and says who', async () => {
      const { port, hub } = await onSimulatedHub();
      const { manifest } = applyArgs() as unknown as ApplyArgs;
      await hub?.createClusterOrder(
        { ...manifest, labels: { 'osac.openshift.io/clusterorder-uuid': 'another' } },
        { effectId: 'other', deadlineMs: 1000, signal: new AbortController().signal },
      );
      const outcome = await port('applyClusterOrder', applyArgs(), effectCall());
      expect(outcome).to.include({ outcome: 'refused', reason: 'NameTaken' });
      expect(outcome.outcome === 'refused' && outcome.message).to.include('belongs to cluster another');
    });

    it('adopts an object of ours that has another name', async () => {
      const { port, hub, file } = await onSimulatedHub();
      const { manifest } = applyArgs() as unknown as ApplyArgs;
      await hub?.createClusterOrder(
        { ...manifest, name: 'generated-x7k2p' },
        { effectId: 'old service', deadlineMs: 1000, signal: new AbortController().signal },
      );
      const outcome = await port('applyClusterOrder', applyArgs(4), observing());
      expect(outcome.outcome === 'done' && outcome.result).to.include({
        did: 'patched',
        name: 'generated-x7k2p',
      });
      expect(readHubOrders(file)).to.have.length(1);
    });

    it('is in doubt, and no certain failure, while a hub that took nothing yet holds one of ours', async () => {
      const { manifest } = applyArgs() as unknown as ApplyArgs;
      const ours = { ...observedLegacy(manifest.spec), clusterId: CLUSTER };
      const port = await onFake({
        simulated: false,
        findClusterOrders: async () => [ours],
        getClusterOrder: async () => ours,
        patchClusterOrder: () => Promise.reject(new HubError('unavailable', 'gone')),
      });
      const sent = (more: JsonObject) =>
        port('applyClusterOrder', { ...applyArgs(4), ...more }, effectCall());
      expect(await sent({ unsent: true })).to.include({ outcome: 'unknown', reason: 'Unavailable' });
      expect(await sent({})).to.include({ outcome: 'failed', reason: 'Unavailable' });
      Object.assign(ours, { deletionTimestamp: '2026-11-21T12:00:00Z' });
      expect(await sent({ unsent: true })).to.include({ outcome: 'unknown', reason: 'BeingDeleted' });
    });

    it('refuses for good what the hub refuses as invalid', async () => {
      const { port } = await onSimulatedHub('422=1');
      expect(await port('applyClusterOrder', applyArgs(), effectCall())).to.include({
        outcome: 'refused',
        reason: 'ValidationFailed',
      });
    });

    it('reveals the pull secret only to the hub', async () => {
      const { port, hub } = await onSimulatedHub();
      const args = applyArgs(2, { pullSecret: secretRef });
      const outcome = await port('applyClusterOrder', args, effectCall());
      expect(JSON.stringify(outcome)).not.to.include('very-secret');
      const order = await hub?.getClusterOrder(ref, {
        effectId: 't',
        deadlineMs: 1000,
        signal: new AbortController().signal,
      });
      expect(order?.spec.pullSecret).to.equal(SECRET);
      const seen = await port('observeCluster', orderRef, effectCall());
      expect(JSON.stringify(seen)).not.to.include('very-secret');
      if (seen.outcome !== 'done' || order === undefined) throw new Error('not observed');
      expect(seen.result['specVersion']).to.equal(configVersion(order.spec));
    });

    it("reveals a template's default pull secret under the template's tenant", async () => {
      const { port } = await onSimulatedHub();
      const pullSecret = { ...secretRef, id: 'of-template', tenant: 'shared' };
      const outcome = await port('applyClusterOrder', applyArgs(2, { pullSecret }), effectCall());
      expect(outcome).to.include({ outcome: 'done' });
    });

    it('refuses an order whose pull secret is gone, before it touches the hub', async () => {
      const { port, file } = await onSimulatedHub();
      const args = applyArgs(2, { pullSecret: { ...secretRef, id: 's2' } });
      expect(await port('applyClusterOrder', args, effectCall())).to.include({
        outcome: 'refused',
        reason: 'PullSecretMissing',
      });
      const other = await port(
        'applyClusterOrder',
        applyArgs(2, { pullSecret: secretRef }),
        effectCall({ tenant: 'other' }),
      );
      expect(other).to.include({ outcome: 'refused', reason: 'PullSecretMissing' });
      expect(() => readHubCalls(file)).to.throw();
    });

    it('keeps a refused secret out of the reason', async () => {
      const port = await onFake({
        createClusterOrder: async () => {
          throw new HubError('invalid', `spec.pullSecret: Invalid value: ${JSON.stringify(SECRET)}: too odd`);
        },
      });
      const outcome = await port('applyClusterOrder', applyArgs(2, { pullSecret: secretRef }), effectCall());
      expect(outcome).to.deep.equal({
        outcome: 'refused',
        reason: 'ValidationFailed',
        message: 'spec.pullSecret: Invalid value: "***": too odd',
      });
    });

    it('empties a text that is no longer wanted, and cannot take back a network range', async () => {
      const patches: unknown[] = [];
      const stored = (spec: Partial<ObservedClusterOrder['spec']>): Partial<ManagementCluster> => {
        const { manifest } = applyArgs() as unknown as ApplyArgs;
        const order = {
          name: ref.name,
          uid: 'u',
          clusterId: CLUSTER,
          resourceVersion: '1',
          generation: 1,
          creationTimestamp: '',
          finalizers: [],
          annotations: {},
          conditions: [],
          jobs: [],
          spec: { ...manifest.spec, ...spec },
        };
        return {
          getClusterOrder: async () => order,
          patchClusterOrder: async (_ref, patch) => {
            patches.push(patch);
            return order;
          },
        };
      };
      const port = await onFake(stored({ sshPublicKey: 'ssh-ed25519 AAAA' }));
      await port('applyClusterOrder', applyArgs(), observing());
      expect(patches).to.deep.equal([{ sshPublicKey: '' }]);
      const ranges = await onFake(stored({ network: { podCIDR: '10.0.0.0/14' } }));
      expect(await ranges('applyClusterOrder', applyArgs(), observing())).to.include({
        outcome: 'refused',
        reason: 'NetworkRangeNotRemovable',
      });
    });
  });

  describe('deleteClusterOrder', () => {
    it('asks for deletion once, whatever is left of the object', async () => {
      const { port, file } = await onSimulatedHub('stuckDeletion=forever,accept=0');
      expect(await port('deleteClusterOrder', orderRef, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { existed: false },
      });
      await port('applyClusterOrder', applyArgs(), effectCall());
      await takenUp(port);
      for (let i = 0; i < 2; i += 1) {
        expect(await port('deleteClusterOrder', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { existed: true },
        });
      }
      expect(readHubCalls(file).filter((call) => call.operation === 'delete')).to.have.length(1);
    });

    it('removes the object that it has read, never what took its name meanwhile', async () => {
      const { manifest } = applyArgs() as unknown as ApplyArgs;
      const read = { ...observedLegacy(manifest.spec), name: ref.name, clusterId: CLUSTER };
      let stored = read.uid;
      const port = await onFake({
        getClusterOrder: async () => {
          // Replaced between this read and the deletion.
          stored = 'another';
          return read;
        },
        findClusterOrders: async () => [],
        deleteClusterOrder: async ({ uid }) => {
          if (uid !== stored) throw new HubError('conflict', 'the uid is another one');
          stored = '';
          return true;
        },
      });
      expect(await port('deleteClusterOrder', orderRef, effectCall())).to.include({
        outcome: 'failed',
        reason: 'Conflict',
      });
      expect(stored).to.equal('another');
    });

    for (const [whose, labels] of [
      ['somebody else', { 'osac.openshift.io/clusterorder-uuid': 'another' }],
      ['nobody known', {}],
    ] as const)
      it(`leaves an object of ${whose} under our name alone, and never takes it for ours`, async () => {
        const { port, hub, file } = await onSimulatedHub('factor=0.01');
        const { manifest } = applyArgs() as unknown as ApplyArgs;
        const other = { effectId: 'other', deadlineMs: 1000, signal: new AbortController().signal };
        await hub?.createClusterOrder({ ...manifest, labels }, other);
        expect(await port('deleteClusterOrder', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { existed: false },
        });
        expect(readHubCalls(file).filter((call) => call.operation === 'delete')).to.have.length(0);
        expect(await port('observeCluster', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { order: null },
        });
        const applied = await port('applyClusterOrder', applyArgs(), observing());
        expect(applied).to.include({ outcome: 'refused', reason: 'NameTaken' });
        await hub?.createClusterOrder({ ...manifest, name: 'generated-x7k2p' }, other);
        const seen = await port('observeCluster', orderRef, effectCall());
        expect(seen.outcome === 'done' && seen.result['order'], 'ours has another name').to.be.an('object');
      });
  });

  describe('observeCluster', () => {
    it('shows absence, the order, and the HostedCluster once there is one', async () => {
      const { port } = await onSimulatedHub('factor=0.01');
      expect(await port('observeCluster', orderRef, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { order: null },
      });
      await port('applyClusterOrder', applyArgs(), effectCall());
      await eventually('hosted cluster', async () => {
        const seen = await port('observeCluster', orderRef, effectCall());
        return seen.outcome === 'done' && seen.result['hostedCluster'] !== null;
      });
    });

    it('tells which state it shows, and when the hub was asked: what was seen meanwhile may be newer', async () => {
      const before = new Date().toISOString();
      const asked = Promise.withResolvers<string>();
      const port = await onFake({
        getClusterOrder: async () => {
          asked.resolve(new Date().toISOString());
          return shownOrder();
        },
        getHostedCluster: async () => undefined,
      });
      const seen = await port('observeCluster', orderRef, effectCall());
      if (seen.outcome !== 'done') throw new Error(seen.message);
      expect(seen.result['order']).to.include({ resourceVersion: shownOrder().resourceVersion });
      const askedAt = seen.result['askedAt'] as string;
      expect(askedAt >= before).to.equal(true);
      expect(askedAt <= (await asked.promise)).to.equal(true);
    });

    const shownOrder = (): ObservedClusterOrder => {
      const { manifest } = applyArgs() as unknown as ApplyArgs;
      const clusterReference = { namespace: 'n', hostedClusterName: 'h' };
      return { ...observedLegacy(manifest.spec), name: ref.name, clusterId: CLUSTER, clusterReference };
    };
    for (const [why, error] of [
      ['may not be read', new HubError('unauthorized', 'no', { facts: { status: 403 } })],
      [
        'is of a kind that the hub does not have',
        new HubError('not-ready', 'no such kind', { facts: { status: 404 } }),
      ],
    ] as const)
      it(`shows nothing of a HostedCluster that ${why}, and the end of an order does not wait for it`, async () => {
        let order: ObservedClusterOrder | undefined = shownOrder();
        const port = await onFake({
          getClusterOrder: async () => order,
          findClusterOrders: async () => (order === undefined ? [] : [order]),
          getHostedCluster: () => Promise.reject(error),
        });
        const seen = await port('observeCluster', orderRef, effectCall());
        expect(seen.outcome === 'done' && 'hostedCluster' in seen.result).to.equal(false);
        order = undefined;
        expect(await port('observeCluster', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { order: null },
        });
      });

    it('credentials that are refused hide nothing: the hub waits for others', async () => {
      const port = await onFake({
        getClusterOrder: async () => shownOrder(),
        getHostedCluster: () =>
          Promise.reject(new HubError('unauthorized', 'no', { facts: { status: 401 } })),
      });
      expect(await port('observeCluster', orderRef, effectCall())).to.include({
        outcome: 'failed',
        reason: 'Unauthorized',
      });
    });
  });

  it('waits while a hub is not registered or has no adapter', async () => {
    const fixture = hubFixture();
    closing.push(() => fixture.stop());
    const port = createManagementClusterEffects({
      registry: fixture.registry,
      secrets,
      clock: systemClock(),
      looks: createClusterLooks(),
    });
    expect(await port('observeCluster', orderRef, effectCall())).to.include({
      outcome: 'failed',
      reason: 'HubNotRegistered',
    });
    await fixture.register(HUB);
    await ready(fixture);
    expect(await port('observeCluster', orderRef, effectCall())).to.include({
      outcome: 'failed',
      reason: 'NoAdapter',
    });
  });

  const kinds: readonly [HubErrorKind, string, string][] = [
    ['invalid', 'refused', 'ValidationFailed'],
    ['conflict', 'failed', 'Conflict'],
    ['already-exists', 'refused', 'NameTaken'],
    ['not-found', 'failed', 'NotFound'],
    ['not-ready', 'failed', 'NotReady'],
    ['unauthorized', 'failed', 'Unauthorized'],
    ['other-cluster', 'failed', 'DifferentCluster'],
    ['throttled', 'failed', 'Throttled'],
    ['unavailable', 'failed', 'Unavailable'],
    ['unknown-outcome', 'unknown', 'OutcomeUnknown'],
  ];
  for (const [kind, outcome, reason] of kinds) {
    it(`turns ${kind} into ${outcome} ${reason}`, () => {
      const error = new HubError(kind, 'text', { retryAfterMs: 7 });
      expect(outcomeOfHubError(error)).to.include({ outcome, reason, message: 'text' });
      if (outcome === 'failed') expect(outcomeOfHubError(error)).to.include({ retryAfterMs: 7 });
    });
  }
});
