import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { BadCatalog, readCatalog } from '../../../src/composition/catalog-files.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { loadShippedCatalogue } from '../../support/http/shipped-catalogue.ts';

const FIXTURES = join(import.meta.dirname, '../../../fixtures/catalog');

describe('catalogue folder', () => {
  describe('loaded into a service', () => {
    let service: TestService;
    let admin: Caller;
    before(async () => {
      service = await startTestService();
      admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    });
    after(() => service.close());

    const load = () => loadShippedCatalogue(service);
    const versions = async () => itemsOf(await admin('GET', `${PRIVATE}/cluster_versions`));
    const defaults = async (): Promise<string[]> =>
      (await versions())
        .filter((version) => (version['spec'] as { is_default?: boolean }).is_default === true)
        .map((version) => textAt(version, 'spec', 'version'));

    it('creates everything once, and a second time nothing: no event, no refusal', async () => {
      const first = await load();
      expect(first.kept).to.equal(0);
      expect(first.created).to.be.greaterThan(10);
      const before = await service.store.lastPosition();
      expect(await load()).to.deep.equal({ created: 0, kept: first.created });
      expect(await service.store.lastPosition()).to.equal(before);
      expect(service.rejections).to.deep.equal([]);
    });

    it('offers what can be ordered', async () => {
      const user = callerOf(service, await service.token({ user: 'alice', tenants: ['acme'] }));
      const order = (spec: object) =>
        user('POST', `${PUBLIC}/clusters`, { metadata: { name: 'from-item' }, spec });
      const size = (workers: number): object => ({
        catalog_item: { name: 'dev-cluster' },
        node_sets: { workers: { size: workers } },
      });
      expect((await order(size(7))).json['message']).to.contain('must be at most 6');
      const reply = await order(size(3));
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json).to.have.nested.property('spec.network.pod_cidr', '10.128.0.0/14');
      const model = { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'granite' };
      const serving = await user('POST', `${PUBLIC}/clusters`, {
        metadata: { name: 'serving' },
        spec: {
          catalog_item: { id: 'model-serving' },
          template_parameters: { model },
          pull_secret: '{"auths":{}}',
        },
      });
      expect(serving.status, serving.text).to.equal(200);
      expect(serving.json)
        .to.have.nested.property('spec.template_parameters')
        .that.deep.equals({
          model,
          replicas: { '@type': 'type.googleapis.com/google.protobuf.Int32Value', value: 2 },
        });
    });

    it('leaves what an admin did: another default, changes, deletions of objects with an id of their own', async () => {
      const other = await admin('POST', `${PRIVATE}/cluster_versions`, {
        spec: { version: '4.23.0', image: 'i', is_default: true },
      });
      expect(other.status, other.text).to.equal(200);
      const shipped = (await versions()).find((version) => textAt(version, 'spec', 'version') === '4.20.3');
      const zone = await admin('PATCH', `${PRIVATE}/hubs/sim-east-1`, { spec: { zone: 'moved' } });
      expect(zone.status).to.equal(200);
      expect((await admin('DELETE', `${PRIVATE}/hubs/sim-west-1`)).status).to.equal(200);
      const before = await service.store.lastPosition();
      expect((await load()).created).to.equal(0);
      expect(await service.store.lastPosition()).to.equal(before);
      // A version that was deleted comes back under a new id, and does not take the default.
      expect(
        (await admin('DELETE', `${PRIVATE}/cluster_versions/${textAt(shipped, 'id')}`)).status,
      ).to.be.oneOf([200, 400]);
      await load();
      expect(await defaults()).to.deep.equal(['4.23.0']);
      expect(textAt((await admin('GET', `${PRIVATE}/hubs/sim-east-1`)).json, 'spec', 'zone')).to.equal(
        'moved',
      );
      expect((await admin('GET', `${PRIVATE}/hubs/sim-west-1`)).status).to.equal(404);
      expect(service.rejections.filter(({ code }) => code === 'ALREADY_EXISTS')).to.deep.equal([]);
    });
  });

  describe('checked before anything starts', () => {
    let dir: string;
    beforeEach(() => {
      dir = mkdtempSync(join(tmpdir(), 'ledger-catalog-'));
    });
    afterEach(() => rmSync(dir, { recursive: true, force: true }));

    const refused = (file: string, text: string, ...said: readonly string[]): void => {
      writeFileSync(join(dir, file), text);
      let message = '';
      try {
        readCatalog(dir);
      } catch (error) {
        expect(error).to.be.instanceOf(BadCatalog);
        message = (error as Error).message;
      }
      for (const part of [file, ...said]) expect(message).to.contain(part);
      rmSync(join(dir, file));
    };

    it('the shipped one is read, notes and hidden files beside it are not', () => {
      expect(readCatalog(FIXTURES).entries.length).to.be.greaterThan(10);
      writeFileSync(join(dir, 'README.md'), 'x');
      writeFileSync(join(dir, '.hidden'), 'x');
      expect(readCatalog(dir)).to.deep.equal({ folder: dir, entries: [] });
    });

    it('files that nothing is known of, with the names of those that are', () => {
      refused('hub.json', '[]', 'hubs.json', 'cluster_templates.json');
    });

    it('what is no JSON, with its place, and what is no list', () => {
      refused('hubs.json', '[\n  {"id": }\n]', 'cannot be read', 'line 2, column 10');
      refused('tenants.json', '{}', 'JSON array');
    });

    for (const [what, file, entry, ...said] of [
      ['an unknown field', 'host_types.json', { id: 'a', titel: 'x' }, 'titel'],
      ['a hub without namespace', 'hubs.json', { id: 'sim-1', spec: { zone: 'a' } }, 'spec.namespace'],
      ['a template id that no hub accepts', 'cluster_templates.json', { id: 'with-hyphen' }, "field 'id'"],
      [
        'a version that is none',
        'cluster_versions.json',
        { spec: { version: '4', image: 'i' } },
        'spec.version',
      ],
      ['an object without a name', 'host_types.json', { title: 'x' }, 'name'],
      ['no object at all', 'host_types.json', 5, 'JSON object'],
    ] as const)
      it(what, () => refused(file, JSON.stringify([entry]), 'entry 1', ...said));

    it('a folder that is not there', () => {
      expect(() => readCatalog(join(dir, 'none'))).to.throw(
        BadCatalog,
        /^LEDGER_CATALOG: folder \S+ not found/,
      );
    });
  });
});
