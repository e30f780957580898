import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit-callers.ts';
import { itemsOf, textAt } from '../../support/http-service.ts';

/** What tenants must not learn from events that they may see in part. */
describe('audit API: what is left out for tenants', () => {
  const HUB = 'hub-that-nobody-knows';
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  /** An event that names its hub, as older versions of the service stored them. */
  const storeWithHub = async (id: string): Promise<string> => {
    const { store } = stage.service;
    const revision = await store.currentRevision(`cluster-${id}`);
    if (revision === 'no_stream') throw new Error('there is no cluster');
    for await (const event of store.readStream(`cluster-${id}`, { limit: 1 })) {
      const entry = {
        id: '0193a1b2-0000-7000-8000-0000000000aa',
        type: 'ClusterBecameReady',
        data: JSON.stringify({ at: '2026-11-21T12:00:00.000Z' }),
        metadata: JSON.stringify({ ...event.metadata, schemaVersion: 1, hub: HUB }),
      };
      await store.append(event.stream, revision, [entry]);
      return entry.id;
    }
    throw new Error('the stream is empty');
  };

  it('is the hub of the metadata, in lists, proofs and exports, and the hashes that it could be guessed by', async () => {
    const { alice, auditor, admin, order, settled, service } = stage;
    const event = await storeWithHub(await order(alice, 'one'));
    await settled();
    const shown = await auditor('GET', `${AUDIT}/events/${event}`);
    expect(shown.json).to.include({ type: 'ClusterBecameReady', shown: 'redacted' });
    const proof = await auditor('GET', `${AUDIT}/events/${event}/proof`);
    expect(proof.status, proof.text).to.equal(200);
    expect(proof.json['leaf']).to.include({ type: 'ClusterBecameReady' });
    expect(proof.json['leaf']).not.to.have.any.keys('data', 'metadata');
    expect(proof.json).not.to.have.property('stored');
    expect(shown.text + proof.text).not.to.include(HUB);

    const whole = await admin('GET', `${AUDIT}/events/${event}/proof`);
    expect(whole.json['leaf']).to.include.keys('data', 'metadata');
    expect(textAt(whole.json, 'stored', 'metadata', 'hub')).to.equal(HUB);
    const full = itemsOf(await auditor('GET', `${AUDIT}/events`)).find(
      (each) => textAt(each, 'shown') === 'full',
    );
    const own = await auditor('GET', `${AUDIT}/events/${textAt(full, 'id')}/proof`);
    expect(own.status, own.text).to.equal(200);
    expect(own.json['leaf']).to.include.keys('data', 'metadata');

    const trust = (await auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;
    const state = await stage.exported(auditor, { format: 'ocsf' });
    const token = await service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
    const bytes = await stage.fetched(token, state);
    expect(bytes.includes('ClusterBecameReady')).to.equal(true);
    expect(bytes.includes(HUB)).to.equal(false);
    const file = join(service.audit?.directory ?? '', 'copy.tar');
    await writeFile(file, bytes);
    expect((await verifyBundle(await openBundle(file), { trust })).findings).to.deep.equal([]);
  });
});
