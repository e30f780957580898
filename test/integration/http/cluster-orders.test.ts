import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from './ordering.ts';

/** What makes a cluster. */
describe('clusters over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let name: Ordering['name'];
  let order: Ordering['order'];

  before(async () => {
    ({ service, admin, user, other, name, order } = await startOrdering());
  });
  after(() => service.close());

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
        status: { state: 'CLUSTER_STATE_PROGRESSING' },
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
      expect(reply.json['status']).to.deep.equal({ state: 'CLUSTER_STATE_PROGRESSING' });
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

  it('lie in `shared` only where an admin says so', async () => {
    const total = async () => (await admin('GET', `${PRIVATE}/clusters?limit=0`)).json['total'];
    const before = await total();
    for (const surface of [PRIVATE, PUBLIC])
      for (const headers of [{}, { 'x-dry-run': 'true' }])
        for (const metadata of [{ name: name() }, { name: name(), tenant: '' }]) {
          const reply = await admin('POST', `${surface}/clusters`, { metadata, spec: SMALL }, headers);
          expect(reply.status, reply.text).to.equal(400);
          expect(reply.json['message']).to.equal(
            "field 'metadata.tenant' is required: name the tenant that it is for",
          );
        }
    expect(await total()).to.equal(before);
    const shared = { metadata: { name: name(), tenant: 'shared' }, spec: SMALL };
    expect((await admin('POST', `${PRIVATE}/clusters`, shared)).status).to.equal(200);
  });

  it('tries an order without making one', async () => {
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
      expect(reply.json['status']).to.deep.equal({ state: 'CLUSTER_STATE_PROGRESSING' });
      expect(reply.headers.get('etag')).to.equal(null);
      expect(reply.headers.get('x-ledger-position')).to.equal(null);
    }
    expect((await user('POST', CLUSTERS, { metadata: { name: wanted }, spec: SMALL })).status).to.equal(200);
  });
});
