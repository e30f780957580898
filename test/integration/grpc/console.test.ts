import { ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import type { Client } from '@grpc/grpc-js';
import { expect } from 'chai';
import {
  ConsoleRefused,
  type ConnectConsole,
  type ConsoleCall,
  type ConsoleTransport,
} from '../../../src/app/consoles/console-line.ts';
import type { ConsoleEnd } from '../../../src/domain/consoles.ts';
import { ConsoleProxy } from '../../../src/gen/osac/public/v1/console_proxy_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { Code } from '../../support/grpc/caller.ts';
import { openGrpcConsole } from '../../support/grpc/console-client.ts';
import { grpcClient } from '../../support/grpc/watch-client.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

type Play = (transport: ConsoleTransport, call: ConsoleCall, ticket: string) => Promise<ConsoleEnd>;

/** The codec of consoles: bytes both ways and how they end. What a ticket is worth and a machine says is played. */
describe('consoles over gRPC', function () {
  this.timeout(60_000);
  let service: TestService;
  let client: Client;
  let play: Play;
  const connectConsole: ConnectConsole = (ticket, transport, call) => play(transport, call, ticket);
  before(async () => {
    service = await startTestService({ grpc: { connectConsole } });
    client = grpcClient(service.grpcAddress);
  });
  after(async () => {
    client.close();
    await service.close();
  });

  const echo: Play = async (transport) => {
    transport.connected();
    for await (const bytes of transport.incoming) await transport.send(bytes);
    return 'left';
  };
  const open = (options = {}) => openGrpcConsole(client, 'ticket', options);
  const until = eventually;

  it('carries bytes both ways once it is connected, and ends with the client', async () => {
    const seen: unknown[] = [];
    play = (transport, call, ticket) => {
      seen.push(ticket, call.via, call.remoteAddress);
      return echo(transport, call, ticket);
    };
    const console = open();
    await console.connected();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
    console.call.write(bytes);
    await until('the echo', () => console.shown() === bytes.toString('latin1'));
    console.call.end();
    expect((await console.ended()).code).to.equal(Code.OK);
    expect(console.states).to.deep.equal(['CONNECTED', 'DISCONNECTED the client left']);
    expect(seen).to.deep.equal(['ticket', 'grpc', '127.0.0.1']);
  });

  it("asks for a ticket in OSAC's words", async () => {
    play = echo;
    const none = openGrpcConsole(client, undefined);
    expect(await none.ended()).to.include({
      code: Code.UNAUTHENTICATED,
      details: 'missing authorization metadata',
    });
  });

  for (const [refusal, code] of [
    ['invalid-ticket', Code.UNAUTHENTICATED],
    ['active', Code.FAILED_PRECONDITION],
    ['not-running', Code.FAILED_PRECONDITION],
    ['unreachable', Code.UNAVAILABLE],
    ['too-many', Code.RESOURCE_EXHAUSTED],
  ] as const)
    it(`answers ${Code[code]} where it is refused as ${refusal}`, async () => {
      play = () => Promise.reject(new ConsoleRefused(refusal, `no: ${refusal}`));
      const console = open();
      expect(await console.ended()).to.include({ code, details: `no: ${refusal}` });
      expect(console.states).to.deep.equal([]);
    });

  for (const [end, code, state] of [
    ['stopped', Code.OK, 'DISCONNECTED the machine does not run any more'],
    ['limit', Code.OK, 'DISCONNECTED the time limit of a console session was reached'],
    ['replaced', Code.OK, 'DISCONNECTED the same client connected again'],
    ['lost', Code.UNAVAILABLE, 'ERROR the connection to the machine was lost'],
    ['shutdown', Code.UNAVAILABLE, 'ERROR the service is stopping: connect again'],
  ] as const)
    it(`tells that it ended as ${end}, after all that the machine said`, async () => {
      play = async (transport) => {
        transport.connected();
        for (let n = 0; n < 40; n += 1) await transport.send(Buffer.alloc(32_768, 'x'));
        return end;
      };
      const console = open();
      expect((await console.ended()).code).to.equal(code);
      expect(console.received()).to.equal(40 * 32_768);
      expect(console.states).to.deep.equal(['CONNECTED', state]);
    });

  it('takes no more from a machine than its client reads, and goes on once it does', async () => {
    const pieces = 400;
    let sent = 0;
    play = async (transport) => {
      transport.connected();
      for (; sent < pieces; sent += 1) await transport.send(Buffer.alloc(32_768, 'x'));
      return 'closed';
    };
    const console = open();
    await console.connected();
    console.call.pause();
    const settled = await unchanged(() => sent);
    expect(settled).to.be.lessThan(pieces / 2);
    console.call.resume();
    await console.ended();
    expect(console.received()).to.equal(pieces * 32_768);
  });

  it('takes no more from a client than the machine reads', async () => {
    const read = Promise.withResolvers<void>();
    let taken = 0;
    play = async (transport) => {
      transport.connected();
      await read.promise;
      for await (const bytes of transport.incoming) taken += bytes.byteLength;
      return 'left';
    };
    const console = open();
    await console.connected();
    let accepted = 0;
    const piece = Buffer.alloc(32_768, 'x');
    for (let n = 0; n < 400; n += 1) console.call.write(piece, () => (accepted += 1));
    console.call.end();
    const settled = await unchanged(() => accepted);
    expect(settled).to.be.lessThan(200);
    read.resolve();
    await console.ended();
    expect(taken).to.equal(400 * 32_768);
  });

  it('ends with its deadline, and when the client goes away', async () => {
    let ends = 0;
    play = async (transport) => {
      transport.connected();
      try {
        for await (const _ of transport.incoming);
      } catch {
        // It broke, as far as this side was told.
      }
      ends += 1;
      return 'left';
    };
    const late = open({ deadline: Date.now() + 300 });
    expect((await late.ended()).code).to.equal(Code.DEADLINE_EXCEEDED);
    await until('the first end', () => ends === 1);
    const gone = open();
    await gone.connected();
    gone.call.cancel();
    await until('the second end', () => ends === 2);
  });

  it('fails what is sent to a client that has gone, and leaves nothing behind', async () => {
    const failed = Promise.withResolvers<unknown>();
    play = async (transport) => {
      transport.connected();
      try {
        for (;;) await transport.send(Buffer.alloc(65_536));
      } catch (error) {
        failed.resolve(error);
        return 'left';
      }
    };
    const console = open();
    await console.connected();
    console.call.pause();
    console.call.cancel();
    expect(await failed.promise).to.be.an('error');
  });

  for (const [name, createTransport] of [
    ['Connect', createConnectTransport],
    ['gRPC-Web', createGrpcWebTransport],
  ] as const)
    it(`is no method of ${name}, which pages cannot talk both ways by`, async () => {
      const transport = createTransport({ baseUrl: `http://${service.grpcAddress}`, httpVersion: '2' });
      const proxy = createClient(ConsoleProxy, transport);
      const failure = await (async () => {
        for await (const _ of proxy.connect((async function* () {})()));
      })().catch((error: unknown) => error);
      expect(ConnectError.from(failure).code).to.equal(Code.UNIMPLEMENTED);
    });

  /** The number once it has stopped growing. */
  const unchanged = async (count: () => number): Promise<number> => {
    let [before, times] = [-1, 0];
    await eventually('it stops growing', () => {
      times = count() === before ? times + 1 : 0;
      before = count();
      return times > 20;
    });
    return before;
  };
});
