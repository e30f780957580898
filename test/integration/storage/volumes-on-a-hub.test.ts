import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { VOLUME } from '../../../src/domain/storage/hub-objects.ts';
import { eventually } from '../../support/eventually.ts';
import { PRIVATE, textAt } from '../../support/http/service.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';
import { networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

const BACKENDS = `${PRIVATE}/storage_backends`;
const TIERS = `${PRIVATE}/storage_tiers`;
const VOLUMES = `${PRIVATE}/volumes`;
const LEDGER = '/api/ledger/v1';
const PASSWORD = 'canary-7f3a91c2';
const MODE = 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE';

/** The whole service with its simulated hubs: what becomes of volumes there. */
describe('volumes on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let logged = '';
  let serial = 0;

  const order = async (annotations: object = {}): Promise<string> => {
    const name = `volume-${(serial += 1)}`;
    const metadata = { name, tenant: 't1', annotations: { simulation: 'factor=0.05', ...annotations } };
    const spec = { storage_tier: 'gold', size_gib: 10, access_mode: MODE };
    return textAt(ok(await people.admin('POST', VOLUMES, { metadata, spec })), 'id');
  };

  before(async () => {
    whole = await createWholeService({}, { write: (line) => void (logged += line) });
    await whole.start();
    people = await networkStory(whole);
    const credentials = { username: 'osac', password: PASSWORD };
    const spec = { provider: 'ceph', endpoint: 'https://ceph.example', credentials };
    ok(await people.admin('POST', BACKENDS, { id: 'ceph-1', metadata: { name: 'ceph-1' }, spec }));
    const backends = [{ backend_id: 'ceph-1', protocol: 'STORAGE_PROTOCOL_NFS' }];
    ok(await people.admin('POST', TIERS, { metadata: { name: 'gold' }, spec: { backends } }));
  });
  after(() => whole.dispose());

  it('one becomes available, is there once on its hub, and goes again; its tier and backend stay until then', async () => {
    const id = await order();
    const shown = await people.shows(`${VOLUMES}/${id}`, 'AVAILABLE');
    expect(shown).to.include({ backend: 'ceph-1', protocol: 'STORAGE_PROTOCOL_NFS' });
    expect(shown['vendor_volume_id']).to.match(/^sim-/);
    const hub = stringAt(shown, 'hub');
    const journal = join(whole.dataDir, 'hubs', `${hub}.sqlite`);
    const did = () =>
      readHubCalls(journal)
        .filter(({ kind, object }) => kind === VOLUME.kind && object === VOLUME.nameOf(id))
        .map(({ result }) => result);
    expect(did().slice(0, 2)).to.deep.equal(['created', 'status patched']);
    for (const [path, code] of [
      [`${TIERS}/gold`, /in use by at least one volume/],
      [
        `${BACKENDS}/ceph-1`,
        /^cannot delete StorageBackend 'ceph-1': 1 StorageTier\(s\) still reference it: storage tier 'gold'$/,
      ],
    ] as const)
      expect(textAt((await people.admin('DELETE', path)).json, 'message')).to.match(code);
    const { json } = await people.admin('GET', `${LEDGER}/orders/${id}`);
    expect(json).to.deep.include({ kind: 'volume', state: 'available' });
    ok(await people.admin('DELETE', `${VOLUMES}/${id}`));
    await people.isGone(`${VOLUMES}/${id}`);
    expect(did().filter((result) => result === 'created')).to.have.length(1);
    expect(did()).to.include('deletion-requested');
  });

  it('keeps the backend that its tier had', async () => {
    const id = await order();
    const credentials = { username: 'osac', password: 'another' };
    const spec = { provider: 'ceph', endpoint: 'https://two.example', credentials };
    ok(await people.admin('POST', BACKENDS, { id: 'ceph-2', metadata: { name: 'ceph-2' }, spec }));
    const backends = [{ backend_id: 'ceph-2', protocol: 'STORAGE_PROTOCOL_BLOCK' }];
    ok(await people.admin('PATCH', `${TIERS}/gold`, { spec: { backends } }));
    const old = await people.shows(`${VOLUMES}/${id}`, 'AVAILABLE');
    expect(old).to.include({ backend: 'ceph-1', protocol: 'STORAGE_PROTOCOL_NFS' });
    const next = await people.shows(`${VOLUMES}/${await order()}`, 'AVAILABLE');
    expect(next).to.include({ backend: 'ceph-2', protocol: 'STORAGE_PROTOCOL_BLOCK' });
  });

  it('one that failed on its hub says so and is retried', async () => {
    const id = await order({ simulation: 'factor=0.05,failInstall=1,failText=pool is full,retry=1h' });
    const failed = await people.shows(`${VOLUMES}/${id}`, 'FAILED');
    expect(failed).to.include({ message: 'the hub could not make the volume ready' });
    const { json } = await people.admin('GET', `${LEDGER}/orders/${id}`);
    expect(objectAt(json as JsonObject, 'failure')).to.include({ detail: 'pool is full' });
    ok(await people.admin('DELETE', `${VOLUMES}/${id}`));
    await people.isGone(`${VOLUMES}/${id}`);
  });

  it('a zone that no hub has, and a tier that goes or is not active, are refused', async () => {
    const spec = { storage_tier: 'gold', size_gib: 10, access_mode: MODE };
    const make = async (metadata: object, more: object = {}) =>
      (await people.admin('POST', VOLUMES, { metadata, spec: { ...spec, ...more } })).json;
    const annotations = { 'fulfillment-ledger/zone': 'nowhere' };
    expect(await make({ name: 'far', tenant: 't1', annotations })).to.include({ code: 9 });
    const backends = [{ backend_id: 'ceph-1' }];
    for (const [name, change, message] of [
      [
        'leaving',
        { metadata: { finalizers: ['held'] } },
        "storage tier 'leaving' is being deleted: name another one",
      ],
      [
        'strange',
        { status: { state: 7 } },
        'storage tier "strange" is not active or has no storage backend: name another one',
      ],
    ] as const) {
      ok(await people.admin('POST', TIERS, { metadata: { name }, spec: { backends } }));
      ok(await people.admin('PATCH', `${TIERS}/${name}`, change));
      if (name === 'leaving') ok(await people.admin('DELETE', `${TIERS}/${name}`));
      const answer = await make({ name: 'late', tenant: 't1' }, { storage_tier: name });
      expect(answer).to.include({ code: 9, message });
    }
  });

  it('the bill has its tier', async () => {
    const id = await order();
    await people.shows(`${VOLUMES}/${id}`, 'AVAILABLE');
    let usage = '';
    await eventually(
      () => `it is billed: ${usage}`,
      async () => {
        usage = (await people.admin('GET', `${LEDGER}/usage?by=kind,template`)).text;
        return usage.includes('"gold"') && usage.includes('"volume"');
      },
    );
  });

  it('nobody finds the password: not in the log, nor in an event', async () => {
    const { text } = await people.admin('GET', `${BACKENDS}/ceph-1`);
    expect(text).to.include('***');
    const events = JSON.stringify(await whole.log());
    expect(events).to.include('StorageBackendConnected');
    expect(logged).to.include('catalogue loaded');
    const files = readdirSync(whole.dataDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'));
    expect([text, events, logged, ...files].filter((each) => each.includes(PASSWORD))).to.deep.equal([]);
  });
});
