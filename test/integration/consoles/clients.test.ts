import { randomUUID } from 'node:crypto';
import { PassThrough } from 'node:stream';
import { fromBinary } from '@bufbuild/protobuf';
import type { Client } from '@grpc/grpc-js';
import { expect } from 'chai';
import { HttpBodySchema } from '../../../src/gen/google/api/httpbody_pb.ts';
import { JsonWebKeySet } from '../../../src/gen/osac/public/v1/json_web_key_set_pb.ts';
import { startMachine } from '../../support/consoles/machine.ts';
import { startCli } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { Code, grpcCaller, type GrpcCaller } from '../../support/grpc/caller.ts';
import { openGrpcConsole } from '../../support/grpc/console-client.ts';
import { grpcClient } from '../../support/grpc/watch-client.ts';
import { networkStory, type NetworkStory } from '../../support/hubs/network-story.ts';
import { PRIVATE, textAt } from '../../support/http/service.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

const ALICE = { sub: 'alice', preferred_username: 'alice', organization: ['t1'] };
const SESSIONS = '/osac.public.v1.ConsoleSessions/Create';

/** A machine's console by each client but a page: gRPC, and the command line. */
describe('clients of a console', function () {
  this.timeout(120_000);
  let whole: WholeService;
  let people: NetworkStory;
  let machine: string;
  let access: Awaited<ReturnType<WholeService['access']>>;
  let alice: GrpcCaller;
  let client: Client;
  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
    machine = await startMachine(people.admin, people.user, 'vm1');
    access = await whole.access(ALICE);
    alice = grpcCaller(access.grpc, access.token);
    client = grpcClient(access.grpc);
  });
  after(async () => {
    alice?.close();
    client?.close();
    await whole?.dispose();
  });

  const session = (more: object = {}): object => ({
    object: {
      resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
      resource_id: machine,
      type: 'CONSOLE_TYPE_SERIAL',
      client_id: randomUUID(),
      ...more,
    },
  });
  const ticket = async (more: object = {}): Promise<string> => {
    const reply = await alice.call(SESSIONS, session(more));
    expect(reply.code, reply.message).to.equal(Code.OK);
    expect(Date.parse(textAt(reply.json, 'object', 'expires_at'))).to.be.greaterThan(Date.now());
    return textAt(reply.json, 'object', 'ticket');
  };

  it('talks over gRPC with a ticket that it got over gRPC, once', async () => {
    const once = await ticket();
    const console = openGrpcConsole(client, once);
    await console.connected();
    console.call.write(Buffer.from('echo over gRPC\r'));
    await eventually('the answer', () => console.shown().includes('\r\nover gRPC\r\n'));
    console.call.end();
    expect((await console.ended()).code).to.equal(Code.OK);
    expect(console.states).to.deep.equal(['CONNECTED', 'DISCONNECTED the client left']);
    const again = await openGrpcConsole(client, once).ended();
    expect(again).to.include({ code: Code.UNAUTHENTICATED, details: 'invalid ticket: it was used before' });
    const opened = (await whole.log()).findLast(({ type }) => type === 'ComputeInstanceConsoleOpened');
    expect(opened?.metadata['actor']).to.include({ via: 'grpc' });
  });

  it('replaces its own former connection, and finds that of another in use', async () => {
    const own = randomUUID();
    const first = openGrpcConsole(client, await ticket({ client_id: own }));
    await first.connected();
    const other = await openGrpcConsole(client, await ticket()).ended();
    expect(other).to.include({
      code: Code.FAILED_PRECONDITION,
      details: 'console session already active',
    });
    const second = openGrpcConsole(client, await ticket({ client_id: own }));
    await second.connected();
    await first.ended();
    expect(first.states.at(-1)).to.equal('DISCONNECTED the same client connected again');
    second.call.cancel();
    await second.ended();
  });

  it('ends over gRPC with the token that asked for the ticket', async () => {
    // Of the five seconds that clocks may differ by, two are left.
    const brief = await whole.access({ ...ALICE, exp: Math.floor(Date.now() / 1000) - 3 });
    const caller = grpcCaller(brief.grpc, brief.token);
    const reply = await caller.call(SESSIONS, session());
    caller.close();
    const console = openGrpcConsole(client, textAt(reply.json, 'object', 'ticket'));
    await console.connected();
    expect(await console.ended()).to.include({
      code: Code.UNAUTHENTICATED,
      details: 'the token that asked for the ticket has expired',
    });
  });

  for (const [what, more, code, message] of [
    ['a host', { resource_type: 'CONSOLE_RESOURCE_TYPE_HOST' }, Code.UNIMPLEMENTED, /_HOST/],
    ['nothing', { resource_id: '' }, Code.INVALID_ARGUMENT, /resource_id/],
    ['no such machine', { resource_id: 'nope' }, Code.NOT_FOUND, /"nope": object with identifier 'nope'/],
  ] as const)
    it(`is refused a session of ${what}`, async () => {
      const reply = await alice.call(SESSIONS, session(more));
      expect(reply.code).to.equal(code);
      expect(reply.message).to.match(message);
    });

  it('is told the keys of tickets, whoever asks, as REST tells them', async () => {
    const stranger = grpcClient(access.grpc);
    const bytes = await new Promise<Buffer>((resolve, reject) => {
      stranger.makeUnaryRequest(
        '/osac.public.v1.JsonWebKeySet/Get',
        () => Buffer.alloc(0),
        (reply) => reply,
        {},
        (error, reply) => (error === null ? resolve(reply as Buffer) : reject(error)),
      );
    });
    stranger.close();
    const { contentType, data } = fromBinary(HttpBodySchema, bytes);
    expect(JsonWebKeySet.method.get.output.typeName).to.equal(HttpBodySchema.typeName);
    expect(contentType).to.equal('application/json');
    const rest = await (await fetch(`${access.url}/.well-known/jwks.json`)).json();
    expect(JSON.parse(Buffer.from(data).toString())).to.deep.equal(rest);
  });

  it('is a terminal of ledgerctl, and a pipe', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    let shown = '';
    output.on('data', (bytes: Buffer) => (shown += bytes.toString()));
    const argv = ['console', 'serial', 'vm1'];
    const terminal = startCli(access, argv, '', undefined, { input, output, setRaw: () => undefined });
    await eventually(
      () => `the prompt: ${terminal.said.err}`,
      () => shown.includes('# '),
    );
    input.write('echo in a terminal\r');
    await eventually('the answer', () => shown.includes('\r\nin a terminal\r\n'));
    input.write('\x1d');
    expect(await terminal.ended, terminal.said.err).to.equal(0);
    const piped = { input: new PassThrough(), output: new PassThrough() };
    let printed = '';
    piped.output.on('data', (bytes: Buffer) => (printed += bytes.toString()));
    const pipe = startCli(access, [...argv, '--linger', '1s'], '', undefined, piped);
    piped.input.end('echo through a pipe\r');
    expect(await pipe.ended, pipe.said.err).to.equal(0);
    expect(printed).to.include('\r\nthrough a pipe\r\n');
  });

  it('is told that a machine that stopped has no console', async () => {
    const console = openGrpcConsole(client, await ticket());
    await console.connected();
    const late = await ticket();
    const stopped = startCli(access, ['stop', 'vm1']);
    expect(await stopped.ended, stopped.said.err).to.equal(0);
    expect((await console.ended()).code).to.equal(Code.OK);
    expect(console.states.at(-1)).to.equal('DISCONNECTED the machine does not run any more');
    await people.shows(`${PRIVATE}/compute_instances/${machine}`, 'STOPPED');
    const none = await openGrpcConsole(client, late).ended();
    expect(none.code, none.details).to.equal(Code.FAILED_PRECONDITION);
    const refused = startCli(access, ['console', 'vm1'], '', undefined, {
      input: new PassThrough(),
      output: new PassThrough(),
    });
    expect(await refused.ended).to.equal(1);
    expect(refused.said.err).to.include('is not running (state: ');
  });
});
