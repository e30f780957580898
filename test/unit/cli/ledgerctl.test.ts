import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createCli, runCli, urlOfAddress } from '../../../src/cli/ledgerctl.ts';
import type { CliActions, TokenRequest } from '../../../src/cli/connection.ts';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: async (request) => JSON.stringify(request),
  checkStore: async (which) => ({ events: 'file' in which ? 1 : 2, findings: [] }),
  verifyStore: unused,
  showEvent: unused,
  restoreStore: unused,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1.2.3',
};

const run = async (argv: readonly string[], more: Partial<CliActions> = {}) => {
  let out = '';
  let err = '';
  const io = { out: (text: string) => (out += text), err: (text: string) => (err += text) };
  const code = await runCli(await createCli({ ...actions, ...more }, io), argv, io);
  return { code, out, err };
};

describe('ledgerctl without a service', () => {
  let folder: string;
  let file: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-cli-'));
    file = join(folder, 'backup.sqlite');
    writeFileSync(file, 'SQLite format 3\0');
  });
  after(() => rmSync(folder, { recursive: true }));

  it('prints its version', async () => {
    expect(await run(['--version'])).to.deep.equal({ code: 0, out: '1.2.3\n', err: '' });
  });

  it('finds the service by the address that it listens at', () => {
    expect(urlOfAddress('localhost:9000')).to.equal('http://localhost:9000');
    expect(urlOfAddress('[fd00::1]:9000')).to.equal('http://[fd00::1]:9000');
    expect(urlOfAddress('localhost:9000', true)).to.equal('https://localhost:9000');
    expect(urlOfAddress(undefined, true)).to.equal('https://127.0.0.1:8001');
    // One that listens everywhere is reached here.
    expect(urlOfAddress('0.0.0.0:9000')).to.equal('http://127.0.0.1:9000');
    expect(urlOfAddress('[::]:9000')).to.equal('http://[::1]:9000');
    for (const unusable of ['127.0.0.1:0', 'nonsense', undefined])
      expect(urlOfAddress(unusable), unusable).to.equal('http://127.0.0.1:8001');
  });

  it('token says on stderr what is wrong with its arguments', async () => {
    for (const [argv, says] of [
      [['--user', 'root'], '--tenant or --admin is needed'],
      [['--user', 'root', '--admin', '--ttl', '1x'], '"1x" is not a time such as 30m or 8h'],
      [['--user', 'root', '--admin', '--ttl', '0s'], '"0s" is not a time above 0'],
      [['--user', 'root', '--admin', '--ttl', '-5m'], '"-5m" is not a time such as 30m or 8h'],
    ] as const) {
      const { code, out, err } = await run(['token', ...argv]);
      expect(err, argv.join(' ')).to.include(says);
      expect({ code, out }).to.deep.equal({ code: 2, out: '' });
    }
  });

  it('token asks for what was asked of it', async () => {
    const { out } = await run([
      'token',
      '--tenant',
      'acme',
      '--user',
      'eve',
      '--role',
      'a',
      'b',
      '--ttl',
      '2h',
    ]);
    const wanted: TokenRequest = {
      user: 'eve',
      admin: false,
      roles: ['a', 'b'],
      ttlSeconds: 7200,
      tenant: 'acme',
    };
    expect(JSON.parse(out)).to.deep.equal(wanted);
  });

  it('token puts its user into groups, and into projects by their role', async () => {
    const argv = ['token', '--tenant', 't', '--user', 'u', '--group', '/x', '--email', 'u@t.example'];
    const { out } = await run([...argv, '--project-role', 'p1=manager', 'a.b=viewer']);
    expect(JSON.parse(out)).to.deep.include({
      groups: ['/x', '/p1/system:managers', '/a.b/system:viewers'],
      email: 'u@t.example',
    });
    for (const wrong of ['p1', 'p1=owner', '=viewer', 'a/b=viewer']) {
      const refused = await run(['token', '--tenant', 't', '--user', 'u', '--project-role', wrong]);
      expect([refused.code, refused.out]).to.deep.equal([2, '']);
      expect(refused.err).to.include('p1=manager');
    }
  });

  it('token notes a role that gives no right, and makes the token all the same', async () => {
    const argv = ['token', '--tenant', 't', '--user', 'u', '--role'];
    const { code, out, err } = await run([...argv, 'tenant-admn']);
    expect(err).to.match(/^note: .*"tenant-admn".* tenant-admin, /);
    expect({ code, roles: JSON.parse(out).roles }).to.deep.equal({ code: 0, roles: ['tenant-admn'] });
    expect((await run([...argv, 'tenant-admin', 'tenant-idp-manager'])).err).to.equal('');
  });

  it('token knows every realm role that gives a right', async () => {
    const roles = ['tenant-admin', 'tenant-idp-manager', 'tenant-reader', 'auditor', 'osac-csi-driver'];
    const { out, err } = await run(['token', '--tenant', 't', '--user', 'u', '--role', ...roles]);
    expect(err).to.equal('');
    expect(JSON.parse(out)).to.deep.include({ roles });
  });

  it('a command that has no token of its own says how to give one', async () => {
    const { code, err } = await run(['orders', 'list'], {
      mintToken: () => Promise.reject(new Error('no key')),
    });
    expect(err).to.equal(
      'ledgerctl: no key; or give a token of an issuer that the service trusts: --token or LEDGERCTL_TOKEN\n',
    );
    expect(code).to.equal(1);
  });

  it('store check takes a directory or a file, and neither with EventStoreDB', async () => {
    const here = { defaultDataDir: folder };
    expect((await run(['store', 'check'], here)).out).to.equal('2 events, nothing wrong\n');
    expect((await run(['store', 'check', '--file', file])).out).to.equal('1 event, nothing wrong\n');
    const damaged = { checkStore: async () => ({ events: 1, findings: ['checksum: event a@0 …'] }) };
    const found = await run(['store', 'check', '--file', file], damaged);
    expect(found).to.include({ out: 'checksum: event a@0 …\n1 event, 1 finding\n' });
    expect(found.err).to.include('ledgerctl store show <stream> <revision>');
    process.exitCode = undefined;
    const remote = { eventStore: 'esdb://host' };
    const refused = await run(['store', 'check'], remote);
    expect(refused.code).to.equal(2);
    expect(refused.err).to.include('LEDGER_EVENT_STORE names an EventStoreDB');
    expect((await run(['store', 'check', '--data-dir', folder], remote)).code).to.equal(0);
    expect((await run(['store', 'check', '--data-dir', folder, '--file', file])).code).to.equal(2);
  });
});

describe('ledgerctl with a service', () => {
  let server: Server;
  let url: string;
  let asked: string[];
  /** Bodies of the requests. */
  let sent: string[];
  let answer: (path: string) => { status: number; body: string };
  beforeEach(async () => {
    asked = [];
    sent = [];
    server = createServer((request, response) => {
      asked.push(request.url ?? '');
      request.on('data', (part: Buffer) => sent.push(part.toString()));
      const { status, body } = answer(request.url ?? '');
      response.writeHead(status, { 'x-request-id': 'r-1' }).end(body);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => server.close());

  it('asks the service at LEDGER_HTTP_ADDRESS unless a URL is given', async () => {
    answer = () => ({ status: 200, body: '{"items":[]}' });
    const { host } = new URL(url);
    expect((await run(['lanes', 'list'], { httpAddress: host })).code).to.equal(0);
    expect((await run(['--url', url, 'lanes', 'list'], { httpAddress: '127.0.0.1:1' })).code).to.equal(0);
    expect(asked).to.have.lengthOf(2);
  });
  it('names the request that failed, so that its log line can be found', async () => {
    answer = () => ({ status: 500, body: '{"detail":"it broke"}' });
    const { code, err } = await run(['--url', url, 'projections', 'list']);
    expect(err).to.equal('ledgerctl: GET /api/ledger/v1/projections answered 500: it broke (request r-1)\n');
    expect(code).to.equal(1);
  });

  it('says of an order by name what it says by id', async () => {
    const found = { id: 'o-1', metadata: { name: 'web' } };
    answer = (path) => {
      if (path.startsWith('/api/private/v1/clusters?'))
        return { status: 200, body: JSON.stringify({ size: 1, total: 1, items: [found] }) };
      if (/^.api.private.v1.\w+[?]/.test(path))
        return { status: 200, body: JSON.stringify({ size: 0, total: 0 }) };
      return path.includes('/orders/o-1')
        ? { status: 200, body: '{"id":"o-1"}' }
        : { status: 404, body: '{"detail":"absent"}' };
    };
    for (const name of ['o-1', 'web']) {
      const { out, err } = await run(['--url', url, 'orders', 'show', name, '--json']);
      expect(JSON.parse(out), err).to.deep.equal({ id: 'o-1' });
    }
    expect((await run(['--url', url, 'orders', 'cancel', 'web'])).out).to.include('its object is removed');
    expect(
      asked.filter((path) => path.includes('/cancel')),
      'a refused call would stay in the audit history',
    ).to.deep.equal(['/api/ledger/v1/orders/o-1/cancel?kind=cluster']);
    asked.length = 0;
    await run(['--url', url, 'orders', 'show', 'cluster/web', '--json']);
    expect(asked.at(-1)).to.equal('/api/ledger/v1/orders/o-1?kind=cluster');
    const absent = await run(['--url', url, 'orders', 'retry', 'db']);
    expect(absent.err).to.include('/orders/db/retry answered 404: absent');
    expect(absent.code).to.equal(3);
  });

  it('tells the service which step of an order is skipped, and why', async () => {
    answer = (path) =>
      path.startsWith('/api/private/')
        ? { status: 200, body: '{"items":[{"id":"o-1","metadata":{"name":"web"}}]}' }
        : { status: 200, body: '{"id":"o-1"}' };
    const why = ['--reason', 'done by hand'];
    for (const [verb, ...options] of [
      ['skip', '--step', 'dns'],
      ['resume', '--step', 'dns'],
      ['abort'],
    ] as const) {
      asked.length = 0;
      const { out, err } = await run(['--url', url, 'orders', verb, 'cluster/web', ...options, ...why]);
      expect(out, err).to.match(/^order cluster\/web: /);
      expect(asked.at(-1)).to.equal(`/api/ledger/v1/orders/o-1/${verb}?kind=cluster`);
      const step = verb === 'abort' ? {} : { step: 'dns' };
      expect(JSON.parse(sent.at(-1) ?? '')).to.deep.equal({ ...step, reason: 'done by hand' });
    }
    asked.length = 0;
    const silent = await run(['--url', url, 'orders', 'abort', 'o-1']);
    expect(silent.err).to.include("required option '--reason <text>' not specified");
    expect(asked).to.deep.equal([]);
  });

  it('lists orders page after page, newest first, with their age', async () => {
    const all = Array.from({ length: 1203 }, (_, i) => ({
      kind: 'cluster',
      id: `o-${i}`,
      name: `n${i}`,
      tenant: 'acme',
      state: 'degraded',
      ordered_at: new Date(Date.now() - 3 * 86_400_000).toISOString(),
    }));
    answer = (path) => {
      const query = new URL(path, 'http://x').searchParams;
      const from = Number(query.get('cursor') ?? 0);
      const to = from + Number(query.get('limit'));
      const next = to < all.length ? { next_cursor: String(to) } : {};
      return { status: 200, body: JSON.stringify({ items: all.slice(from, to), ...next }) };
    };
    const list = ['--url', url, 'orders', 'list'];
    const lines = (await run([...list, '--state', 'degraded', '--tenant', 'acme'])).out.trimEnd().split('\n');
    expect(lines[0]).to.match(/^KIND +ID +NAME +TENANT +STATE +AGE +HUB +MESSAGE$/);
    expect(lines[1]).to.match(/^cluster +o-0 +n0 +acme +degraded +3d +-/);
    expect(lines).to.have.length(1 + all.length);
    for (const path of asked) expect(path).to.include('state=degraded&tenant=acme');
    expect(JSON.parse((await run([...list, '--limit', '701', '--json'])).out)).to.deep.equal(
      all.slice(0, 701),
    );
    expect((await run([...list, '--limit', '0'])).code).to.equal(2);
    asked.length = 0;
    expect((await run([...list, '--limit', '1', '--kind', 'clusters', '--json'])).code).to.equal(0);
    expect(asked.at(-1)).to.include('kind=cluster');
    expect((await run([...list, '--kind', 'nothing'])).code).to.equal(2);
  });

  it('no lanes are said on stderr', async () => {
    answer = () => ({ status: 200, body: '{"items":[]}' });
    expect(await run(['--url', url, 'lanes', 'list'])).to.deep.equal({
      code: 0,
      out: '',
      err: 'no lane has work or trouble\n',
    });
  });

  it('lanes are listed, paused and resumed', async () => {
    const lane = { lane: 'hub:sim-1', breaker: 'open', paused: false };
    const failing = [
      {
        order: 'o1',
        failures: 5,
        reason: 'Forbidden',
        message: 'clusterorders is forbidden',
        set_aside: true,
      },
    ];
    answer = (path) => ({
      status: 200,
      body: JSON.stringify(
        path.endsWith('/lanes')
          ? {
              items: [{ ...lane, in_flight: 1, waiting: 7, failing_orders: 1, failing }],
            }
          : { ...lane, breaker: 'closed', paused: path.endsWith('pause') },
      ),
    });
    const { out } = await run(['--url', url, 'lanes', 'list']);
    expect(out.split('\n')).to.deep.equal([
      'LANE       STATE         IN FLIGHT  WAITING  FAILING ORDERS  PAUSED FOR',
      'hub:sim-1  breaker open  1          7        1               -',
      '',
      'LANE       ORDER  FAILURES  COUNTS     REASON     LAST ERROR',
      'hub:sim-1  o1     5         set aside  Forbidden  clusterorders is forbidden',
      '',
    ]);
    expect((await run(['--url', url, 'lanes', 'pause', 'hub:sim-1'])).out).to.equal(
      'lane hub:sim-1: paused\n',
    );
    expect((await run(['--url', url, 'lanes', 'resume', 'hub:sim-1'])).out).to.equal(
      'lane hub:sim-1: working\n',
    );
    expect(asked.slice(1)).to.deep.equal([
      '/api/ledger/v1/lanes/hub%3Asim-1/pause',
      '/api/ledger/v1/lanes/hub%3Asim-1/resume',
    ]);
  });

  it('events --follow begins at the end of the log, or where --from says', async () => {
    answer = (path) => ({ status: 200, body: path.endsWith('/store') ? '{"last_position":"s.7"}' : '' });
    const { err } = await run(['--url', url, 'events', '--follow']);
    expect(err).to.include('new events after s.7');
    await run(['--url', url, 'events', '--follow', '--from', 's.3']);
    expect(asked).to.deep.equal([
      '/api/ledger/v1/store',
      '/api/ledger/v1/events?limit=100&follow=true&from=s.7',
      '/api/ledger/v1/events?limit=100&follow=true&from=s.3',
    ]);
  });

  it('events says on stderr when there are none, and when there may be more', async () => {
    answer = () => ({ status: 200, body: '' });
    expect(await run(['--url', url, 'events'])).to.deep.equal({
      code: 0,
      out: '',
      err: 'no events of this kind\n',
    });
    answer = () => ({ status: 200, body: '{"position":"s.1"}\n{"position":"s.2"}\n' });
    const { out, err } = await run(['--url', url, 'events', '--limit', '2', '--json']);
    expect(out).to.equal('{"position":"s.1"}\n{"position":"s.2"}\n');
    expect(err).to.include('--limit 2 reached');
  });
});
