import { Code, ConnectError, createClient, type Interceptor, type Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { createRegistry } from '@bufbuild/protobuf';
import { file_google_protobuf_wrappers } from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import {
  Health,
  HealthCheckResponse_ServingStatus as Serving,
} from '../../../src/gen/grpc/health/v1/health_pb.ts';
import { Clusters } from '../../../src/gen/osac/public/v1/clusters_pb.ts';
import { callerOf, seedCatalogue, startTestService, type TestService } from '../../support/http-service.ts';
import { rawGrpc } from '../../support/raw-grpc.ts';

/** What parameters may hold: the JSON form of an Any needs to know. */
const registry = createRegistry(file_google_protobuf_wrappers);
const ORIGIN = 'https://console.example';

describe('other protocols of the gRPC port', () => {
  let service: TestService;
  let token: string;
  before(async () => {
    service = await startTestService({ cors: { origins: [ORIGIN] } });
    await seedCatalogue(callerOf(service, await service.token({ user: 'root', admin: true })));
    token = await service.token({ user: 'alice', tenants: ['t1'], roles: ['tenant-admin'] });
  });
  after(() => service.close());

  const withToken: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    return next(request);
  };
  type Make = (interceptors: Interceptor[]) => Transport;
  const base = () => ({ baseUrl: `http://${service.grpcAddress}`, httpVersion: '2' as const });
  const transports: Readonly<Record<string, Make>> = {
    gRPC: (interceptors) => createGrpcTransport({ baseUrl: base().baseUrl, interceptors }),
    'gRPC-Web': (interceptors) => createGrpcWebTransport({ ...base(), interceptors, useBinaryFormat: true }),
    'Connect in JSON': (interceptors) =>
      createConnectTransport({ ...base(), interceptors, useBinaryFormat: false, jsonOptions: { registry } }),
    'Connect in protobuf': (interceptors) =>
      createConnectTransport({ ...base(), interceptors, useBinaryFormat: true }),
  };

  let serial = 0;
  for (const [protocol, make] of Object.entries(transports))
    describe(protocol, () => {
      it('creates, reads and refuses as gRPC does', async () => {
        const clusters = createClient(Clusters, make([withToken]));
        const name = `of-${(serial += 1)}`;
        const spec = { template: { id: 'osac.templates.small' } };
        const headers = new Headers();
        const made = await clusters.create(
          { object: { metadata: { name }, spec } },
          { onHeader: (got) => got.forEach((value, key) => headers.set(key, value)) },
        );
        expect(made.object?.metadata?.name).to.equal(name);
        expect(headers.get('etag')).to.match(/^"cluster-\d+"$/);
        expect(headers.get('x-ledger-position')).to.be.a('string');
        const read = await clusters.get({ id: made.object?.id ?? '' });
        expect(read.object).to.deep.equal(made.object);
        const failure = await clusters.get({ id: 'nope' }).then(
          () => undefined,
          (error: unknown) => ConnectError.from(error),
        );
        expect(failure?.code).to.equal(Code.NotFound);
        expect(failure?.rawMessage).to.equal("object with identifier 'nope' not found");
        expect(failure?.details).to.have.lengthOf(1);
      });

      it('asks for a token', async () => {
        const clusters = createClient(Clusters, make([]));
        const failure = await clusters.list({}).catch((error: unknown) => ConnectError.from(error));
        expect(failure).to.be.instanceOf(ConnectError).with.property('code', Code.Unauthenticated);
      });

      it('streams', async () => {
        const health = createClient(Health, make([]));
        for await (const { status } of health.watch({})) {
          expect(status).to.equal(Serving.SERVING);
          break;
        }
      });
    });

  it('pages of other origins are let in by the setting alone', async () => {
    const raw = rawGrpc(service.grpcAddress);
    try {
      const preflight = (origin: string) =>
        raw.call({
          headers: {
            ':method': 'OPTIONS',
            origin,
            'access-control-request-method': 'POST',
            'access-control-request-headers': 'content-type,x-grpc-web,connect-protocol-version',
          },
        });
      const known = await preflight(ORIGIN);
      expect(known.headers).to.include({
        ':status': '200',
        'access-control-allow-origin': ORIGIN,
        'access-control-allow-headers': 'content-type,x-grpc-web,connect-protocol-version',
      });
      expect((await preflight('https://elsewhere.example')).headers).not.to.have.property(
        'access-control-allow-origin',
      );
      const answer = await raw.call({ headers: { origin: ORIGIN, 'content-type': 'application/grpc-web' } });
      expect(answer.headers['access-control-expose-headers']).to.match(/Grpc-Status.*X-Ledger-Reason/);
    } finally {
      raw.close();
    }
  });
});
