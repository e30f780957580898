import { once } from 'node:events';
import { constants, connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { Code, encodeRequest, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import { framed, HTTP2_HELLO, rawGrpc } from '../../support/grpc/raw-client.ts';
import { COLLECTING, isAsBefore, memoryOf } from '../../support/service/memory.ts';
import { createStack, E2E_STORE, type Stack } from '../../support/service/stack.ts';

const GET = '/osac.public.v1.Clusters/Get';
const MIB = 1_048_576;

/** More of it than a client sends by mistake: memory stays bounded, others are served, the log stays silent. */
describe('floods over gRPC', function () {
  this.timeout(300_000);
  let stack: Stack;
  let token: string;
  let alice: GrpcCaller;

  before(async () => {
    stack = await createStack(E2E_STORE, { LEDGER_ROLES: 'api', LEDGER_LOG_LEVEL: 'warn' });
    // None of this is about rates.
    const unlimited = { LEDGER_RATE_LIMIT_TENANT: '0', LEDGER_RATE_LIMIT_ADDRESS: '0' };
    await stack.start(unlimited, { nodeOptions: COLLECTING });
    token = await stack.token({ tenant: 'acme', user: 'alice' });
    alice = grpcCaller(address(), token);
  });
  after(async () => {
    alice.close();
    await stack.dispose();
  });
  afterEach(() => {
    expect(stack.service().log.filter((line) => /"level":"(error|fatal)"/.test(line))).to.deep.equal([]);
  });

  const address = (): string => stack.service().grpc ?? '';
  const request = framed(encodeRequest(GET, { id: 'nope' }));
  const authorization = (): string => `Bearer ${token}`;
  const isServed = async (): Promise<void> => {
    const reply = await alice.call(GET, { id: 'nope' });
    expect(reply.code, reply.message).to.equal(Code.NOT_FOUND);
  };

  /** One round to be as large as it gets, then `rounds` of them; somebody else is served all the while. */
  const flooded = async (rounds: number, flood: () => Promise<void>): Promise<void> => {
    await flood();
    const before = await memoryOf(stack);
    for (let i = 0; i < rounds; i += 1) {
      let over = false;
      const flooding = flood().finally(() => (over = true));
      do await isServed();
      while (!over);
      await flooding;
    }
    await isAsBefore(stack, before);
  };

  it('of calls that are reset as soon as they are sent', () =>
    flooded(20, async () => {
      const session = connectHttp2(`http://${address()}`).on('error', () => undefined);
      await once(session, 'connect');
      for (let i = 0; i < 1_000 && !session.closed && !session.destroyed; i += 1) {
        const headers = { ':method': 'POST', ':path': GET, 'content-type': 'application/grpc' };
        const stream = session.request({ ...headers, authorization: authorization() });
        stream.on('error', () => undefined).end(request);
        stream.close(constants.NGHTTP2_CANCEL);
        if (i % 100 === 99) await new Promise(setImmediate);
      }
      session.destroy();
    }));

  it('of calls with 10,000 metadata entries', () =>
    flooded(20, async () => {
      const raw = rawGrpc(address());
      const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, 'v']));
      const reply = await raw.call({ body: request, headers: { authorization: authorization(), ...many } });
      expect(reply.headers['grpc-status']).to.equal(undefined);
      raw.close();
    }));

  it('of messages that are large once they are unpacked', () => {
    const bomb = framed(gzipSync(Buffer.alloc(256 * MIB)), { flags: 1 });
    return flooded(5, async () => {
      const raw = rawGrpc(address());
      const headers = { authorization: authorization(), 'grpc-encoding': 'gzip' };
      const replies = await Promise.all(Array.from({ length: 20 }, () => raw.call({ body: bomb, headers })));
      const codes = replies.map((reply) => Number(reply.headers['grpc-status']));
      expect(codes).to.include(Code.RESOURCE_EXHAUSTED);
      // Beyond the memory that all bodies may take, none is unpacked.
      for (const code of codes) expect(code).to.be.oneOf([Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE]);
      raw.close();
    });
  });

  it('of 1,000 idle connections, half of which say that they speak HTTP/2', async () => {
    const [host = '', port = ''] = address().split(':');
    const before = await memoryOf(stack);
    const sockets: Socket[] = [];
    for (let i = 0; i < 1_000; i += 1) {
      const socket = connect(Number(port), host).on('error', () => undefined);
      sockets.push(socket);
      await once(socket, 'connect');
      if (i % 2 === 0) socket.write(HTTP2_HELLO);
    }
    for (let i = 0; i < 20; i += 1) {
      const own = grpcCaller(address(), token, { 'grpc.use_local_subchannel_pool': 1 });
      expect((await own.call(GET, { id: 'nope' })).code).to.equal(Code.NOT_FOUND);
      own.close();
    }
    expect((await memoryOf(stack)).residentMiB - before.residentMiB).to.be.lessThan(100);
    for (const socket of sockets) socket.destroy();
    await isAsBefore(stack, before);
  });
});
