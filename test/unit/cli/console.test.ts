import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { ApiError, Unreachable } from '../../../src/cli/api-client.ts';
import { createConsole, type ConsoleOptions } from '../../../src/cli/console/connect.ts';
import type { OpenSocket } from '../../../src/cli/socket.ts';
import { startConsoleService, type ConsoleService } from '../../support/cli/console-service.ts';
import { startCli } from '../../support/cli/in-process.ts';
import { eventually } from '../../support/eventually.ts';

const SOCKET = {} as OpenSocket;
const refusal = (status: number): ApiError => new ApiError('POST', '/x', status, { message: 'no' });

describe('connections to a console', () => {
  const waits: number[] = [];
  const played = (outcomes: readonly unknown[], more: Partial<ConsoleOptions> = {}) => {
    waits.length = 0;
    const tickets: string[] = [];
    const left = [...outcomes];
    const made = createConsole({
      ticket: async () => `t${tickets.length + 1}`,
      open: async (ticket) => {
        tickets.push(ticket);
        const next = left.shift();
        if (next instanceof Error) throw next;
        return SOCKET;
      },
      retrying: () => undefined,
      pause: async (ms) => void waits.push(ms),
      signal: new AbortController().signal,
      ...more,
    });
    return { made, tickets };
  };

  it('are tried six times, each with a ticket of its own, ever later', async () => {
    const away = new Unreachable('away');
    const { made, tickets } = played([away, refusal(503), refusal(429), away, refusal(500), SOCKET]);
    expect(await made.connect()).to.equal(SOCKET);
    expect(tickets).to.deep.equal(['t1', 't2', 't3', 't4', 't5', 't6']);
    expect(waits).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000]);
    const given = played(Array(7).fill(away));
    const failure = await given.made.connect().catch((error: unknown) => error);
    expect(failure).to.include({ status: 4, message: 'away' });
    expect(given.tickets).to.have.length(6);
  });

  for (const status of [400, 401, 403, 404, 409, 501])
    it(`are not tried again after a refusal by ${status}`, async () => {
      const { made, tickets } = played([refusal(status), SOCKET]);
      expect(await made.connect().catch((error: unknown) => error)).to.include({ status });
      expect(tickets).to.have.length(1);
    });

  it('are over by code 1000, lost by codes of a service in trouble', async () => {
    expect(played([]).made.assess({ code: 1000, reason: 'stopped' }, 5)).to.equal('over');
    for (const code of [1001, 1005, 1006, 1011, 1012, 1013])
      expect(played([]).made.assess({ code, reason: '' }, 5), String(code)).to.equal('lost');
    for (const [code, status] of [
      [3000, 1],
      [4409, 3],
      [1008, 1],
      [4999, 1],
    ] as const)
      expect(() => played([]).made.assess({ code, reason: 'so' }, 5))
        .to.throw(/: so$/)
        .that.includes({ status });
  });

  it('are counted as failed in a row, unless one lasted', async () => {
    const { made } = played([]);
    const lost = { code: 1006, reason: '' };
    for (let n = 1; n <= 5; n += 1) made.assess(lost, 1);
    made.assess(lost, 31_000);
    for (let n = 2; n <= 5; n += 1) made.assess(lost, 1);
    expect(() => made.assess(lost, 1))
      .to.throw('the connection was lost')
      .that.includes({ status: 4 });
  });
});

describe('ledgerctl console', function () {
  this.timeout(20_000);
  let service: ConsoleService;
  let running: ReturnType<typeof startCli> | undefined;
  let stop: AbortController;
  beforeEach(async () => {
    service = await startConsoleService();
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await running?.ended;
    running = undefined;
    service.close();
  });

  const start = (argv: readonly string[], terminal = true) => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const modes: boolean[] = [];
    const shown: Buffer[] = [];
    output.on('data', (bytes: Buffer) => shown.push(bytes));
    const streams = {
      input,
      output,
      ...(terminal ? { setRaw: (raw: boolean) => void modes.push(raw) } : {}),
    };
    running = startCli({ url: service.url, token: 't' }, ['console', ...argv], '', stop.signal, streams);
    return {
      ...running,
      input,
      modes,
      shown: () => Buffer.concat(shown).toString('latin1'),
      until: (what: string, holds: () => boolean) => eventually(() => `${what}: ${running?.said.err}`, holds),
    };
  };
  const echo = (): void =>
    service.plays((socket) => void socket.on('message', (bytes) => socket.send(bytes as Buffer)));

  it('sends keys as they are, Ctrl+C too, and shows what comes; Ctrl+] leaves', async () => {
    echo();
    const { input, shown, said, ended, modes, until } = start(['web']);
    await until('connected', () => said.err.includes('press Ctrl+] to leave'));
    expect(modes.at(-1)).to.equal(true);
    input.write(Buffer.from([0x03, 0xff, 0x00, 0x0d]));
    await until('the echo', () => shown() === '\x03\xff\x00\r');
    input.write('last\x1dlost');
    expect(await ended).to.equal(0);
    expect(modes.at(-1)).to.equal(false);
    expect(said.err).to.include('compute_instance/web').and.not.include('ticket');
    expect(service.sessions).to.have.length(1);
    expect(service.sessions[0]).to.include({ resource_id: 'vm-1', type: 'CONSOLE_TYPE_SERIAL' });
    expect(service.tickets).to.deep.equal(['Bearer ticket-1']);
  });

  it('takes input and output that are pipes, and leaves once both are silent', async () => {
    service.plays((socket) => {
      socket.on('message', (bytes) => setImmediate(() => socket.send(String(bytes as Buffer).toUpperCase())));
    });
    const { input, shown, ended, said } = start(['serial', 'web', '--linger', '1s'], false);
    input.end('uname\x1d -a\n');
    expect(await ended, said.err).to.equal(0);
    expect(shown()).to.equal('UNAME\x1d -A\n');
    expect(said.err).to.equal('');
  });

  it('shows all that came before the end, and says why it ended', async () => {
    const much = Buffer.alloc(3 * 1024 * 1024, 'x');
    service.plays((socket) => {
      for (let at = 0; at < much.length; at += 65_536) socket.send(much.subarray(at, at + 65_536));
      socket.close(1000, 'the machine was stopped');
    });
    const { shown, ended, said } = start(['web']);
    expect(await ended).to.equal(0);
    expect(shown()).to.have.length(much.length);
    expect(said.err).to.include('the console of compute_instance/web is closed: the machine was stopped');
  });

  it('connects a terminal again after a loss, with a new ticket of the same client', async () => {
    service.plays((socket) => {
      if (service.tickets.length === 1) socket.terminate();
      else socket.on('message', (bytes) => socket.send(bytes as Buffer));
    });
    const { input, shown, ended, said, until } = start(['web']);
    await until('connected again', () => said.err.split('connected to the serial').length === 3);
    expect(said.err).to.include('the connection was lost; trying again in 1 s');
    input.write('again');
    await until('the echo', () => shown() === 'again');
    input.write('\x1d');
    expect(await ended).to.equal(0);
    expect(service.tickets).to.deep.equal(['Bearer ticket-1', 'Bearer ticket-2']);
    expect(new Set(service.sessions.map(({ client_id }) => client_id)).size).to.equal(1);
  });

  it('can be left by Ctrl+C while it waits for the next try', async () => {
    service.refuses({ status: 503, body: { code: 14, message: 'the hub does not answer' } });
    const { input, ended, said, until } = start(['web']);
    await until('the wait', () => said.err.includes('the hub does not answer; trying again in 1 s'));
    input.write('\x03');
    expect(await ended).to.equal(0);
  });

  it('ends a pipe that lost its connection: bytes may be missing', async () => {
    service.plays((socket) => socket.terminate());
    const { ended, said } = start(['web'], false);
    expect(await ended).to.equal(4);
    expect(said.err).to.include('the connection was lost').and.include('bytes may be missing');
  });

  for (const [code, status, text] of [
    [3000, 1, 'the console was refused: invalid ticket'],
    [4409, 3, 'the console is in use by another connection: invalid ticket'],
  ] as const)
    it(`ends with ${status} by code ${code}`, async () => {
      service.plays((socket) => socket.close(code, 'invalid ticket'));
      const { ended, said } = start(['web']);
      expect(await ended).to.equal(status);
      expect(said.err).to.include(text);
      expect(service.tickets).to.have.length(1);
    });

  it('says why a session is refused', async () => {
    service.refuses({ status: 400, body: { code: 9, message: 'compute instance "web" is not running' } });
    const { ended, said } = start(['web']);
    expect(await ended).to.equal(1);
    expect(said.err).to.include('compute instance "web" is not running');
  });

  it('refuses the screen of a machine that does not run before it listens', async () => {
    service.refuses({ status: 400, body: { code: 9, message: 'compute instance "web" is not running' } });
    const { ended, said } = start(['vnc', 'web']);
    expect(await ended).to.equal(1);
    expect(said.out).to.equal('');
    expect(said.err).to.include('compute instance "web" is not running');
  });

  it('lets one VNC viewer after the other connect on loopback, one at a time', async () => {
    echo();
    const { said, ended, until } = start(['vnc', 'web']);
    await until('it listens', () => said.out.endsWith('\n'));
    const port = Number(/^vnc:\/\/127\.0\.0\.1:(\d+)\n$/.exec(said.out)?.[1]);
    const viewer = (): Socket => connect(port, '127.0.0.1');
    for (const text of ['RFB 003.008\n', 'once more\n']) {
      const first = viewer();
      first.write(text);
      expect(String((await once(first, 'data'))[0])).to.equal(text);
      const second = viewer();
      await once(second, 'close');
      first.end();
      await until(
        'it has left',
        () => said.err.split('the viewer has left').length === service.tickets.length + 1,
      );
    }
    expect(service.sessions.map(({ type }) => type)).to.deep.equal(['CONSOLE_TYPE_VNC', 'CONSOLE_TYPE_VNC']);
    stop.abort();
    expect(await ended).to.equal(0);
  });

  it('refuses a port that is none, and one that is in use', async () => {
    expect(await start(['vnc', 'web', '--port', '70000']).ended).to.equal(2);
    const taken = new URL(service.url).port;
    const { ended, said } = start(['vnc', 'web', '--port', taken]);
    expect(await ended).to.equal(1);
    expect(said.err).to.include('EADDRINUSE');
  });
});
