import { expect } from 'chai';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { outcomeOfHubError } from '../../../src/app/hubs/hub-effects.ts';
import { createObjectLooks } from '../../../src/app/hubs/hub-looks.ts';
import { HubError, type HubErrorKind } from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER,
  HOSTED_CLUSTER,
  type ObservedClusterOrder,
} from '../../../src/domain/clusters/hub-objects.ts';
import { createManagementClusterEffects } from '../../../src/app/hubs/management-cluster-effects.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';
import { effectCall, hubFixture } from '../../support/hubs/hub-fixture.ts';
import type { EffectPort } from '../../../src/app/process-runner/types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import {
  applyArgs,
  CLUSTER,
  effectsStage,
  HUB,
  observedLegacy,
  orderRef,
  ref,
  type OrderArgs,
} from './effects-stage.ts';
import { eventually } from '../../support/eventually.ts';

describe('effects on a management cluster', function () {
  this.timeout(20_000);
  const { closing, secrets, ready, onSimulatedHub, onFake, takenUp, observing } = effectsStage();

  describe('deleteObject', () => {
    it('asks for deletion once, whatever is left of the object', async () => {
      const { port, file } = await onSimulatedHub('stuckDeletion=forever,accept=0');
      expect(await port('deleteObject', orderRef, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { existed: false },
      });
      await port('applyObject', applyArgs(), effectCall());
      await takenUp(port);
      for (let i = 0; i < 2; i += 1) {
        expect(await port('deleteObject', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { existed: true },
        });
      }
      expect(readHubCalls(file).filter((call) => call.operation === 'delete')).to.have.length(1);
    });

    it('removes the object that it has read, never what took its name meanwhile', async () => {
      const manifest = applyArgs() as unknown as OrderArgs;
      const read = { ...observedLegacy(manifest.spec), name: ref.name, id: CLUSTER };
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
      expect(await port('deleteObject', orderRef, effectCall())).to.include({
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
        const manifest = applyArgs() as unknown as OrderArgs;
        const other = { effectId: 'other', deadlineMs: 1000, signal: new AbortController().signal };
        await hub?.create(CLUSTER_ORDER, { ...manifest, labels }, other);
        expect(await port('deleteObject', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { existed: false },
        });
        expect(readHubCalls(file).filter((call) => call.operation === 'delete')).to.have.length(0);
        expect(await port('observeObject', orderRef, effectCall())).to.deep.equal({
          outcome: 'done',
          result: { order: null },
        });
        const applied = await port('applyObject', applyArgs(), observing());
        expect(applied).to.include({ outcome: 'refused', reason: 'NameTaken' });
        await hub?.create(CLUSTER_ORDER, { ...manifest, name: 'generated-x7k2p' }, other);
        const seen = await port('observeObject', orderRef, effectCall());
        expect(seen.outcome === 'done' && seen.result['order'], 'ours has another name').to.be.an('object');
      });
  });

  describe('observeObject', () => {
    it('shows absence, the order, and the HostedCluster once there is one', async () => {
      const { port } = await onSimulatedHub('factor=0.01');
      expect(await port('observeObject', orderRef, effectCall())).to.deep.equal({
        outcome: 'done',
        result: { order: null },
      });
      await port('applyObject', applyArgs(), effectCall());
      await eventually('hosted cluster', async () => {
        const seen = await port('observeObject', orderRef, effectCall());
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
      const seen = await port('observeObject', orderRef, effectCall());
      if (seen.outcome !== 'done') throw new Error(seen.message);
      expect(seen.result['order']).to.include({ resourceVersion: shownOrder().resourceVersion });
      const askedAt = seen.result['askedAt'] as string;
      expect(askedAt >= before).to.equal(true);
      expect(askedAt <= (await asked.promise)).to.equal(true);
    });

    const shownOrder = (): ObservedClusterOrder => {
      const manifest = applyArgs() as unknown as OrderArgs;
      const clusterReference = { namespace: 'n', hostedClusterName: 'h' };
      return { ...observedLegacy(manifest.spec), name: ref.name, id: CLUSTER, clusterReference };
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
        const seen = await port('observeObject', orderRef, effectCall());
        expect(seen.outcome === 'done' && 'hostedCluster' in seen.result).to.equal(false);
        order = undefined;
        expect(await port('observeObject', orderRef, effectCall())).to.deep.equal({
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
      expect(await port('observeObject', orderRef, effectCall())).to.include({
        outcome: 'failed',
        reason: 'Unauthorized',
      });
    });
  });

  describe('compareObjects', () => {
    const other = { ...ref, id: 'another', name: 'order-another' };
    const compared = (port: EffectPort) =>
      port('compareObjects', { reads: [orderRef, other] } as unknown as JsonObject, effectCall());

    it('names those that show what the last look showed, and no others', async () => {
      const { port, hub } = await onSimulatedHub('factor=0.01');
      if (hub === undefined) throw new Error('no hub');
      await port('applyObject', applyArgs(), effectCall());
      expect(await compared(port), 'nobody looked yet').to.deep.equal(done([]));
      await eventually('at rest', async () => {
        await port('observeObject', orderRef, effectCall());
        const outcome = await compared(port);
        return outcome.outcome === 'done' && (outcome.result['unchanged'] as number[]).includes(0);
      });
      await eventually('ready, and as it was', async () => {
        const seen = await port('observeObject', orderRef, effectCall());
        const order = seen.outcome === 'done' ? (seen.result['order'] as JsonObject | null) : null;
        return order?.['phase'] === 'Ready';
      });
      expect(await compared(port)).to.deep.equal(done([0]));
      await hub.control.vanish(CLUSTER_ORDER, ref, HOSTED_CLUSTER);
      expect(await compared(port), 'a HostedCluster that is lost').to.deep.equal(done([]));
      await port('observeObject', orderRef, effectCall());
      expect(await compared(port)).to.deep.equal(done([0]));
      await hub.control.vanish(CLUSTER_ORDER, ref);
      expect(await compared(port)).to.deep.equal(done([]));
    });

    it('is refused where the hub shows its objects only one by one, and tells a hub that fails', async () => {
      let answer: Promise<undefined> = Promise.resolve(undefined);
      const manifest = applyArgs() as unknown as OrderArgs;
      const port = await onFake({
        getClusterOrder: async () => ({ ...observedLegacy(manifest.spec), name: ref.name, id: CLUSTER }),
        getHostedCluster: async () => undefined,
        digests: () => answer,
      });
      await port('observeObject', orderRef, effectCall());
      expect(await compared(port)).to.include({ outcome: 'refused', reason: 'OneByOne' });
      answer = Promise.reject(new HubError('unavailable', 'the hub is away'));
      answer.catch(() => undefined);
      expect(await compared(port)).to.include({ outcome: 'failed', reason: 'Unavailable' });
    });
    const done = (unchanged: number[]) => ({ outcome: 'done', result: { unchanged } });
  });

  it('waits while a hub is not registered or has no adapter', async () => {
    const fixture = hubFixture();
    closing.push(() => fixture.stop());
    const port = createManagementClusterEffects({
      registry: fixture.registry,
      secrets,
      clock: systemClock(),
      looks: createObjectLooks(),
    });
    expect(await port('observeObject', orderRef, effectCall())).to.include({
      outcome: 'failed',
      reason: 'HubNotRegistered',
    });
    await fixture.register(HUB);
    await ready(fixture);
    expect(await port('observeObject', orderRef, effectCall())).to.include({
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
  it('tells what is denied (403) from credentials that are not known (401)', () => {
    for (const [status, reason] of [
      [401, 'Unauthorized'],
      [403, 'Forbidden'],
    ] as const)
      expect(outcomeOfHubError(new HubError('unauthorized', 'no', { facts: { status } }))).to.include({
        reason,
      });
  });
});
