import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import { Code, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import {
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http/service.ts';

const CLUSTERS = '/osac.public.v1.Clusters';
const SPEC = { template: { id: 'osac.templates.small' } };
const order = (name: string, more: object = {}): object => ({
  object: { metadata: { name }, spec: SPEC, ...more },
});

describe('gRPC', () => {
  let service: TestService;
  let admin: GrpcCaller;
  let alice: GrpcCaller;
  let nobody: GrpcCaller;
  let http: Caller;

  const looked: string[] = [];

  before(async () => {
    service = await startTestService({ lookNow: (workflow, id) => looked.push(`${workflow} ${id}`) });
    const token = await service.token({ user: 'root', admin: true });
    await seedCatalogue(callerOf(service, token));
    const ofAlice = await service.token({ user: 'alice', tenants: ['t1'], roles: ['tenant-admin'] });
    http = callerOf(service, ofAlice);
    admin = grpcCaller(service.grpcAddress, token);
    alice = grpcCaller(service.grpcAddress, ofAlice);
    nobody = grpcCaller(service.grpcAddress);
  });
  after(async () => {
    for (const caller of [admin, alice, nobody]) caller.close();
    await service.close();
  });

  const created = async (name: string): Promise<Json> => {
    const reply = await alice.call(`${CLUSTERS}/Create`, order(name));
    expect(reply.code, reply.message).to.equal(Code.OK);
    return reply.json['object'] ?? {};
  };

  describe('what the command line needs to sign in', () => {
    it('capabilities are for anybody, with any token', async () => {
      const garbage = grpcCaller(service.grpcAddress, 'garbage');
      for (const caller of [nobody, garbage]) {
        const reply = await caller.call('/osac.public.v1.Capabilities/Get');
        expect(reply.code, reply.message).to.equal(Code.OK);
        expect(reply.json).to.have.nested.property('authn.trusted_token_issuers');
      }
      garbage.close();
      const priv = '/osac.private.v1.Capabilities/Get';
      expect((await nobody.call(priv)).code).to.equal(Code.UNAUTHENTICATED);
      expect((await alice.call(priv)).code).to.equal(Code.PERMISSION_DENIED);
      expect((await admin.call(priv)).code).to.equal(Code.OK);
    });

    it('health says whether traffic may come', async () => {
      const check = '/grpc.health.v1.Health/Check';
      expect((await nobody.call(check)).json).to.deep.equal({ status: 'SERVING' });
      expect((await nobody.call(check, { service: 'osac.public.v1.Clusters' })).json).to.deep.equal({
        status: 'SERVING',
      });
      const unknown = await nobody.call(check, { service: 'nope' });
      expect([unknown.code, unknown.message]).to.deep.equal([Code.NOT_FOUND, 'unknown service']);
      const list = await nobody.call('/grpc.health.v1.Health/List');
      expect(list.json).to.have.nested.property('statuses.osac\\.public\\.v1\\.Clusters.status', 'SERVING');
    });

    it('a watch of the health tells it at once', async () => {
      const watched = await nobody.stream('/grpc.health.v1.Health/Watch', {}, () => true);
      expect(watched.answers).to.deep.equal([{ status: 'SERVING' }]);
    });
  });

  describe('objects', () => {
    it('are created, read, listed, changed and deleted; HTTP shows the same ones', async () => {
      const made = await created('whole-life');
      const id = textAt(made, 'id');
      const read = await alice.call(`${CLUSTERS}/Get`, { id });
      expect(read.json).to.deep.equal({ object: made });
      expect((await http('GET', `${PUBLIC}/clusters/${id}`)).json).to.deep.equal(made);
      const filter = 'this.metadata.name == "whole-life" || this.id == "whole-life"';
      const list = await alice.call(`${CLUSTERS}/List`, { limit: 2, filter });
      expect(list.json).to.deep.equal({ size: 1, total: 1, items: [made] });
      const request = { object: { id, metadata: { labels: { env: 'a' } } }, update_mask: 'metadata.labels' };
      const changed = await alice.call(`${CLUSTERS}/Update`, request);
      expect(changed.json).to.have.nested.property('object.metadata.labels.env', 'a');
      const deleted = await alice.call(`${CLUSTERS}/Delete`, { id });
      expect([deleted.code, deleted.json]).to.deep.equal([Code.OK, {}]);
    });

    it('of a key are the same over both protocols', async () => {
      const headers = { 'idempotency-key': 'either-way' };
      const first = await alice.call(`${CLUSTERS}/Create`, order('either-way'), { headers });
      const body = { metadata: { name: 'either-way' }, spec: SPEC };
      const second = await http('POST', `${PUBLIC}/clusters`, body, headers);
      expect(second.json).to.deep.equal(first.json['object']);
    });

    it('have ids, and requests have objects', async () => {
      for (const [method, request, message] of [
        ['Get', {}, 'identifier is mandatory'],
        ['Delete', {}, 'identifier is mandatory'],
        ['Create', {}, 'object is mandatory'],
        ['Update', {}, 'object is mandatory'],
        ['Update', { object: {} }, 'identifier is mandatory'],
      ] as const) {
        const reply = await alice.call(`${CLUSTERS}/${method}`, request);
        expect([reply.code, reply.message], method).to.deep.equal([Code.INVALID_ARGUMENT, message]);
      }
    });

    it('are signalled by admins alone, which wakes their workflows; nobody signals what is not there', async () => {
      const id = textAt(await created('signalled'), 'id');
      const signal = '/osac.private.v1.Clusters/Signal';
      expect((await admin.call(signal, { id })).code).to.equal(Code.OK);
      expect((await admin.call(signal, { id: 'nope' })).code).to.equal(Code.NOT_FOUND);
      expect((await alice.call(signal, { id })).code).to.equal(Code.PERMISSION_DENIED);
      const calm = { id: 'osac.templates.small' };
      expect((await admin.call('/osac.private.v1.ClusterTemplates/Signal', calm)).code).to.equal(Code.OK);
      expect(looked).to.deep.equal([`clusterOrder ${id}`]);
    });

    it('credentials that are not there yet are not found', async () => {
      const { id } = await created('no-credentials');
      for (const method of ['GetKubeconfig', 'GetPassword']) {
        const reply = await alice.call(`${CLUSTERS}/${method}`, { id });
        expect(reply.code, reply.message).to.equal(Code.NOT_FOUND);
        expect(reply.metadata('x-ledger-reason')).to.equal('NOT_AVAILABLE_YET');
      }
    });

    it('may be asked for as they were', async () => {
      const { id } = await created('as-it-was');
      const before = (await alice.call(`${CLUSTERS}/Get`, { id })).json;
      const at = (
        await alice.call(`${CLUSTERS}/Update`, {
          object: { id, metadata: { labels: { later: 'yes' } } },
          update_mask: 'metadata.labels',
        })
      ).metadata('x-ledger-position');
      expect(at).to.be.a('string');
      const headers = { 'x-ledger-as-of': '2000-01-01T00:00:00Z' };
      expect((await alice.call(`${CLUSTERS}/Get`, { id }, { headers })).code).to.equal(Code.NOT_FOUND);
      expect(before).not.to.have.nested.property('object.metadata.labels');
    });
  });

  describe('what goes with a call', () => {
    it('its request id, the tag of the object and the position of a write come back', async () => {
      const headers = { 'x-request-id': 'my-call-7' };
      const made = await alice.call(`${CLUSTERS}/Create`, order('tagged'), { headers });
      expect(made.metadata('x-request-id')).to.equal('my-call-7');
      expect(made.metadata('etag')).to.match(/^"cluster-\d+"$/);
      const position = made.metadata('x-ledger-position') ?? '';
      const id = textAt(made.json['object'] ?? {}, 'id');
      const after = { headers: { 'x-ledger-min-position': position } };
      expect((await alice.call(`${CLUSTERS}/Get`, { id }, after)).code).to.equal(Code.OK);
      const foreign = { headers: { 'x-ledger-min-position': 'elsewhere.0000000000000001' } };
      expect((await alice.call(`${CLUSTERS}/Get`, { id }, foreign)).code).to.equal(Code.INVALID_ARGUMENT);
    });

    it('a dry run stores nothing', async () => {
      const last = await service.store.lastPosition();
      const headers = { 'x-dry-run': 'true' };
      const tried = await alice.call(`${CLUSTERS}/Create`, order('tried'), { headers });
      expect(tried.code, tried.message).to.equal(Code.OK);
      expect(await service.store.lastPosition()).to.equal(last);
    });

    it('the log line and the metrics name the method', async () => {
      await alice.call(`${CLUSTERS}/Get`, { id: 'nope' }, { headers: { 'x-request-id': 'looked-for' } });
      await eventually('the line is written', () =>
        service.logger.lines.some(
          ({ fields }) => 'correlationId' in fields && fields['correlationId'] === 'looked-for',
        ),
      );
      const line = service.logger.lines.find(
        ({ fields }) => 'correlationId' in fields && fields['correlationId'] === 'looked-for',
      );
      expect(line?.fields).to.include({ route: `${CLUSTERS}/Get`, status: 404, tenant: 't1' });
    });
  });

  describe('refusals', () => {
    it('say what is wrong where', async () => {
      const absent = await alice.call(`${CLUSTERS}/Get`, { id: 'nope' });
      expect([absent.code, absent.message]).to.deep.equal([
        Code.NOT_FOUND,
        "object with identifier 'nope' not found",
      ]);
      expect(absent.details).to.deep.include({
        '@type': 'type.googleapis.com/google.rpc.ResourceInfo',
        resource_type: 'cluster',
        resource_name: 'nope',
      });
      const bad = await alice.call(`${CLUSTERS}/Create`, {
        object: { metadata: { name: 'bad' }, spec: { template: { id: 'nope' } } },
      });
      expect(bad.code).to.equal(Code.INVALID_ARGUMENT);
      expect(bad.details.map((detail) => detail['@type'])).to.include(
        'type.googleapis.com/google.rpc.BadRequest',
      );
    });

    it('a token is asked for, once', async () => {
      const method = `${CLUSTERS}/Get`;
      const none = await nobody.call(method, { id: 'x' });
      expect([none.code, none.message]).to.deep.equal([
        Code.UNAUTHENTICATED,
        `method '${method}' requires authentication`,
      ]);
      const basic = await nobody.call(method, { id: 'x' }, { headers: { authorization: 'Basic eDp5' } });
      expect(basic.message).to.equal("authentication scheme 'Basic' is not supported");
    });

    it('what is not offered is not implemented', async () => {
      const call = (path: string) =>
        new Promise<{ code: number; details: string }>((resolve) => {
          const encode = (): Buffer => Buffer.alloc(0);
          alice.client.makeUnaryRequest(path, encode, encode, {}, () => undefined).on('status', resolve);
        });
      const service404 = await call('/osac.public.v1.Unknowns/List');
      expect([service404.code, service404.details]).to.deep.equal([
        Code.UNIMPLEMENTED,
        'unknown service osac.public.v1.Unknowns',
      ]);
      expect((await call('/osac.public.v1.Clusters/Nope')).details).to.equal(
        'unknown method Nope for service osac.public.v1.Clusters',
      );
    });

    it('those of writes and of strangers are recorded', async () => {
      service.rejections.splice(0);
      await alice.call(`${CLUSTERS}/Delete`, { id: 'nope' });
      await nobody.call(`${CLUSTERS}/Get`, { id: 'nope' });
      expect(service.rejections.map(({ command, outcome }) => [command, outcome])).to.deep.equal([
        [`${CLUSTERS}/Delete`, 'rejected'],
        [`${CLUSTERS}/Get`, 'unauthenticated'],
      ]);
    });
  });

  describe('reflection', () => {
    it('lists every service and describes it, by both names', async () => {
      for (const name of ['v1', 'v1alpha']) {
        const listed = await nobody.reflect(name, { list_services: '' });
        const services = (
          (listed['list_services_response']?.['service'] ?? []) as unknown as readonly { name: string }[]
        ).map((each) => each.name);
        expect(services).to.include.members([
          'osac.public.v1.Clusters',
          'osac.private.v1.Hubs',
          'grpc.health.v1.Health',
          'grpc.reflection.v1.ServerReflection',
        ]);
        for (const asked of [
          { file_containing_symbol: 'osac.public.v1.Clusters.Get' },
          { file_containing_symbol: 'osac.public.v1.Cluster.metadata' },
          { file_containing_symbol: 'osac.public.v1.ClusterState' },
          { file_by_filename: 'osac/public/v1/clusters.proto' },
        ]) {
          const described = await nobody.reflect(name, asked);
          const bytes = described['file_descriptor_response']?.['file_descriptor_proto'];
          expect(bytes, JSON.stringify(asked)).to.be.an('array').with.length.greaterThan(3);
        }
        for (const asked of ['nope', 'osac.public.v1.Cluster.nope', 'osac.public.v1'])
          expect(
            await nobody.reflect(name, { file_containing_symbol: asked }),
            asked,
          ).to.have.nested.property('error_response.error_code', Code.NOT_FOUND);
      }
    });
  });
});
