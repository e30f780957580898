import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { checkEventProof, type EventProofAnswer } from '../../../../src/cli/audit/event-proof.ts';
import { openBundle } from '../../../../src/cli/audit/bundle-source.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../../support/audit/stage.ts';
import { itemsOf, textAt, type Json } from '../../../support/http/service.ts';

/** What tenants must not learn from events that they may see in part. */
describe('audit API: what is left out for tenants', () => {
  const HUB = 'hub-that-nobody-knows';
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  /** An event that names its hub, and does not say that this is hidden: its leaf is of all of it. */
  const storeWithHub = async (id: string): Promise<string> => {
    const { store } = stage.service;
    const revision = await store.currentRevision(`cluster-${id}`);
    if (revision === 'no_stream') throw new Error('there is no cluster');
    for await (const event of store.readStream(`cluster-${id}`, { limit: 1 })) {
      const { hidden: _hidden, ...metadata } = event.metadata;
      const entry = {
        id: '0193a1b2-0000-7000-8000-0000000000aa',
        type: 'ClusterBecameReady',
        data: JSON.stringify({ at: '2026-11-21T12:00:00.000Z' }),
        metadata: JSON.stringify({ ...metadata, schemaVersion: 1, hub: HUB }),
      };
      await store.append(event.stream, revision, [entry]);
      return entry.id;
    }
    throw new Error('the stream is empty');
  };

  it('is the hub of the metadata, in lists, proofs and exports, and the hashes that it could be guessed by', async () => {
    const { alice, auditor, admin, order, settled } = stage;
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

    const { bytes, report } = await taken();
    expectWithheld(bytes, whole.json);
    expect(bytes.includes(HUB)).to.equal(false);
    expect(report.findings).to.deep.equal([]);
  });

  /** `proof`: of the event, as the provider has it. */
  const expectWithheld = (bytes: Buffer, proof: Json): void => {
    for (const hash of ['data', 'metadata']) {
      expect(textAt(proof, 'leaf', hash)).to.match(/^[0-9a-f]{64}$/);
      expect(bytes.includes(textAt(proof, 'leaf', hash)), hash).to.equal(false);
    }
    const hash = Buffer.from(textAt(proof, 'leaf_hash'), 'base64').toString('hex');
    const line = bytes
      .toString('latin1')
      .split('\n')
      .find((text) => text.includes(`"hash":"${hash}"`));
    expect(line).to.include('"shown":"withheld"').and.to.include('"why":"audience"');
  };

  it('is the release image of an order, whose other fields are proven all the same', async () => {
    const { alice, auditor, admin, order, settled } = stage;
    const stream = `cluster-${await order(alice, 'one')}`;
    await settled();
    const trust = await trusted();
    const proofFor = async (call: typeof auditor) => {
      const { status, text, json } = await call('GET', `${AUDIT}/events/${stream}@0/proof`);
      expect(status, text).to.equal(200);
      const checked = await checkEventProof(json as unknown as EventProofAnswer, { shipped: trust });
      return { text, json, checked };
    };
    const whole = await proofFor(admin);
    expect(whole.checked).to.deep.include({ findings: [], proven: 'content' });
    const image = textAt(whole.json, 'stored', 'data', 'version', 'releaseImage');
    const salt = textAt(whole.json, 'stored', 'metadata', 'hidden', 'salt');
    expect(image).to.not.equal('');
    expect(salt).to.match(/^[0-9a-f]{32}$/);

    const part = await proofFor(auditor);
    expect(part.checked).to.deep.include({ findings: [], proven: 'part' });
    expect(textAt(part.json, 'stored', 'data', 'version', 'name')).to.not.equal('');
    const shown = await auditor('GET', `${AUDIT}/events/${stream}@0`);
    expect(shown.json).to.include({ type: 'ClusterOrdered', shown: 'redacted' });

    const { bytes, report } = await taken();
    expect(report.findings).to.deep.equal([]);
    expect(report.redactedProven).to.be.greaterThan(0);
    expect(report.redactedProven).to.equal(report.counts.redacted);
    for (const kept of [image, salt, '"hidden":{'])
      for (const text of [part.text, shown.text, bytes.toString('latin1')]) expect(text).to.not.include(kept);
  });

  const trusted = async (): Promise<Trust> =>
    (await stage.auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;

  /** An export that the tenant's auditor takes away, and what a check of it says. */
  const taken = async () => {
    const { auditor, service } = stage;
    const trust = await trusted();
    const state = await stage.exported(auditor, { format: 'ocsf' });
    const token = await service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
    const bytes = await stage.fetched(token, state);
    const file = join(service.audit?.directory ?? '', 'copy.tar');
    await writeFile(file, bytes);
    return { bytes, report: await verifyBundle(await openBundle(file), { trust }) };
  };
});
