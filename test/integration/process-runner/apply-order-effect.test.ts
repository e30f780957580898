import type { FakeOrders } from '../../support/hubs/fake-orders.ts';
import { expect } from 'chai';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER, type ObservedClusterOrder } from '../../../src/domain/clusters/hub-objects.ts';
import { configVersion } from '../../../src/domain/clusters/observation.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { readHubCalls, readHubOrders } from '../../support/hubs/hub-journal.ts';
import { effectCall } from '../../support/hubs/hub-fixture.ts';
import {
  applyArgs,
  CLUSTER,
  effectsStage,
  observedLegacy,
  orderRef,
  ref,
  SECRET,
  secretRef,
  type OrderArgs,
} from './effects-stage.ts';

describe('effects on a management cluster', function () {
  this.timeout(20_000);
  const { onSimulatedHub, onFake, takenUp, observing } = effectsStage();

  describe('applyObject', () => {
    it('creates the order under its short name, labelled and annotated', async () => {
      const { port, hub, file } = await onSimulatedHub();
      const outcome = await port(
        'applyObject',
        applyArgs(),
        effectCall({ effectId: 'clusterOrder-1/apply' }),
      );
      expect(outcome.outcome === 'done' && outcome.result).to.include({ name: ref.name, did: 'created' });
      const order = await hub?.get(CLUSTER_ORDER, ref, {
        effectId: 'test',
        deadlineMs: 1000,
        signal: new AbortController().signal,
      });
      expect(order?.id).to.equal(CLUSTER);
      expect(order?.annotations['osac.openshift.io/tenant']).to.equal('acme');
      expect(readHubOrders(file)[0]).to.include({ effectId: 'clusterOrder-1/apply', name: ref.name });
    });

    it('finds its own object again instead of making a second one', async () => {
      const { port, file } = await onSimulatedHub();
      await port('applyObject', applyArgs(), effectCall());
      for (const call of [effectCall(), observing()]) {
        const again = await port('applyObject', applyArgs(), call);
        expect(again.outcome === 'done' && again.result).to.include({ did: 'unchanged' });
      }
      expect(readHubOrders(file)).to.have.length(1);
    });

    it('patches only what differs', async () => {
      const { port, file } = await onSimulatedHub();
      await port('applyObject', applyArgs(2), effectCall());
      const outcome = await port('applyObject', applyArgs(5), effectCall());
      expect(outcome.outcome === 'done' && outcome.result).to.include({ did: 'patched', generation: 2 });
      expect(readHubCalls(file).filter((call) => call.operation === 'patch')).to.have.length(1);
    });

    it('says unknown when the answer was lost, and finds the object by looking', async () => {
      const { port, file } = await onSimulatedHub('lostAnswer=1');
      const lost = await port('applyObject', applyArgs(), effectCall());
      expect(lost.outcome).to.equal('unknown');
      const found = await port('applyObject', applyArgs(), observing());
      expect(found.outcome === 'done' && found.result).to.include({ did: 'unchanged' });
      expect(readHubCalls(file).filter((call) => call.operation === 'create')).to.have.length(1);
    });

    it('waits for the end of an object of its name that is being deleted', async () => {
      const { port } = await onSimulatedHub('stuckDeletion=forever,accept=0');
      await port('applyObject', applyArgs(), effectCall());
      await takenUp(port);
      await port('deleteObject', orderRef, effectCall());
      const outcome = await port('applyObject', applyArgs(), effectCall());
      expect(outcome).to.include({ outcome: 'failed', reason: 'BeingDeleted' });
    });

    it('refuses the name when somebody else has it, and says who', async () => {
      const { port, hub } = await onSimulatedHub();
      const manifest = applyArgs() as unknown as OrderArgs;
      await hub?.create(
        CLUSTER_ORDER,
        { ...manifest, labels: { 'osac.openshift.io/clusterorder-uuid': 'another' } },
        { effectId: 'other', deadlineMs: 1000, signal: new AbortController().signal },
      );
      const outcome = await port('applyObject', applyArgs(), effectCall());
      expect(outcome).to.include({ outcome: 'refused', reason: 'NameTaken' });
      expect(outcome.outcome === 'refused' && outcome.message).to.include('belongs to cluster another');
    });

    it('adopts an object of ours that has another name', async () => {
      const { port, hub, file } = await onSimulatedHub();
      const manifest = applyArgs() as unknown as OrderArgs;
      await hub?.create(
        CLUSTER_ORDER,
        { ...manifest, name: 'generated-x7k2p' },
        { effectId: 'old service', deadlineMs: 1000, signal: new AbortController().signal },
      );
      const outcome = await port('applyObject', applyArgs(4), observing());
      expect(outcome.outcome === 'done' && outcome.result).to.include({
        did: 'patched',
        name: 'generated-x7k2p',
      });
      expect(readHubOrders(file)).to.have.length(1);
    });

    it('is in doubt, and no certain failure, while a hub that took nothing yet holds one of ours', async () => {
      const manifest = applyArgs() as unknown as OrderArgs;
      const ours = { ...observedLegacy(manifest.spec), id: CLUSTER };
      const port = await onFake({
        simulated: false,
        findClusterOrders: async () => [ours],
        getClusterOrder: async () => ours,
        patchClusterOrder: () => Promise.reject(new HubError('unavailable', 'gone')),
      });
      const sent = (more: JsonObject) => port('applyObject', { ...applyArgs(4), ...more }, effectCall());
      expect(await sent({ unsent: true })).to.include({ outcome: 'unknown', reason: 'Unavailable' });
      expect(await sent({})).to.include({ outcome: 'failed', reason: 'Unavailable' });
      Object.assign(ours, { deletionTimestamp: '2026-11-21T12:00:00Z' });
      expect(await sent({ unsent: true })).to.include({ outcome: 'unknown', reason: 'BeingDeleted' });
    });

    it('refuses for good what the hub refuses as invalid', async () => {
      const { port } = await onSimulatedHub('422=1');
      expect(await port('applyObject', applyArgs(), effectCall())).to.include({
        outcome: 'refused',
        reason: 'ValidationFailed',
      });
    });

    it('reveals the pull secret only to the hub', async () => {
      const { port, hub } = await onSimulatedHub();
      const args = applyArgs(2, { secrets: { pullSecret: secretRef } });
      const outcome = await port('applyObject', args, effectCall());
      expect(JSON.stringify(outcome)).not.to.include('very-secret');
      const order = await hub?.get(CLUSTER_ORDER, ref, {
        effectId: 't',
        deadlineMs: 1000,
        signal: new AbortController().signal,
      });
      // A simulated hub keeps none; that the hub is given it is held below.
      expect(order?.spec.pullSecret).to.match(/^not kept, hmac-sha256 [0-9a-f]{64}$/);
      const seen = await port('observeObject', orderRef, effectCall());
      expect(JSON.stringify(seen)).not.to.include('very-secret');
      if (seen.outcome !== 'done' || order === undefined) throw new Error('not observed');
      expect(seen.result['specVersion']).to.equal(configVersion(order.spec));
    });

    it("reveals a template's default pull secret under the template's tenant", async () => {
      const { port } = await onSimulatedHub();
      const pullSecret = { ...secretRef, id: 'of-template', tenant: 'shared' };
      const outcome = await port('applyObject', applyArgs(2, { secrets: { pullSecret } }), effectCall());
      expect(outcome).to.include({ outcome: 'done' });
    });

    it('refuses an order whose pull secret is gone, before it touches the hub', async () => {
      const { port, file } = await onSimulatedHub();
      const args = applyArgs(2, { secrets: { pullSecret: { ...secretRef, id: 's2' } } });
      expect(await port('applyObject', args, effectCall())).to.include({
        outcome: 'refused',
        reason: 'PullSecretMissing',
      });
      const other = await port(
        'applyObject',
        applyArgs(2, { secrets: { pullSecret: secretRef } }),
        effectCall({ tenant: 'other' }),
      );
      expect(other).to.include({ outcome: 'refused', reason: 'PullSecretMissing' });
      expect(() => readHubCalls(file)).to.throw();
    });

    it('gives the hub the secret, and keeps a refused one out of the reason', async () => {
      let given: unknown;
      const port = await onFake({
        createClusterOrder: async ({ spec }) => {
          given = spec.pullSecret;
          throw new HubError('invalid', `spec.pullSecret: Invalid value: ${JSON.stringify(SECRET)}: too odd`);
        },
      });
      const outcome = await port(
        'applyObject',
        applyArgs(2, { secrets: { pullSecret: secretRef } }),
        effectCall(),
      );
      expect(outcome).to.deep.equal({
        outcome: 'refused',
        reason: 'ValidationFailed',
        message: 'spec.pullSecret: Invalid value: "***": too odd',
      });
      expect(given).to.equal(SECRET);
    });

    it('empties a text that is no longer wanted, and cannot take back a network range', async () => {
      const patches: unknown[] = [];
      const stored = (
        spec: Partial<ObservedClusterOrder['spec']>,
      ): Partial<ManagementCluster & FakeOrders> => {
        const manifest = applyArgs() as unknown as OrderArgs;
        const order = {
          name: ref.name,
          namespace: 'orders',
          uid: 'u',
          id: CLUSTER,
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
      await port('applyObject', applyArgs(), observing());
      expect(patches).to.deep.equal([{ sshPublicKey: '' }]);
      const ranges = await onFake(stored({ network: { podCIDR: '10.0.0.0/14' } }));
      expect(await ranges('applyObject', applyArgs(), observing())).to.include({
        outcome: 'refused',
        reason: 'NetworkRangeNotRemovable',
      });
    });
  });
});
