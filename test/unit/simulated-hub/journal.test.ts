import { CLUSTER_ORDER, HOSTED_CLUSTER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import {
  assertNoSecondObject,
  checkHubFile,
  readHubCalls,
  readHubOrders,
} from '../../support/hubs/hub-journal.ts';
import { createHubBench, HOSTED, hubErrorOf, manifestOf, REF } from './hub-support.ts';

describe('journal of the simulated hub', () => {
  let bench: ReturnType<typeof createHubBench>;
  beforeEach(() => {
    bench = createHubBench();
  });
  afterEach(() => bench.close());

  it('holds every call with its effect, also reads and refusals', async () => {
    const by = (effectId: string) => bench.by({ effectId });
    const { hub } = bench;
    await hub.find(CLUSTER_ORDER, 'osac-hub', 'cluster-of-order-a', by('e1'));
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('e2'));
    await hubErrorOf(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by('e3')));
    await hub.patch(CLUSTER_ORDER, REF('order-a'), { sshPublicKey: 'ssh' }, by('e4'));
    await hub.patch(CLUSTER_ORDER, REF('order-a'), { sshPublicKey: 'ssh' }, by('e5'));
    await hub.get(HOSTED_CLUSTER, HOSTED('order-a'), by('e6'));
    await hub.readSecret({ ...HOSTED('order-a'), key: 'kubeconfig' }, by('e7'));
    await hub.delete(CLUSTER_ORDER, REF('order-a'), by('e8'));
    await hub.delete(CLUSTER_ORDER, REF('nobody'), by('e9'));
    const calls = readHubCalls(bench.file);
    expect(calls.map((call) => `${call.effectId} ${call.operation}: ${call.result}`)).to.deep.equal([
      'e1 find: found 0',
      'e2 create: created',
      'e3 create: refused: already-exists',
      'e4 patch: patched',
      'e5 patch: unchanged',
      'e6 get: absent',
      'e7 read-secret: absent',
      'e8 delete: deletion-requested',
      'e9 delete: absent',
    ]);
    expect(calls.map(({ kind }) => kind))
      .to.include('HostedCluster')
      .and.include('Secret');
    expect(calls[1]).to.include({
      kind: 'ClusterOrder',
      namespace: 'osac-hub',
      object: 'order-a',
      at: '2026-11-21T12:00:00.000Z',
    });
    expect(checkHubFile(bench.file)).to.equal('ok');
    expect(await hub.control.synchronous()).to.equal(2);
  });

  it('a new object after the former is gone is no second object', async () => {
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    await bench.time.advance(4000);
    await bench.hub.delete(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(4000);
    await bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by());
    const [former, present] = readHubOrders(bench.file);
    expect(former?.goneAt).to.be.lessThan(present?.createdAt ?? 0);
    expect(former?.uid).not.to.equal(present?.uid);
    assertNoSecondObject(bench.file);
  });

  it('the checker finds two objects of one cluster, of one effect, and one that no call made', async () => {
    const one = manifestOf('order-a', { clusterId: 'c' });
    await bench.hub.create(CLUSTER_ORDER, one, bench.by({ effectId: 'e' }));
    await bench.hub.create(CLUSTER_ORDER, { ...one, name: 'order-b' }, bench.by());
    expect(() => assertNoSecondObject(bench.file)).to.throw('cluster c has a second object');

    const effects = createHubBench();
    await effects.hub.create(CLUSTER_ORDER, manifestOf('order-a'), effects.by({ effectId: 'e' }));
    await effects.hub.create(CLUSTER_ORDER, manifestOf('order-b'), effects.by({ effectId: 'e' }));
    expect(() => assertNoSecondObject(effects.file)).to.throw('effect e made 2 objects');
    await effects.close();

    const forged = createHubBench();
    await forged.hub.create(CLUSTER_ORDER, manifestOf('order-a'), forged.by());
    const db = new DatabaseSync(forged.file);
    db.exec(`DELETE FROM calls`);
    db.close();
    expect(() => assertNoSecondObject(forged.file)).to.throw('the journal knows 0 creations');
    await forged.close();
  });

  for (const version of [1, 99])
    it(`a file of form ${version} is refused`, async () => {
      await bench.hub.get(CLUSTER_ORDER, REF('order-a'), bench.by());
      const db = new DatabaseSync(bench.file);
      db.exec(`PRAGMA user_version = ${version}`);
      db.close();
      const error = await hubErrorOf(bench.open().get(CLUSTER_ORDER, REF('order-a'), bench.by()));
      expect([error.kind, String(error.cause).includes('has another form')]).to.deep.equal([
        'unavailable',
        true,
      ]);
    });
});
