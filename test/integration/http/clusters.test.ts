import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http-service.ts';

const CLUSTERS = `${PUBLIC}/clusters`;
const SMALL = { template: { id: 'osac.templates.small' } };

/** osac-api.md §3–§6, §11 Clusters, §12. */
describe('clusters over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let serial = 0;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    await seedCatalogue(admin);
  });
  after(() => service.close());

  const name = (): string => `c-${(serial += 1)}`;
  const order = async (
    more: object = {},
    spec: object = SMALL,
  ): Promise<{ readonly id: string; readonly name: string; readonly json: Json }> => {
    const reply = await user('POST', CLUSTERS, { metadata: { name: name(), ...more }, spec });
    expect(reply.status, reply.text).to.equal(200);
    return { id: textAt(reply.json, 'id'), name: textAt(reply.json, 'metadata', 'name'), json: reply.json };
  };

  describe('create', () => {
    it('answers 200 with the order as resolved: template, parameters, node sets, version', async () => {
      const wanted = name();
      const reply = await user('POST', CLUSTERS, {
        metadata: { name: wanted, labels: { env: 'dev' }, annotations: { note: 'Any Text' } },
        spec: {
          ...SMALL,
          node_sets: { workers: { size: 5 } },
          pull_secret: 'SENTINEL',
          ssh_public_key: 'ssh-ed25519 A',
        },
      });
      expect(reply.status).to.equal(200);
      expect(reply.headers.get('content-type')).to.equal('application/json');
      expect(reply.headers.get('grpc-metadata-content-type')).to.equal('application/grpc');
      expect(reply.headers.get('etag')).to.equal('"cluster-0"');
      expect(reply.headers.get('x-ledger-position')).to.match(/^memory\.\d+$/);
      const { id, metadata, ...rest } = reply.json as unknown as Record<string, Json>;
      expect(id).to.match(/^[0-9a-f-]{36}$/);
      const { creation_timestamp: created, creator, ...named } = metadata as unknown as Record<string, Json>;
      expect(created).to.match(/^\d{4}-.*Z$/);
      expect(creator).to.match(/^[0-9a-f-]{36}$/);
      expect(named).to.deep.equal({
        name: wanted,
        tenant: 't1',
        labels: { env: 'dev' },
        annotations: { note: 'Any Text' },
      });
      const version = rest['spec']?.['version'] as Json;
      expect(version['name']).to.match(/^4-17-0-[0-9a-f]{4}$/);
      expect(rest).to.deep.equal({
        spec: {
          template: { id: 'osac.templates.small', name: 'small' },
          template_parameters: {
            flavour: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'plain' },
          },
          node_sets: { workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 5 } },
          pull_secret: '***',
          ssh_public_key: 'ssh-ed25519 A',
          version,
        },
        status: {},
      });
      expect([...service.secrets.values.values()].map(String)).to.include('SENTINEL');
      const log: string[] = [];
      for await (const event of service.store.readAll({ limit: 1000 }))
        log.push(JSON.stringify(event.data), JSON.stringify(event.metadata));
      expect(log.join()).not.to.contain('SENTINEL');
    });

    it('is there at once for the next read, the same text as the answer', async () => {
      const reply = await user('POST', CLUSTERS, { metadata: { name: name() }, spec: SMALL });
      const read = await user('GET', `${CLUSTERS}/${textAt(reply.json, 'id')}`);
      expect(read.json).to.deep.equal(reply.json);
      expect(read.headers.get('etag')).to.equal(reply.headers.get('etag'));
    });

    it('takes camelCase, templates and versions by name, and an id of the caller', async () => {
      const id = `own id ${name()}`;
      const reply = await user('POST', CLUSTERS, {
        id,
        metadata: { name: name(), displayName: 'D' },
        spec: { template: { name: 'big' }, nodeSets: { gpu: { size: 4 } } },
      });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json['id']).to.equal(id);
      expect(reply.json['metadata']?.['display_name']).to.equal('D');
      expect(reply.json['spec']?.['node_sets']).to.deep.equal({
        control: { host_type: { id: 'fc430', name: 'fc430' }, size: 1 },
        gpu: { host_type: { id: 'gpu', name: 'gpu' }, size: 4 },
      });
      const read = await user('GET', `${CLUSTERS}/${encodeURIComponent(id)}`);
      expect(read.json['id']).to.equal(id);
    });

    it('shows the private side what tenants do not see', async () => {
      const created = await order();
      const read = await admin('GET', `${PRIVATE}/clusters/${created.id}`);
      expect(read.json['spec']?.['node_sets']?.['workers']).to.deep.equal({
        host_type: { id: 'fc430', name: 'fc430' },
        size: 3,
        fabric_interface: 'nic1',
      });
    });

    it('ignores what the service sets itself', async () => {
      const reply = await user('POST', CLUSTERS, {
        metadata: { name: name(), creator: 'me', version: 7, creation_timestamp: '2001-01-01T00:00:00Z' },
        spec: SMALL,
        status: { state: 'CLUSTER_STATE_READY', api_url: 'https://x' },
      });
      expect(reply.json['status']).to.deep.equal({});
      expect(reply.json['metadata']?.['version']).to.equal(undefined);
      expect(reply.json['metadata']?.['creation_timestamp']).to.match(/^20[2-9]/);
    });

    for (const [what, body, status, code, message] of [
      ['no template', { metadata: { name: 'x1' } }, 400, 3, /^template is mandatory$/],
      ['an empty body object', {}, 400, 3, /^template is mandatory$/],
      ['no metadata', { spec: SMALL }, 400, 3, /^metadata is required: give metadata\.name$/],
      [
        'no name',
        { metadata: {}, spec: SMALL },
        400,
        3,
        /^validation failed: validation errors:\n - object\.metadata\.name: must be at least 1 characters\n - object\.metadata\.name: does not match/,
      ],
      [
        'a bad name',
        { metadata: { name: 'Bad_Name' }, spec: SMALL },
        400,
        3,
        /^validation failed: validation error: object\.metadata\.name: does not match/,
      ],
      [
        'a bad label',
        { metadata: { name: 'x1', labels: { 'Bad Key': 'v' } }, spec: SMALL },
        400,
        3,
        /^field 'metadata\.labels' key 'Bad Key' /,
      ],
      [
        'an unknown template',
        { metadata: { name: 'x1' }, spec: { template: { id: 'no-such' } } },
        400,
        3,
        /^reference validation failed: object\.spec\.template: ClusterTemplate "no-such" not found$/,
      ],
      [
        'an empty reference',
        { metadata: { name: 'x1' }, spec: { template: {} } },
        400,
        3,
        /ClusterTemplate reference must specify id or name$/,
      ],
      [
        'a node set of size 0',
        { metadata: { name: 'x1' }, spec: { ...SMALL, node_sets: { workers: { size: 0 } } } },
        400,
        3,
        /^size for node set 'workers' should be greater than zero, but it is 0$/,
      ],
      [
        'an unknown node set',
        { metadata: { name: 'x1' }, spec: { ...SMALL, node_sets: { nope: { size: 1 } } } },
        400,
        3,
        /node set 'nope'/,
      ],
      [
        'an unknown parameter',
        {
          metadata: { name: 'x1' },
          spec: {
            ...SMALL,
            template_parameters: {
              nope: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'x' },
            },
          },
        },
        400,
        3,
        /nope/,
      ],
      [
        'a version by its number',
        { metadata: { name: 'x1' }, spec: { ...SMALL, version: { name: '4.20.3' } } },
        400,
        3,
        /ClusterVersion "4.20.3" not found: give id or metadata.name of the version/,
      ],
      [
        'a parameter without its type',
        { metadata: { name: 'x1' }, spec: { ...SMALL, template_parameters: { n: 7 } } },
        400,
        3,
        /'spec.template_parameters.n': .*for example \{"@type":"type.googleapis.com\/google.protobuf.Int32Value","value":3\}/,
      ],
      [
        'an unknown version',
        { metadata: { name: 'x1' }, spec: { ...SMALL, version: { name: '9-9' } } },
        400,
        3,
        /ClusterVersion "9-9" not found$/,
      ],
      [
        'a tenant of somebody else',
        { metadata: { name: 'x1', tenant: 't2' }, spec: SMALL },
        403,
        7,
        /^tenant 't2' doesn't exist$/,
      ],
      [
        'the shared tenant',
        { metadata: { name: 'x1', tenant: 'shared' }, spec: SMALL },
        403,
        7,
        /^tenant 'shared' can't be assigned$/,
      ],
      [
        'an unknown project',
        { metadata: { name: 'x1', project: 'nope' }, spec: SMALL },
        400,
        3,
        /^project 'nope' doesn't exist$/,
      ],
      [
        'an id with a slash',
        { id: '../x', metadata: { name: 'x1' }, spec: SMALL },
        400,
        3,
        /^field 'id' must not/,
      ],
      [
        'an unknown field',
        { metadata: { name: 'x1' }, spec: { ...SMALL, nope: 1 } },
        400,
        3,
        /unknown field "spec\.nope"/,
      ],
      [
        'a hidden pull secret',
        { metadata: { name: 'x1' }, spec: { ...SMALL, pull_secret: '***' } },
        400,
        3,
        /'spec\.pull_secret' must hold the secret itself/,
      ],
    ] as const) {
      it(`refuses ${what}`, async () => {
        const reply = await user('POST', CLUSTERS, body);
        expect(reply.json, reply.text).to.include({ code });
        expect(reply.status).to.equal(status);
        expect(reply.json['message']).to.match(message);
        expect(reply.headers.get('x-ledger-position')).to.equal(null);
      });
    }

    it('says which reference is wrong in a BadRequest detail', async () => {
      const reply = await user('POST', CLUSTERS, {
        metadata: { name: 'x1' },
        spec: { template: { id: 'no-such' } },
      });
      expect(reply.json['details']).to.deep.equal([
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          field_violations: [
            { field: 'object.spec.template', description: 'ClusterTemplate "no-such" not found' },
          ],
        },
      ]);
    });

    it('answers 409 for a taken name and a taken id, with the id the new object would have had', async () => {
      const first = await order();
      const taken = first.name;
      const byName = await user('POST', CLUSTERS, { metadata: { name: taken }, spec: SMALL });
      expect(byName.status).to.equal(409);
      expect(byName.json['code']).to.equal(6);
      expect(byName.json['message']).to.match(new RegExp(`^cluster with name '${taken}' already exists$`));
      const byId = await other('POST', CLUSTERS, {
        id: first.id,
        metadata: { name: 'other' },
        spec: SMALL,
      });
      expect(byId.status).to.equal(409);
      expect(byId.json['message']).to.equal(`cluster with identifier '${first.id}' already exists`);
      expect((await other('POST', CLUSTERS, { metadata: { name: taken }, spec: SMALL })).status).to.equal(
        200,
      );
    });
  });

  describe('list', () => {
    it('pages by limit and offset, counts all that the caller may see', async () => {
      const fresh = callerOf(service, await service.token({ user: 'carol', tenants: ['t1'] }));
      const all = await fresh('GET', CLUSTERS);
      const total = all.json['total'] as unknown as number;
      expect(all.json['size']).to.equal(Math.min(total, 100));
      const ids = itemsOf(all).map((item) => textAt(item, 'id'));
      const times = itemsOf(all).map((item) => textAt(item, 'metadata', 'creation_timestamp'));
      expect(times).to.deep.equal(times.toSorted());
      const page = await fresh('GET', `${CLUSTERS}?limit=2&offset=1`);
      expect(page.json).to.deep.equal({
        size: 2,
        total,
        items: itemsOf(all).slice(1, 3),
      });
      expect((await fresh('GET', `${CLUSTERS}?limit=0`)).json).to.deep.equal({ total });
      expect((await fresh('GET', `${CLUSTERS}?limit=1&offset=-5`)).json['items']?.[0]?.['id']).to.equal(
        ids[0],
      );
      expect((await fresh('GET', `${CLUSTERS}?limit=5000&unknown=1`)).status).to.equal(200);
      expect((await fresh('GET', `${CLUSTERS}?offset=100000`)).json).to.deep.equal({ total });
    });

    it('is an empty object when there is nothing', async () => {
      const empty = callerOf(service, await service.token({ user: 'dave', tenants: [] }));
      expect((await empty('GET', CLUSTERS)).text).to.equal('{}');
    });

    for (const [query, message] of [
      ['limit=-1', /^limit must be a non-negative integer, but it is -1$/],
      ['limit=abc', /^parsing field "limit": /],
      ['offset=1.5', /^parsing field "offset": /],
      ['limit=99999999999', /^parsing field "limit": /],
    ] as const)
      it(`refuses ${query}`, async () => {
        const reply = await user('GET', `${CLUSTERS}?${query}`);
        expect(reply.status).to.equal(400);
        expect(reply.json['message']).to.match(message);
      });
  });

  describe('update', () => {
    const patch = (id: string, body: object, query = '', headers: Record<string, string> = {}) =>
      user('PATCH', `${CLUSTERS}/${id}${query}`, body, headers);

    it('replaces labels and counts versions', async () => {
      const { id } = await order({ labels: { env: 'dev' } });
      const reply = await patch(id, { metadata: { labels: { env: 'prod', team: 'a' } } });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json['metadata']).to.deep.include({ labels: { env: 'prod', team: 'a' }, version: 1 });
      expect(reply.headers.get('etag')).to.equal('"cluster-1"');
      expect((await user('GET', `${CLUSTERS}/${id}`)).json).to.deep.equal(reply.json);
    });

    it('scales by body and by mask and keeps the host type', async () => {
      const { id } = await order();
      const byBody = await patch(id, { spec: { node_sets: { workers: { size: 5 } } } });
      expect(byBody.json['spec']?.['node_sets'], byBody.text).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 5 },
      });
      const byMask = await patch(
        id,
        { spec: { nodeSets: { workers: { size: 7 } } } },
        '?update_mask=spec.nodeSets.workers.size',
      );
      expect(byMask.json['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 7 },
      });
      const withHost = await patch(id, {
        spec: { node_sets: { workers: { host_type: { name: 'fc430' }, size: 8 } } },
      });
      expect(withHost.json['spec']?.['node_sets']?.['workers']?.['size'], withHost.text).to.equal(8);
      const toNothing = await patch(
        id,
        { spec: { node_sets: { workers: { size: 0 } } } },
        '?update_mask=spec.node_sets.workers.size',
      );
      expect(toNothing.json['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' } },
      });
      expect(toNothing.json['metadata']?.['version']).to.equal(4);
    });

    it('changes nothing and writes nothing when nothing changes', async () => {
      const created = await order({ labels: { env: 'dev' } });
      const position = await service.store.lastPosition();
      for (const body of [
        {},
        { metadata: { labels: { env: 'dev' } } },
        { spec: { pull_secret: '***' } },
        { id: 'other', metadata: { creator: 'x', version: 9 }, status: { state: 'CLUSTER_STATE_READY' } },
        created.json,
      ]) {
        const reply = await patch(created.id, body);
        expect(reply.status, reply.text).to.equal(200);
        expect(reply.json).to.deep.equal(created.json);
      }
      expect(await service.store.lastPosition()).to.equal(position);
    });

    it('keeps a pull secret that comes back hidden, replaces and removes one', async () => {
      const { id } = await order({}, { ...SMALL, pull_secret: 'FIRST' });
      const before = service.secrets.values.size;
      const kept = await patch(id, { spec: { pull_secret: '***', ssh_public_key: 'k' } });
      expect(kept.json['spec']).to.include({ pull_secret: '***', ssh_public_key: 'k' });
      expect(service.secrets.values.size).to.equal(before);
      const replaced = await patch(id, { spec: { pull_secret: 'SECOND' } });
      expect(replaced.json['metadata']?.['version']).to.equal(2);
      expect(service.secrets.values.size).to.equal(before + 1);
      const removed = await patch(id, { spec: { pull_secret: null } });
      expect(removed.json['spec']?.['pull_secret']).to.equal(undefined);
    });

    it('clears by null and {}', async () => {
      const { id } = await order({ labels: { a: 'b' }, annotations: { c: 'd' } });
      const reply = await patch(id, { metadata: { labels: null, annotations: {} } });
      expect(reply.json['metadata']).not.to.have.any.keys('labels', 'annotations');
    });

    it('moves to another version by name', async () => {
      const { id } = await order();
      const versions = itemsOf(await user('GET', `${PUBLIC}/cluster_versions`));
      const next = versions.find((version) => textAt(version, 'spec', 'version') === '4.18.1') as Json;
      const reply = await patch(id, { spec: { version: { name: next['metadata']?.['name'] } } });
      expect(reply.json['spec']?.['version']).to.deep.equal({
        id: next['id'],
        name: next['metadata']?.['name'],
      });
    });

    for (const [what, body, message] of [
      ['the name', { metadata: { name: 'other' } }, /^field 'metadata\.name' is immutable$/],
      [
        'name and tenant',
        { metadata: { name: 'other', tenant: 't9' } },
        /^fields 'metadata\.name' and 'metadata\.tenant' are immutable$/,
      ],
      ['a cleared name', { metadata: { name: null } }, /^field 'metadata\.name' is immutable$/],
      [
        'the template',
        { spec: { template: { id: 'osac.templates.big' } } },
        /^field 'spec\.template' is immutable$/,
      ],
      ['an unknown template', { spec: { template: { id: 'x' } } }, /ClusterTemplate "x" not found/],
      [
        'parameters',
        { spec: { template_parameters: null } },
        /^field 'spec\.template_parameters' is immutable$/,
      ],
      [
        'a host type',
        { spec: { node_sets: { workers: { host_type: { id: 'gpu' }, size: 3 } } } },
        /host_type is immutable/,
      ],
      ['all node sets', { spec: { node_sets: {} } }, /last node set/],
      [
        'a negative size',
        { spec: { node_sets: { workers: { size: -1 } } } },
        /should not be negative, but it is -1/,
      ],
      ['a bad range', { spec: { network: { pod_cidr: 'x' } } }, /spec\.network\.pod_cidr/],
      [
        'a bad label value',
        { metadata: { labels: { a: 'Bad Value' } } },
        /^field 'metadata\.labels' key 'a' value/,
      ],
    ] as const)
      it(`refuses to change ${what}`, async () => {
        const { id } = await order();
        const reply = await patch(id, body);
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.json['message']).to.match(message);
      });

    it('refuses an unknown mask path with 400', async () => {
      const { id } = await order();
      const reply = await patch(id, {}, '?update_mask=spec.nope');
      expect(reply.status).to.equal(400);
      expect(reply.json['message']).to.match(/'spec\.nope'/);
    });

    it('lock=true compares the version of the body', async () => {
      const { id } = await order();
      expect((await patch(id, { metadata: { labels: { a: 'b' } } }, '?lock=true')).status).to.equal(200);
      const stale = await patch(id, { metadata: { labels: { a: 'c' } } }, '?lock=true');
      expect(stale.status).to.equal(409);
      expect(stale.json).to.deep.equal({
        code: 10,
        message: `object with identifier '${id}' has been modified: requested version is 0 but current version is 1`,
      });
      const right = await patch(id, { metadata: { version: 1, labels: { a: 'c' } } }, '?lock=true');
      expect(right.status).to.equal(200);
      expect((await patch(id, {}, '?lock=maybe')).status).to.equal(400);
    });

    it('If-Match lets only the state pass that the caller has seen', async () => {
      const { id } = await order();
      const change = (value: string) => ({ metadata: { labels: { a: value } } });
      const ok = await patch(id, change('1'), '', { 'if-match': '"cluster-0"' });
      expect(ok.status).to.equal(200);
      const stale = await patch(id, change('2'), '', { 'if-match': '"cluster-0"' });
      expect(stale.status).to.equal(412);
      expect(stale.headers.get('etag')).to.equal('"cluster-1"');
      expect(stale.json['message']).to.match(/has changed since it was read: read it again/);
      expect((await patch(id, change('2'), '', { 'if-match': '"hub-1"' })).status).to.equal(412);
      expect((await patch(id, change('2'), '', { 'if-match': 'nonsense' })).status).to.equal(400);
      expect((await patch(id, change('2'), '', { 'if-match': '*' })).status).to.equal(200);
      const gone = await user('DELETE', `${CLUSTERS}/${id}`, undefined, { 'if-match': '"cluster-0"' });
      expect(gone.status).to.equal(412);
      expect(gone.headers.get('etag')).to.equal('"cluster-2"');
    });

    it('merges concurrent changes of different fields without losing one', async () => {
      const { id } = await order();
      const replies = await Promise.all([
        patch(id, { metadata: { labels: { a: 'b' } } }),
        patch(id, { metadata: { annotations: { c: 'd' } } }),
        patch(id, { spec: { node_sets: { workers: { size: 9 } } } }),
        patch(id, { spec: { ssh_public_key: 'k' } }),
      ]);
      for (const reply of replies) expect(reply.status, reply.text).to.equal(200);
      const read = await user('GET', `${CLUSTERS}/${id}`);
      expect(read.json['metadata']).to.deep.include({
        labels: { a: 'b' },
        annotations: { c: 'd' },
        version: 4,
      });
      expect(read.json['spec']?.['ssh_public_key']).to.equal('k');
      expect(read.json['spec']?.['node_sets']?.['workers']?.['size']).to.equal(9);
    });

    it('private callers write status and finalizers; a spec in state FAILED is locked', async () => {
      const { id } = await order();
      const failed = await admin('PATCH', `${PRIVATE}/clusters/${id}`, {
        metadata: { finalizers: ['bench'] },
        status: { state: 'CLUSTER_STATE_FAILED' },
      });
      expect(failed.status, failed.text).to.equal(200);
      expect(failed.json['metadata']?.['finalizers']).to.deep.equal(['bench']);
      expect(failed.json['status']).to.deep.equal({ state: 'CLUSTER_STATE_FAILED' });
      const locked = await patch(id, { spec: { ssh_public_key: 'x' } });
      expect(locked.status).to.equal(400);
      expect(locked.json['message']).to.equal(
        'cannot update cluster spec when cluster state is CLUSTER_STATE_FAILED',
      );
      expect((await patch(id, { metadata: { labels: { a: 'b' } } })).status).to.equal(200);
    });
  });

  describe('delete', () => {
    it('answers {} and is gone before dispatch; the name is free again', async () => {
      const { id, name: wanted } = await order();
      const reply = await user('DELETE', `${CLUSTERS}/${id}`);
      expect(reply.status).to.equal(200);
      expect(reply.text).to.equal('{}');
      for (const verb of ['GET', 'DELETE', 'PATCH']) {
        const after = await user(verb, `${CLUSTERS}/${id}`, verb === 'PATCH' ? {} : undefined);
        expect(after.status, verb).to.equal(404);
        expect(after.json).to.deep.equal({ code: 5, message: `object with identifier '${id}' not found` });
      }
      const again = await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL });
      expect(again.status, again.text).to.equal(200);
    });

    it('stays readable with a deletion time while finalizers hold it', async () => {
      const { id } = await order();
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: ['bench'] } });
      for (let i = 0; i < 2; i += 1) expect((await user('DELETE', `${CLUSTERS}/${id}`)).text).to.equal('{}');
      const read = await user('GET', `${CLUSTERS}/${id}`);
      expect(read.json['metadata']?.['deletion_timestamp']).to.match(/Z$/);
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, { metadata: { finalizers: [] } });
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(404);
    });
  });

  describe("another tenant's cluster", () => {
    it('is absent for every verb, word for word as an unknown id', async () => {
      const { id } = await order();
      const unknown = '01a1fdbf-0000-7000-8000-000000000000';
      for (const [verb, suffix, body] of [
        ['GET', '', undefined],
        ['PATCH', '', { metadata: { labels: { a: 'b' } } }],
        ['PATCH', '', { spec: { ssh_public_key: 'x' } }],
        ['DELETE', '', undefined],
        ['GET', '/kubeconfig', undefined],
        ['GET', '/password', undefined],
        ['GET', '/timeline', undefined],
      ] as const) {
        const foreign = await other(verb, `${CLUSTERS}/${id}${suffix}`, body);
        const absent = await other(verb, `${CLUSTERS}/${unknown}${suffix}`, body);
        expect(foreign.status, `${verb} ${suffix}`).to.equal(404);
        expect(foreign.text.replaceAll(id, 'ID')).to.equal(absent.text.replaceAll(unknown, 'ID'));
      }
      const listed = await other('GET', CLUSTERS);
      expect(listed.text).not.to.contain(id);
    });
  });

  it('GET …/timeline tells what happened, oldest first', async () => {
    const { id } = await order();
    await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { a: 'b' } } });
    const position = (
      await user('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size: 4 } } } })
    ).headers.get('x-ledger-position');
    const reply = await user('GET', `${CLUSTERS}/${id}/timeline`, undefined, {
      'x-ledger-min-position': position ?? '',
    });
    expect(reply.status).to.equal(200);
    const items = itemsOf(reply);
    expect(items.map((item) => item['type'])).to.deep.equal([
      'ClusterOrdered',
      'ClusterLabelled',
      'NodeSetResized',
    ]);
    expect(items[0]?.['position']).to.match(/^memory\.\d+$/);
    expect(items[2]?.['data']).to.include({ name: 'workers', from: 3, to: 4 });
    const page = await user(
      'GET',
      `${CLUSTERS}/${id}/timeline?limit=1&after=${textAt(items[0], 'position')}`,
    );
    expect(itemsOf(page)).to.deep.equal([items[1]]);
    expect((await user('GET', `${CLUSTERS}/${id}/timeline?after=elsewhere.1`)).status).to.equal(400);
    expect((await user('GET', `${CLUSTERS}/${id}/timeline?limit=-1`)).status).to.equal(400);
  });

  it('tries an order without making one (osac-wire: cluster-create-dry-run)', async () => {
    const wanted = name();
    for (const header of ['X-Dry-Run', 'Grpc-Metadata-X-Dry-Run']) {
      const body = { metadata: { name: wanted }, spec: SMALL };
      const reply = await user('POST', CLUSTERS, body, { [header]: 'true' });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json).not.to.have.any.keys('id');
      expect(reply.json['metadata']).to.have.all.keys('name', 'tenant', 'creator');
      expect(reply.json['spec']?.['template']).to.deep.equal({ id: 'osac.templates.small', name: 'small' });
      expect(reply.json['spec']?.['version']).to.have.all.keys('id', 'name');
      expect(reply.json['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 3 },
      });
      expect(reply.json['status']).to.deep.equal({});
      expect(reply.headers.get('etag')).to.equal(null);
      expect(reply.headers.get('x-ledger-position')).to.equal(null);
    }
    expect((await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL })).status).to.equal(200);
  });
});
