import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { openConsole, type ConsoleClient } from '../../support/consoles/client.ts';
import { eventually } from '../../support/eventually.ts';
import { networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';
import { PRIVATE, PUBLIC, textAt, type Caller } from '../../support/http/service.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

const MACHINES = `${PUBLIC}/compute_instances`;
const SESSIONS = `${PUBLIC}/console_sessions`;
const QUICK = { simulation: 'factor=0.05' };
/** As the connection is named where it is refused. */
const METHOD = '/osac.public.v1.ConsoleProxy/Connect';
const machineAt = (id: string): string => `${PRIVATE}/compute_instances/${id}`;

/** Consoles of machines on a simulated hub, over the WebSocket of the whole service. */
describe('consoles of machines', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let url: string;
  let subnet: string;
  let machine: string;
  let serial = 0;
  const open: ConsoleClient[] = [];

  const make = async (collection: string, spec: object): Promise<string> => {
    const metadata = { name: `m-${(serial += 1)}`, annotations: QUICK };
    return textAt(ok(await people.user('POST', `${PUBLIC}/${collection}`, { metadata, spec })), 'id');
  };
  const order = async (): Promise<string> => {
    const id = await make('compute_instances', {
      template: { id: 'osac.templates.vm' },
      network_attachments: [{ subnet: { id: subnet } }],
    });
    await people.shows(machineAt(id), 'RUNNING');
    return id;
  };
  const asked = (id: string, more: object = {}): JsonObject => ({
    resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
    resource_id: id,
    type: 'CONSOLE_TYPE_SERIAL',
    client_id: randomUUID(),
    ...more,
  });
  const ticketFor = async (id: string, more: object = {}, caller: Caller = people.user): Promise<string> =>
    textAt(ok(await caller('POST', SESSIONS, asked(id, more))), 'ticket');
  const connect = (ticket: string | undefined, how: object = {}): ConsoleClient => {
    const client = openConsole(url, ticket, how);
    open.push(client);
    return client;
  };
  const consoleEvents = async (id: string): Promise<JsonObject[]> =>
    (await whole.log())
      .filter(({ stream, type }) => stream === `computeInstance-${id}` && type.includes('Console'))
      .map(({ type, data, metadata }) => ({ type, ...data, by: objectAt(metadata, 'actor') }));
  const closings = async (id: string): Promise<string[]> =>
    (await consoleEvents(id)).flatMap((event) =>
      event['type'] === 'ComputeInstanceConsoleClosed' ? [stringAt(event, 'reason')] : [],
    );

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
    url = (await whole.access({ sub: 'x' })).url;
    ok(
      await people.admin('POST', `${PRIVATE}/network_classes`, {
        title: 'Networks',
        implementation_strategy: 'phys_net',
        fabric_manager: 'netris',
        is_default: true,
        capabilities: { supports_ipv4: true },
      }),
    );
    const network = await make('virtual_networks', { ipv4_cidr: '10.0.0.0/16' });
    await people.shows(`${PRIVATE}/virtual_networks/${network}`, 'READY');
    subnet = await make('subnets', { virtual_network: { id: network }, ipv4_cidr: '10.0.1.0/24' });
    await people.shows(`${PRIVATE}/subnets/${subnet}`, 'READY');
    machine = await order();
  });
  afterEach(async () => {
    for (const client of open.splice(0)) client.socket.terminate();
    await eventually('no console is open', async () => {
      const states = await consoleEvents(machine);
      return (
        states.filter((event) => stringAt(event, 'type').endsWith('Opened')).length * 2 === states.length
      );
    });
  });
  after(() => whole.dispose());

  it('answer at a serial prompt, and leave two events without a word of what was said', async () => {
    const before = ok(await people.user('GET', `${MACHINES}/${machine}`)) as JsonObject;
    const client = connect(await ticketFor(machine));
    await client.hears('# ');
    client.type('echo only-between-us\r');
    await client.hears('\r\nonly-between-us\r\n');
    client.type('uname\r');
    await client.hears('Linux ');
    client.close();
    expect(await client.ended).to.include({ code: 1005 });
    await eventually('the session is closed', async () => (await closings(machine)).length === 1);
    const [opened, closed] = await consoleEvents(machine);
    expect(opened).to.include({ type: 'ComputeInstanceConsoleOpened', console: 'serial' });
    expect(closed).to.include({ type: 'ComputeInstanceConsoleClosed', console: 'serial', reason: 'left' });
    expect(closed?.['session']).to.equal(opened?.['session']);
    for (const event of [opened, closed]) {
      expect(objectAt(event ?? {}, 'by')).to.include({ via: 'websocket' });
      expect(stringAt(objectAt(event ?? {}, 'by'), 'subjectId')).to.equal(opened?.['subjectId']);
    }
    expect(JSON.stringify(await whole.log())).not.to.include('only-between-us');
    let timeline = '';
    await eventually(
      () => `the timeline tells it: ${timeline}`,
      async () => {
        timeline = (await people.user('GET', `${MACHINES}/${machine}/timeline`)).text;
        return timeline.includes('Its serial console was closed after');
      },
    );
    expect(timeline).to.include('Its serial console was opened.');
    const after = ok(await people.user('GET', `${MACHINES}/${machine}`)) as JsonObject;
    expect(after).to.deep.equal(before);
  });

  it('show a screen to a viewer', async () => {
    const client = connect(await ticketFor(machine, { type: 'CONSOLE_TYPE_VNC' }));
    await client.hears('RFB 003.008\n');
    client.type('RFB 003.008\n');
    client.type(Uint8Array.of(1));
    client.type(Uint8Array.of(1));
    // Greeting, security types, result, then width and height.
    await eventually('the screen is told', () => client.bytes().length > 12 + 2 + 4 + 24);
    const init = client.bytes().subarray(18);
    expect([init.readUInt16BE(0), init.readUInt16BE(2)]).to.deep.equal([64, 48]);
    const told = client.bytes().length;
    client.type(Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 64, 0, 48));
    await eventually('it is drawn', () => client.bytes().length === told + 16 + 64 * 48 * 4);
  });

  it('take a ticket once, also from a cookie, and none that is late, foreign or absent', async () => {
    const ticket = await ticketFor(machine);
    const client = connect(ticket, { cookie: true });
    await client.hears('# ');
    client.close();
    await client.ended;
    const again = await connect(ticket).ended;
    expect(again).to.deep.equal({ code: 3000, reason: 'invalid ticket: it was used before' });
    for (const wrong of [undefined, 'x', `${ticket.slice(0, -4)}AAAA`]) {
      const { code } = await connect(wrong).ended;
      expect(code).to.equal(3000);
    }
    const bearer = (await whole.access({ sub: 'alice', preferred_username: 'alice', organization: ['t1'] }))
      .token;
    expect(await connect(bearer).ended).to.include({ code: 3000 });
  });

  it('belong to one client; the same client takes over, and each end has its code', async () => {
    const client_id = randomUUID();
    const first = connect(await ticketFor(machine, { client_id }));
    await first.hears('# ');
    const other = await connect(await ticketFor(machine)).ended;
    expect(other).to.deep.equal({ code: 4409, reason: 'console session already active' });
    // The other type is another console.
    const screen = connect(await ticketFor(machine, { type: 'CONSOLE_TYPE_VNC' }));
    await screen.hears('RFB');
    const second = connect(await ticketFor(machine, { client_id }));
    expect(await first.ended).to.include({ code: 4409 });
    await second.hears('# ');
    expect((await closings(machine)).at(-1)).to.equal('replaced');
  });

  it('are refused in the order and words of OSAC', async () => {
    const id = '0193b7d0-0000-7000-8000-000000000000';
    for (const [body, status, text] of [
      [
        asked(id, { resource_type: 'CONSOLE_RESOURCE_TYPE_HOST', type: undefined }),
        501,
        'CONSOLE_RESOURCE_TYPE_HOST',
      ],
      [asked('', { type: undefined }), 400, "field 'resource_id' is required"],
      [asked(id, { type: undefined, client_id: 'x' }), 400, "field 'type' must be one of"],
      [asked(id, { client_id: 'x' }), 400, "field 'client_id' must be a UUID"],
      [
        asked(id),
        404,
        `failed to get compute instance \\"${id}\\": object with identifier '${id}' not found`,
      ],
    ] as const) {
      const reply = await people.user('POST', SESSIONS, body);
      expect(reply.status, reply.text).to.equal(status);
      expect(reply.text).to.include(text);
    }
    expect((await people.user('GET', SESSIONS)).status).to.equal(501);
    expect((await whole.stranger()('POST', SESSIONS, asked(machine))).status).to.equal(401);
    const foreign = await whole.caller({ sub: 'bob', preferred_username: 'bob', organization: ['t2'] });
    ok(await people.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't2' } }));
    expect((await foreign('POST', SESSIONS, asked(machine))).status).to.equal(404);
    const reader = await whole.caller({
      sub: 'eve',
      preferred_username: 'eve',
      organization: ['t1'],
      realm_access: { roles: ['tenant-reader'] },
    });
    expect((await reader('GET', `${MACHINES}/${machine}`)).status).to.equal(200);
    const denied = await reader('POST', SESSIONS, asked(machine));
    expect(denied.status).to.equal(403);
    expect(denied.text).to.include("role 'tenant-reader' has no right 'ConsoleSessions/Create'");
    const tried = ok(
      await people.user('POST', SESSIONS, asked(machine), { 'x-dry-run': 'true' }),
    ) as JsonObject;
    expect(tried).not.to.have.property('ticket');
  });

  it('are signed by a published key that nobody reads from disk', async () => {
    const session = ok(await people.user('POST', SESSIONS, asked(machine))) as JsonObject;
    const ticket = stringAt(session, 'ticket');
    const keys = ok(await whole.stranger()('GET', '/.well-known/jwks.json')) as unknown as JSONWebKeySet;
    const { payload, protectedHeader } = await jwtVerify(ticket, createLocalJWKSet(keys));
    expect(protectedHeader.alg).to.equal('ES256');
    expect(payload).to.include({ id: machine, console: 'serial' });
    expect(Date.parse(stringAt(session, 'expires_at'))).to.equal((payload.exp ?? 0) * 1000);
    expect(JSON.stringify(keys)).not.to.include('"d"');
    const folder = join(whole.dataDir, 'secrets', 'console');
    for (const name of await readdir(folder)) {
      expect((await stat(join(folder, name))).mode & 0o077).to.equal(0);
      const file = await readFile(join(folder, name), 'utf8');
      expect(file).not.to.include('PRIVATE');
    }
    expect(JSON.stringify(await whole.log())).not.to.include(ticket);
  });

  it('end when the machine stops, and when it is deleted', async () => {
    const id = await order();
    const client = connect(await ticketFor(id));
    await client.hears('# ');
    const late = await ticketFor(id);
    ok(await people.user('PATCH', `${MACHINES}/${id}`, { spec: { run_strategy: 'Halted' } }));
    expect(await connect(late).ended).to.deep.include({ code: 1008 });
    const ending = await people.user('POST', SESSIONS, asked(id));
    expect(ending.status, ending.text).to.equal(400);
    expect(await client.ended).to.include({ code: 1001, reason: 'the machine does not run any more' });
    await people.shows(machineAt(id), 'STOPPED');
    const stopped = await people.user('POST', SESSIONS, asked(id));
    expect(stopped.status, stopped.text).to.equal(400);
    expect(stopped.text).to.include(`is not running (state: COMPUTE_INSTANCE_STATE_STOPPED)`);
    ok(await people.user('PATCH', `${MACHINES}/${id}`, { spec: { run_strategy: 'Always' } }));
    await people.shows(machineAt(id), 'RUNNING');
    const last = connect(await ticketFor(id));
    await last.hears('# ');
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    expect(await last.ended).to.include({ code: 1001, reason: 'the machine is being deleted' });
    await people.isGone(machineAt(id));
    expect(await closings(id)).to.deep.equal(['stopped', 'deleted']);
  });

  it('end with the token that asked for the ticket', async () => {
    const alice = { sub: 'alice', preferred_username: 'alice', organization: ['t1'] };
    // Of the five seconds that clocks may differ by, two are left.
    const user = await whole.caller({ ...alice, exp: Math.floor(Date.now() / 1000) - 3 });
    const client = connect(await ticketFor(machine, {}, user));
    await client.hears('# ');
    expect(await client.ended).to.deep.equal({
      code: 3000,
      reason: 'the token that asked for the ticket has expired',
    });
    await eventually('it is recorded', async () => (await closings(machine)).at(-1) === 'unauthorized');
  });

  it('a hundred at once on one machine: one of them has it', async () => {
    const tickets = await Promise.all(Array.from({ length: 100 }, () => ticketFor(machine)));
    const clients = tickets.map((ticket) => connect(ticket));
    const active = clients.map((client) => client.ended.then(({ code }) => code));
    let refused = 0;
    for (const code of active) void code.then((got) => (refused += got === 4409 ? 1 : 0));
    await eventually(
      () => `99 are refused: ${refused}`,
      () => refused === 99,
    );
    await eventually('one has it', () => clients.some((client) => client.said().includes('# ')));
  });

  it('a client that types on hears why its session ended', async () => {
    const client_id = randomUUID();
    const first = connect(await ticketFor(machine, { client_id }));
    await first.hears('# ');
    const next = await ticketFor(machine, { client_id });
    let typing = true;
    const typed = (async () => {
      while (typing) {
        for (let n = 0; n < 50; n += 1) first.type('x'.repeat(2_000));
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    })();
    const second = connect(next);
    const end = await first.ended;
    typing = false;
    await typed;
    expect(end).to.deep.equal({ code: 4409, reason: 'the same client connected again' });
    await second.hears('# ');
  });

  it('a client that stops reading holds the machine back, and leaves nothing behind', async () => {
    const client = connect(await ticketFor(machine));
    await client.hears('# ');
    client.socket.pause();
    const before = process.memoryUsage.rss();
    const line = `${'x'.repeat(900)}\r`;
    for (let sent = 0; sent < 30_000 && client.socket.bufferedAmount < 4_000_000; sent += 1)
      client.type(line);
    // What the service does not take waits with its sender.
    await eventually('it is held back', () => client.socket.bufferedAmount > 1_000_000);
    expect(process.memoryUsage.rss() - before).to.be.below(100 * 1_048_576);
    client.socket.terminate();
    await eventually('it is closed', async () => (await closings(machine)).at(-1) === 'left');
  });

  it('survive no restart: clients are told, the log says so, and a used ticket stays used', async () => {
    const ticket = await ticketFor(machine);
    const client = connect(ticket);
    await client.hears('# ');
    await whole.stop();
    expect(await client.ended).to.include({ code: 1012 });
    expect((await closings(machine)).at(-1)).to.equal('shutdown');
    await whole.start();
    url = (await whole.access({ sub: 'x' })).url;
    expect(await connect(ticket).ended).to.include({ code: 3000 });
    const next = connect(await ticketFor(machine));
    await next.hears('# ');
  });

  it('pages of origins that the setting leaves out do not connect', async () => {
    const other = await createWholeService({ LEDGER_CORS_ORIGINS: 'https://console.example.com' });
    try {
      await other.start();
      const at = (await other.access({ sub: 'x' })).url;
      const refused = openConsole(at, 'x', { headers: { origin: 'https://evil.example' } });
      const error = await refused.ended.then(
        () => undefined,
        (cause: Error) => cause,
      );
      expect(error?.message).to.include('403');
      for (const origin of ['https://console.example.com', at])
        expect(await openConsole(at, 'x', { headers: { origin } }).ended).to.include({ code: 3000 });
      const told = async (): Promise<string[]> =>
        (await other.log())
          .filter(({ type, data }) => type === 'RequestRefused' && stringAt(data, 'command') === METHOD)
          .map(({ data }) => stringAt(data, 'outcome'));
      let outcomes: string[] = [];
      await eventually(
        () => `each is recorded as a refused call: ${outcomes.join()}`,
        async () => (outcomes = await told()).length === 3,
      );
      expect(outcomes).to.deep.equal(['denied', 'unauthenticated', 'unauthenticated']);
    } finally {
      await other.dispose();
    }
  });

  it('no page of another origin uses a ticket of a cookie, unless the setting names it', async () => {
    const ticket = await ticketFor(machine);
    const headers = { origin: 'https://evil.example' };
    const foreign = connect(ticket, { cookie: true, headers });
    const refused = await foreign.ended.catch((error: Error) => error);
    expect(refused).to.be.instanceOf(Error).with.property('message').that.includes('403');
    for (const how of [{ headers }, { cookie: true, headers: { origin: url } }, { cookie: true }]) {
      const client = connect(await ticketFor(machine), how);
      await client.hears('# ');
      client.close();
      await client.ended;
    }
  });

  it('are described', async () => {
    const document = ok(await whole.stranger()('GET', '/openapi.json')) as JsonObject;
    expect(objectAt(objectAt(document, 'paths'), SESSIONS)).to.have.property('post');
    expect(listAt(document, 'tags').map((tag) => stringAt(tag, 'name'))).to.include('public.ConsoleSessions');
  });
});
