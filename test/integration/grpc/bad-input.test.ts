import { expect } from 'chai';
import { constants } from 'node:http2';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { SMALL_BODY_BYTES } from '../../../src/http/body.ts';
import { eventually } from '../../support/eventually.ts';
import { Code, encodeRequest, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import { callerOf, seedCatalogue, startTestService, type TestService } from '../../support/http/service.ts';
import { framed, rawGrpc, rawRequest, type RawCall, type RawReply } from '../../support/grpc/raw-client.ts';

const GET = '/osac.public.v1.Clusters/Get';
const CREATE = '/osac.public.v1.Clusters/Create';
const WATCH = '/grpc.health.v1.Health/Watch';
const MIB = 1_048_576;

describe('bad input over gRPC', () => {
  let service: TestService;
  let token: string;
  let raw: ReturnType<typeof rawGrpc>;
  let alice: GrpcCaller;

  before(async () => {
    service = await startTestService({ grpc: { keepalive: { leastBetweenMs: 10_000, forgiven: 2 } } });
    const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    token = await service.token({ user: 'alice', tenants: ['t1'], roles: ['tenant-admin'] });
    alice = grpcCaller(service.grpcAddress, token);
  });
  beforeEach(() => {
    raw = rawGrpc(service.grpcAddress);
  });
  afterEach(() => raw.close());
  after(async () => {
    alice.close();
    await service.close();
  });

  const send = (call: RawCall): Promise<RawReply> =>
    raw.call({ ...call, headers: { authorization: `Bearer ${token}`, ...call.headers } });
  const expectStatus = (reply: RawReply, code: number, message?: string): void => {
    const told = decodeURIComponent(reply.headers['grpc-message'] ?? '');
    expect(reply.headers['grpc-status'], told).to.equal(String(code));
    if (message !== undefined) expect(told).to.equal(message);
  };
  const stillServes = async (): Promise<void> => {
    expect((await alice.call(GET, { id: 'nope' })).code).to.equal(Code.NOT_FOUND);
  };

  describe('frames', () => {
    it('none, or half of one', async () => {
      expectStatus(await send({}), Code.INVALID_ARGUMENT, 'the request has no message');
      const cut = 'the message ends before the length that it announces';
      expectStatus(await send({ body: Buffer.from([0, 0]) }), Code.INVALID_ARGUMENT, cut);
      expectStatus(await send({ body: framed(Buffer.alloc(3), { length: 9 }) }), Code.INVALID_ARGUMENT, cut);
    });

    it('larger than 4 MiB: refused as it is announced, in the words of the library', async () => {
      const body = framed(Buffer.alloc(8), { length: 5_000_046 });
      expectStatus(
        await send({ body, open: true }),
        Code.RESOURCE_EXHAUSTED,
        'Received message larger than max (5000046 vs 4194304)',
      );
    });

    it('larger than an object may be', async () => {
      const request = encodeRequest(CREATE, {
        object: { metadata: { name: 'large', annotations: { big: 'x'.repeat(3 * MIB) } } },
      });
      const reply = await send({ path: CREATE, body: framed(request) });
      expectStatus(reply, Code.INVALID_ARGUMENT, 'the request message is larger than 294912 bytes');
      expect(reply.headers['x-ledger-reason']).to.equal('BODY_TOO_LARGE');
    });

    it('large ones are not read from strangers', async () => {
      const begun = framed(Buffer.alloc(SMALL_BODY_BYTES), { length: MIB });
      expectStatus(await raw.call({ body: begun, open: true }), Code.UNAUTHENTICATED);
    });

    it('compressed ones that are large are not unpacked for strangers', async () => {
      const headers = { 'grpc-encoding': 'gzip' };
      const large = framed(gzipSync(Buffer.alloc(MIB)), { flags: 1 });
      expectStatus(await raw.call({ body: large, headers }), Code.UNAUTHENTICATED);
      const small = framed(gzipSync(encodeRequest(GET, { id: 'nope' })), { flags: 1 });
      expectStatus(await raw.call({ body: small, headers }), Code.UNAUTHENTICATED);
    });

    it('with unknown flags, or compressed without a name that the library knows', async () => {
      const message = encodeRequest(GET, { id: 'nope' });
      expectStatus(await send({ body: framed(message, { flags: 2 }) }), Code.INVALID_ARGUMENT);
      expectStatus(await send({ body: framed(message, { flags: 1 }) }), Code.INVALID_ARGUMENT);
      const headers = { 'grpc-encoding': 'snappy' };
      const unknown = await send({ body: framed(message, { flags: 1 }), headers });
      expectStatus(unknown, Code.UNIMPLEMENTED);
      expect(unknown.headers['grpc-accept-encoding']).to.equal('identity,deflate,gzip');
    });

    it('compressed ones are read, bombs and garbage are not', async () => {
      const headers = { 'grpc-encoding': 'gzip' };
      const good = framed(gzipSync(encodeRequest(GET, { id: 'nope' })), { flags: 1 });
      expectStatus(await send({ body: good, headers }), Code.NOT_FOUND);
      const bomb = framed(gzipSync(Buffer.alloc(64 * MIB)), { flags: 1 });
      expectStatus(await send({ body: bomb, headers }), Code.RESOURCE_EXHAUSTED);
      const garbage = framed(Buffer.from('no gzip'), { flags: 1 });
      expectStatus(await send({ body: garbage, headers }), Code.INVALID_ARGUMENT);
    });
  });

  describe('messages', () => {
    const ID = 0x0a;
    it('cut off, of other types, and with texts that are no UTF-8', async () => {
      for (const message of [[ID, 5, 0x61], [0x08], [ID, 2, 0xc3, 0x28], [0xff, 0xff]])
        expectStatus(await send({ body: framed(Buffer.from(message)) }), Code.INVALID_ARGUMENT);
    });

    it('unknown fields are ignored, the last of two wins', async () => {
      const unknown = [0xfa, 0x3f, 1, 0x78];
      const twice = [ID, 1, 0x61, ID, 1, 0x62, ...unknown];
      expectStatus(
        await send({ body: framed(Buffer.from(twice)) }),
        Code.NOT_FOUND,
        "object with identifier 'b' not found",
      );
    });

    it('an Any of a type that nobody knows', async () => {
      // object { spec { template_parameters { "x": Any { type_url: "type.googleapis.com/no.Such" } } } }
      const field = (number: number, content: Uint8Array): Buffer =>
        Buffer.concat([Buffer.from([(number << 3) | 2, content.byteLength]), content]);
      const any = field(1, Buffer.from('type.googleapis.com/no.Such'));
      const spec = await specFields();
      const entry = Buffer.concat([field(1, Buffer.from('x')), field(2, any)]);
      const object = field(spec.object, field(spec.spec, field(spec.parameters, entry)));
      const reply = await send({ path: CREATE, body: framed(object) });
      expectStatus(reply, Code.INVALID_ARGUMENT);
      expect(decodeURIComponent(reply.headers['grpc-message'] ?? '')).to.contain(
        "type 'no.Such' is not known",
      );
    });
  });

  describe('metadata', () => {
    const body = framed(encodeRequest(GET, { id: 'nope' }));
    it('10,000 entries end the stream, not the service', async () => {
      const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'v']));
      const reply = await send({ body, headers: many }).catch(() => undefined);
      expect(reply?.headers['grpc-status']).to.equal(undefined);
      await stillServes();
    });

    it('binary values are taken and left alone', async () => {
      expectStatus(await send({ body, headers: { 'x-own-bin': 'AAECAw' } }), Code.NOT_FOUND);
    });

    it('two tokens are refused', async () => {
      const [host = '', port = ''] = service.grpcAddress.split(':');
      const socket = connect(Number(port), host);
      socket.write(
        rawRequest(GET, [
          ['x-request-id', 'two-tokens'],
          ['authorization', `Bearer ${token}`],
          ['authorization', 'Bearer other'],
        ]),
      );
      const line = (): object | undefined =>
        service.logger.lines.find(
          ({ fields }) => 'correlationId' in fields && fields['correlationId'] === 'two-tokens',
        )?.fields;
      await eventually('it is answered', () => line() !== undefined);
      expect(line()).to.include({ route: GET, status: 401 });
      expect(service.rejections.at(-1)?.message).to.equal(
        "expected at most one 'authorization' header, but received 2",
      );
      socket.destroy();
    });

    it('deadlines: none left, ten years, and no deadline at all', async () => {
      const deadline = async (value: string): Promise<RawReply> =>
        send({ body, headers: { 'grpc-timeout': value } });
      expectStatus(await deadline('0S'), Code.DEADLINE_EXCEEDED);
      expectStatus(await deadline('1n'), Code.DEADLINE_EXCEEDED);
      expectStatus(await deadline('87600H'), Code.NOT_FOUND);
      for (const wrong of ['soon', '123456789S', '5', '-1S'])
        expectStatus(await deadline(wrong), Code.INVALID_ARGUMENT);
    });
  });

  describe('what is no call', () => {
    it('another content type, another verb', async () => {
      for (const type of ['text/plain', 'application/json5', 'application/grpc+json'])
        expect((await send({ headers: { 'content-type': type } })).headers[':status'], type).to.equal('415');
      expect((await send({ headers: { ':method': 'GET' } })).headers[':status']).to.equal('405');
    });

    it('HTTP/1.1 and noise on the port', async () => {
      const [host = '', port = ''] = service.grpcAddress.split(':');
      const answer = (first: string): Promise<string> =>
        new Promise((resolve) => {
          const socket = connect(Number(port), host, () => socket.write(first));
          let text = '';
          socket.on('data', (part) => (text += String(part))).on('close', () => resolve(text));
        });
      expect(await answer('GET / HTTP/1.1\r\nhost: x\r\n\r\n')).to.match(/^HTTP\/1\.1 505 /);
      expect(await answer('\x16\x03\x01 hello')).to.match(/^HTTP\/1\.1 505 /);
      await stillServes();
    });

    it('calls that are reset while they are answered', async () => {
      const errors = (): number => service.logger.lines.filter(({ level }) => level === 'error').length;
      const before = errors();
      const resets = Array.from(
        { length: 200 },
        (_, i) =>
          new Promise<void>((resolve) => {
            const stream = raw.session.request({
              ':method': 'POST',
              ':path': GET,
              'content-type': ['application/grpc', 'application/grpc-web', 'application/json'][i % 3] ?? '',
              authorization: `Bearer ${token}`,
            });
            stream.on('error', () => undefined).on('close', resolve);
            stream.end(framed(encodeRequest(GET, { id: 'nope' })));
            setImmediate(() => stream.close(constants.NGHTTP2_CANCEL));
          }),
      );
      await Promise.all(resets);
      await stillServes();
      expect(errors()).to.equal(before);
    });

    it('a flood of resets', async () => {
      for (let i = 0; i < 3_000; i += 1) {
        if (raw.session.closed || raw.session.destroyed) break;
        const stream = raw.session.request({
          ':method': 'POST',
          ':path': GET,
          'content-type': 'application/grpc',
        });
        stream.on('error', () => undefined);
        stream.close(constants.NGHTTP2_CANCEL);
      }
      await eventually('other connections are served', async () => {
        await stillServes();
        return true;
      });
    });
  });

  it('a flood of pings ends the connection and says why', async () => {
    let told: { code: number; text: string } | undefined;
    raw.session.on('goaway', (code, _last, data) => {
      told = { code, text: String(data) };
    });
    // What was sent on a stream that stays open has left: it excuses nothing later.
    const watch = raw.session.request({
      ':method': 'POST',
      ':path': WATCH,
      'content-type': 'application/grpc',
    });
    watch.on('error', () => undefined).end(framed(Buffer.alloc(0)));
    await new Promise((resolve) => watch.once('data', resolve));
    await send({ body: framed(encodeRequest(GET, { id: 'nope' })) });
    for (let i = 0; i < 5 && !raw.session.destroyed; i += 1)
      await new Promise<void>((resolve) => {
        if (!raw.session.ping(() => resolve())) resolve();
      });
    await eventually('it is told', () => told !== undefined);
    expect(told).to.deep.equal({ code: constants.NGHTTP2_ENHANCE_YOUR_CALM, text: 'too_many_pings' });
  });
});

/** Numbers of the fields on the way to a parameter of a template. */
const specFields = async () => {
  const { methodAt } = await import('../../support/grpc/caller.ts');
  const object = methodAt(CREATE).input.fields.find(({ name }) => name === 'object');
  const spec = object?.message?.fields.find(({ name }) => name === 'spec');
  const parameters = spec?.message?.fields.find(({ name }) => name === 'template_parameters');
  if (object === undefined || spec === undefined || parameters === undefined)
    throw new Error('other messages');
  return { object: object.number, spec: spec.number, parameters: parameters.number };
};
