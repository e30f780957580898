import { fromBinary } from '@bufbuild/protobuf';
import { expect } from 'chai';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { ClustersListResponseSchema } from '../../../src/gen/osac/public/v1/clusters_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { Code, encodeRequest, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { framed, HTTP2_HELLO, rawGrpc } from '../../support/grpc/raw-client.ts';

const CLUSTERS = '/osac.public.v1.Clusters';
const HOST_TYPES = '/osac.private.v1.HostTypes';
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

describe('flow of gRPC', function () {
  this.timeout(60_000);
  let service: TestService;
  let admin: GrpcCaller;
  let token: string;
  before(async () => {
    service = await startTestService();
    token = await service.token({ user: 'root', admin: true });
    await seedCatalogue(callerOf(service, token));
    admin = grpcCaller(service.grpcAddress, token);
  });
  after(async () => {
    admin.close();
    await service.close();
  });

  /** A call that waits for what is not stored, for as long as the service lets it. */
  const future = (): Readonly<Record<string, string>> => ({
    'x-ledger-min-position': service.positions.format('9999999999999999'),
  });
  const get = framed(encodeRequest(`${CLUSTERS}/Get`, { id: 'nope' }));
  const lineOf = async (requestId: string): Promise<object> => {
    const find = (): object | undefined =>
      service.logger.lines.find(
        ({ fields }) =>
          'correlationId' in fields && fields['correlationId'] === requestId && 'status' in fields,
      )?.fields;
    await eventually('the call is logged', () => find() !== undefined);
    return find() ?? {};
  };

  /** What was sent before on the connection has come: a later call is answered. */
  const isReceived = async (raw: ReturnType<typeof rawGrpc>): Promise<void> => {
    const path = '/grpc.health.v1.Health/Check';
    expect((await raw.call({ path, body: framed(Buffer.alloc(0)) })).headers['grpc-status']).to.equal('0');
  };

  const storeLarge = async (prefix: string, objects: number): Promise<void> => {
    const big = 'x'.repeat(250_000);
    for (let i = 0; i < objects; i += 1) {
      const made = await admin.call(`${HOST_TYPES}/Create`, {
        object: { metadata: { name: `${prefix}-${i}`, annotations: { big } } },
      });
      expect(made.code, made.message).to.equal(Code.OK);
    }
  };

  it('a page ends at the last whole object that the message has room for', async () => {
    const big = 'x'.repeat(250_000);
    const objects = 20;
    await storeLarge('big', objects);
    const filter = 'this.metadata.name.startsWith("big-")';
    const whole = await admin.call(`${HOST_TYPES}/List`, { filter });
    expect(whole.code, whole.message).to.equal(Code.OK);
    const items = whole.json['items'] as unknown as readonly Json[];
    expect(whole.json).to.include({ size: items.length, total: objects });
    expect(items.length).to.equal(Math.floor(MAX_MESSAGE_BYTES / 250_300));
    for (const item of items) expect(item).to.have.nested.property('metadata.annotations.big', big);
    const rest = await admin.call(`${HOST_TYPES}/List`, { filter, offset: items.length });
    expect(rest.json).to.include({ size: objects - items.length, total: objects });
  });

  it('a caller who measures the line with pings gets all of a large answer', async () => {
    await storeLarge('measured', 12);
    const raw = rawGrpc(service.grpcAddress);
    let bytes = 0;
    let pings = 0;
    try {
      const filter = 'this.metadata.name.startsWith("measured-")';
      const stream = raw.session.request({
        ':method': 'POST',
        ':path': `${HOST_TYPES}/List`,
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: `Bearer ${token}`,
      });
      let status: unknown;
      stream
        .on('trailers', (trailers) => (status = trailers['grpc-status']))
        .on('error', () => undefined)
        .on('data', (part: Buffer) => {
          bytes += part.length;
          if (bytes < (pings + 1) * 65_536 || raw.session.destroyed) return;
          pings += 1;
          raw.session.ping(() => undefined);
        });
      stream.end(framed(encodeRequest(`${HOST_TYPES}/List`, { filter })));
      await new Promise((resolve) => stream.once('close', resolve));
      expect(status).to.equal('0');
      expect(bytes).to.be.greaterThan(3_000_000);
      expect(pings).to.be.greaterThan(40);
      await isReceived(raw);
    } finally {
      raw.close();
    }
  });

  it('large answers are compressed for who accepts it', async () => {
    for (let i = 0; i < 40; i += 1)
      await admin.call(`${CLUSTERS}/Create`, {
        object: {
          metadata: { name: `zip-${i}`, tenant: 't1', annotations: { note: 'n'.repeat(500) } },
          spec: { template: { id: 'osac.templates.small' } },
        },
      });
    const raw = rawGrpc(service.grpcAddress);
    try {
      const body = framed(encodeRequest(`${CLUSTERS}/List`, {}));
      const list = (more: object) =>
        raw.call({
          path: `${CLUSTERS}/List`,
          body,
          headers: { authorization: `Bearer ${token}`, ...more },
        });
      const plain = await list({});
      const zipped = await list({ 'grpc-accept-encoding': 'identity, gzip' });
      expect(plain.headers['grpc-encoding']).to.equal('identity');
      expect(zipped.headers['grpc-encoding']).to.equal('gzip');
      expect(zipped.body.length).to.be.lessThan(plain.body.length / 4);
      expect([plain.body[0], zipped.body[0]]).to.deep.equal([0, 1]);
      const open = (bytes: Buffer) => fromBinary(ClustersListResponseSchema, bytes);
      expect(open(gunzipSync(zipped.body.subarray(5)))).to.deep.equal(open(plain.body.subarray(5)));
    } finally {
      raw.close();
    }
  });

  it('a deadline ends the work', async () => {
    const raw = rawGrpc(service.grpcAddress);
    try {
      const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'too-late', 'grpc-timeout': '50m' };
      const reply = await raw.call({ body: get, headers: { ...headers, ...future() } });
      expect(reply.headers['grpc-status']).to.equal(String(Code.DEADLINE_EXCEEDED));
      expect(await lineOf('too-late')).to.include({ status: 504 });
    } finally {
      raw.close();
    }
  });

  it('a cancelled call is no fault', async () => {
    const errors = (): number => service.logger.lines.filter(({ level }) => level === 'error').length;
    const before = errors();
    const raw = rawGrpc(service.grpcAddress);
    const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'gone' };
    const call = raw.call({ body: get, headers: { ...headers, ...future() } });
    await isReceived(raw);
    raw.close();
    await call;
    expect(await lineOf('gone')).to.include({ status: 499 });
    expect(errors()).to.equal(before);
  });

  it('a call that is over leaves nothing on its stream, which Node keeps for a while', async () => {
    const streams: ServerHttp2Stream[] = [];
    const created = (told: unknown): void =>
      void streams.push((told as { readonly stream: ServerHttp2Stream }).stream);
    subscribe('http2.server.stream.created', created);
    const raw = rawGrpc(service.grpcAddress);
    try {
      for (const path of [`${CLUSTERS}/Get`, `${CLUSTERS}/List`, '/nobody'])
        await raw.call({ path, headers: { authorization: `Bearer ${token}` }, body: get });
    } finally {
      unsubscribe('http2.server.stream.created', created);
      raw.close();
    }
    expect(streams).to.have.length(3);
    await eventually('the streams are closed', () => streams.every((stream) => stream.closed));
    /** Of Node's own there is one for listeners that come and go. */
    const left = (stream: ServerHttp2Stream): unknown[] =>
      stream.eventNames().filter((name) => name !== 'error' && name !== 'removeListener');
    await eventually('nothing of the calls is left', () => streams.every((one) => left(one).length === 0));
  });

  it('a rate that is used up says when to call again', async () => {
    const own = await startTestService({ admission: { rateLimitAdmin: 2 } });
    const caller = grpcCaller(own.grpcAddress, await own.token({ user: 'root', admin: true }));
    try {
      const replies = [];
      for (let i = 0; i < 3; i += 1) replies.push(await caller.call(`${CLUSTERS}/Get`, { id: 'nope' }));
      const [first, , third] = replies;
      expect(first?.code).to.equal(Code.NOT_FOUND);
      expect(first?.metadata('ratelimit')).to.match(/^"admin";r=1;/);
      expect([third?.code, third?.metadata('x-ledger-reason')]).to.deep.equal([
        Code.RESOURCE_EXHAUSTED,
        'RATE_LIMITED',
      ]);
      expect(third?.details.map((detail) => detail['@type'])).to.include(
        'type.googleapis.com/google.rpc.RetryInfo',
      );
    } finally {
      caller.close();
      await own.close();
    }
  });

  describe('of one who does not read', () => {
    const PLAIN = [
      ['application/grpc', framed],
      ['application/grpc-web', framed],
      ['application/proto', Buffer.from],
    ] as const;
    const GET = `${HOST_TYPES}/Get`;
    const WATCH = '/osac.private.v1.Events/Watch';
    let own: TestService;
    let bearer: string;
    let writer: GrpcCaller;
    let id: string;
    let raw: ReturnType<typeof rawGrpc>;
    const start = async (options: Parameters<typeof startTestService>[0]): Promise<void> => {
      own = await startTestService(options);
      bearer = await own.token({ user: 'root', admin: true });
      writer = grpcCaller(own.grpcAddress, bearer);
      id = await makeLarge('big');
    };
    beforeEach(() => {
      raw = rawGrpc(own.grpcAddress);
    });
    afterEach(() => raw.close());
    const stop = async (): Promise<void> => {
      writer.close();
      await own.close();
    };
    /** More than the window of a stream. */
    const makeLarge = async (name: string): Promise<string> => {
      const object = { metadata: { name, annotations: { big: 'x'.repeat(250_000) } } };
      const made = await writer.call(`${HOST_TYPES}/Create`, { object });
      expect(made.code, made.message).to.equal(Code.OK);
      return textAt(made.json, 'object', 'id');
    };
    /** A call whose answer is never read. */
    const unread = (path: string, type: string, body: Uint8Array) => {
      const headers = { ':method': 'POST', ':path': path, 'content-type': type, 'x-request-id': type };
      const stream = raw.session.request({ ...headers, authorization: `Bearer ${bearer}` });
      stream.on('error', () => undefined).end(body);
      return stream;
    };
    const isOver = (path: string, type: string): boolean =>
      own.logger.lines.some(
        ({ fields }) =>
          'correlationId' in fields &&
          fields['correlationId'] === type &&
          'route' in fields &&
          fields['route'] === path,
      );

    describe('what waits', () => {
      before(() => start({ admission: { unread: { ofAll: 1, ofOne: 1 } } }));
      after(() => stop());

      for (const [type, asBody] of PLAIN)
        it(`is bounded in ${type}`, async () => {
          const read = (): ReturnType<GrpcCaller['call']> => writer.call(GET, { id: 'nope' });
          unread(GET, type, asBody(encodeRequest(GET, { id })));
          await eventually('reads are refused', async () => {
            return (await read()).metadata('x-ledger-reason') === 'ANSWERS_NOT_READ';
          });
          raw.close();
          await eventually('reads are served again', async () => (await read()).code === Code.NOT_FOUND);
        });
    });

    describe('the reader', () => {
      before(() => start({ slowReaderMs: 300, watch: { stallMs: 100, sweepMs: 20 } }));
      after(() => stop());

      for (const [type, asBody] of PLAIN)
        it(`is cut off in ${type}`, async () => {
          unread(GET, type, asBody(encodeRequest(GET, { id })));
          await eventually('it is cut off', () => isOver(GET, type));
        });

      for (const type of ['application/grpc', 'application/grpc-web', 'application/connect+proto'])
        it(`is cut off in a watch of ${type}`, async () => {
          const stream = unread(WATCH, type, framed(Buffer.alloc(0)));
          await new Promise((resolve) => stream.once('response', resolve));
          await makeLarge(`seen-by-${type.slice('application/'.length).replace('+', '-')}`);
          await eventually('it is cut off', () => isOver(WATCH, type));
        });
    });
  });

  it('an idle connection is kept for who answers pings, and ended for who does not', async () => {
    const own = await startTestService({ grpc: { keepalive: { idleMs: 40, answerMs: 1_000 } } });
    const raw = rawGrpc(own.grpcAddress);
    const [host = '', port = ''] = own.grpcAddress.split(':');
    const mute = connect(Number(port), host);
    try {
      let pings = 0;
      raw.session.on('ping', () => (pings += 1));
      // Whatever comes after that is not answered.
      mute.write(HTTP2_HELLO);
      mute.on('data', () => undefined).on('error', () => undefined);
      await new Promise((resolve) => mute.once('close', resolve));
      await eventually('it was asked twice', () => pings >= 2);
      expect(raw.session.destroyed).to.equal(false);
    } finally {
      raw.close();
      mute.destroy();
      await own.close();
    }
  });

  it('a stop tells callers to leave and lets running calls end', async () => {
    const own = await startTestService();
    const raw = rawGrpc(own.grpcAddress);
    try {
      const bearer = { authorization: `Bearer ${await own.token({ user: 'root', admin: true })}` };
      let left = false;
      raw.session.on('goaway', () => (left = true));
      const position = own.positions.format('9999999999999999');
      const running = raw.call({ body: get, headers: { ...bearer, 'x-ledger-min-position': position } });
      await isReceived(raw);
      const closing = own.grpc.close(30_000);
      await eventually('it is told', () => left);
      // Its wait for the position is over after five seconds: it is answered, not cut.
      expect((await running).headers['grpc-status']).to.equal(String(Code.UNAVAILABLE));
      await closing;
    } finally {
      raw.close();
      await own.close();
    }
  });
});
