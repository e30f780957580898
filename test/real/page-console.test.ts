import { createServer, type Server } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { COMPUTE_INSTANCE } from '../../src/domain/compute/hub-objects.ts';
import { CONNECT_PATH } from '../../src/http/console-socket.ts';
import { findBrowser, showPage } from '../support/browser.ts';
import {
  aggregateConsoles,
  CONSOLE_API,
  startConsoleServer,
  type ConsoleServer,
} from '../support/consoles/console-server.ts';
import { registerPlayedHub } from '../support/consoles/hub-with-consoles.ts';
import { startMachine } from '../support/consoles/machine.ts';
import { osacCommandLine, startCommandLine } from '../support/grpc/osac-command-line.ts';
import { networkStory, ok, type NetworkStory } from '../support/hubs/network-story.ts';
import { NS } from '../support/hubs/placed-suite.ts';
import { realHubServer } from '../support/hubs/real-hub-server.ts';
import { loopbackTls } from '../support/http/loopback-tls.ts';
import { PUBLIC, textAt } from '../support/http/service.ts';
import { notRunHere } from '../support/not-run-here.ts';
import { createWholeService, type WholeService } from '../support/service/whole-service.ts';

/** The ticket goes as a cookie: a page cannot set a header of a WebSocket (OSAC). */
const pageOf = (url: string, ticket: string, path: string): string => `<!doctype html>
<script type="module">
  document.cookie = 'console-ticket=${ticket}; path=${path}; samesite=strict';
  const session = (typed, until) => new Promise((resolve) => {
    const socket = new WebSocket('${url}');
    socket.binaryType = 'arraybuffer';
    let said = '';
    socket.onopen = () => socket.send(new TextEncoder().encode(typed));
    socket.onmessage = ({ data }) => {
      said += new TextDecoder().decode(data);
      if (said.includes(until)) socket.close(1000);
    };
    socket.onclose = ({ code, reason }) => resolve({ said, code, reason });
  });
  const told = [];
  for (let n = 0; n < 2; n += 1) told.push(await session('echo in a page\\r', '\\r\\nin a page\\r\\n'));
  await fetch('/told', { method: 'POST', body: JSON.stringify(told) });
</script>`;

type Session = { readonly said: string; readonly code: number; readonly reason: string };

const listening = async (server: { listen(port: number, host: string, then: () => void): unknown }) =>
  new Promise<void>((is) => void server.listen(0, '127.0.0.1', is));
const portOf = (server: Pick<Server, 'address'>): number => (server.address() as AddressInfo).port;

/** Serves one page at a time, on an origin of its own. */
const startPages = async () => {
  let page = '';
  let tell: (sessions: readonly Session[]) => void = () => undefined;
  const server = createServer((request, response) => {
    if (request.url === '/told') {
      void text(request).then((sessions) => tell(JSON.parse(sessions) as Session[]));
      response.end();
    } else response.writeHead(200, { 'content-type': 'text/html' }).end(page);
  });
  await listening(server);
  const origin = `http://127.0.0.1:${portOf(server)}`;
  return {
    origin,
    /** What the sessions of a page with a ticket for this machine's prompt tell. */
    sessionsOf: async (browser: string, whole: WholeService, people: NetworkStory, machine: string) => {
      const reply = await people.user('POST', `${PUBLIC}/console_sessions`, {
        resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
        resource_id: machine,
        type: 'CONSOLE_TYPE_SERIAL',
        client_id: '019a0000-0000-7000-8000-000000000000',
      });
      const { url } = await whole.access({ sub: 'x' });
      page = pageOf(`${url.replace('http', 'ws')}${CONNECT_PATH}`, textAt(ok(reply), 'ticket'), PUBLIC);
      const told = new Promise<readonly Session[]>((resolved) => (tell = resolved));
      return showPage(browser, origin, told);
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

const assertOnce = ([first, second]: readonly Session[]): void => {
  expect(first?.said).to.include('\r\nin a page\r\n');
  expect(first?.code).to.equal(1000);
  expect(second).to.deep.equal({ said: '', code: 3000, reason: 'invalid ticket: it was used before' });
};

/** A console in a page of another origin, by the browser's own WebSocket and cookies. */
describe('a console in a real browser', function () {
  this.timeout(180_000);
  let browser: string;
  let whole: WholeService;
  let pages: Awaited<ReturnType<typeof startPages>>;

  before(async function () {
    const found = findBrowser();
    if ('missing' in found) return notRunHere(this, 'browser', found.missing);
    browser = found.program;
    pages = await startPages();
    whole = await createWholeService({ LEDGER_CORS_ORIGINS: pages.origin });
    await whole.start();
  });
  after(async () => {
    pages?.close();
    await whole?.dispose();
  });

  it('answers at the prompt with a ticket as a cookie, once', async () => {
    const people = await networkStory(whole);
    const machine = await startMachine(people.admin, people.user, 'vm1');
    assertOnce(await pages.sessionsOf(browser, whole, people, machine));
  });
});

const binary = kubeBinary((line) => console.log(`  ${line}`));

/** A client, the service, a real kube-apiserver, and what its aggregated API has behind it. */
describe('a console from its client to a machine of a real kube-apiserver', function () {
  this.timeout(180_000);
  let whole: WholeService;
  let people: NetworkStory;
  let pages: Awaited<ReturnType<typeof startPages>>;
  let consoles: ConsoleServer;
  let machine: string;
  const stops: (() => unknown)[] = [];

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    const server = await realHubServer(binary.path);
    stops.push(server.close);
    pages = await startPages();
    stops.push(pages.close);
    whole = await createWholeService({ LEDGER_CORS_ORIGINS: pages.origin });
    stops.push(whole.dispose);
    await whole.start();
    people = await networkStory(whole);
    stops.push(await registerPlayedHub(people.admin, server));
    consoles = await startConsoleServer();
    stops.push(consoles.close);
    await aggregateConsoles(server.call, NS, consoles.port);
    machine = await startMachine(people.admin, people.user, 'vm1');
  });
  after(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  const assertAskedOnce = (): void => {
    const name = COMPUTE_INSTANCE.nameOf(machine);
    expect(consoles.asked.splice(0)).to.deep.equal([
      {
        path: `${CONSOLE_API}/namespaces/${NS}/computeinstances/${name}/console`,
        user: `system:serviceaccount:${NS}:hub-access`,
      },
    ]);
  };

  it('answers a page in a browser', async function () {
    const found = findBrowser();
    if ('missing' in found) return notRunHere(this, 'browser', found.missing);
    assertOnce(await pages.sessionsOf(found.program, whole, people, machine));
    assertAskedOnce();
  });

  it('answers a client of grpc-go, behind a proxy that ends TLS', async function () {
    const program = osacCommandLine((line) => console.log(`      ${line}`));
    if ('missing' in program) return notRunHere(this, 'grpc-go', program.missing);
    const alice = { sub: 'alice', preferred_username: 'alice', organization: ['t1'] };
    const { grpc, token } = await whole.access(alice);
    const tls = await loopbackTls();
    const folder = mkdtempSync(join(tmpdir(), 'ledger-console-'));
    const authority = join(folder, 'ca.pem');
    writeFileSync(authority, tls.cert);
    const { hostname, port } = new URL(`http://${grpc}`);
    const proxy = createTlsServer({ ...tls, ALPNProtocols: ['h2'] }, (client) => {
      const service = connect(Number(port), hostname);
      service.on('error', () => client.destroy());
      client.on('error', () => service.destroy());
      client.pipe(service).pipe(client);
    });
    await listening(proxy);
    const cli = startCommandLine(program.path, `127.0.0.1:${portOf(proxy)}`, authority);
    try {
      const typed = 'echo over grpc-go\r';
      const argv = ['serial', 'computeinstance', 'vm1', '--input', typed, '--until', '\r\nover grpc-go\r\n'];
      const { exit, error, rows } = await cli.run(token, 'console', ...argv);
      expect(exit, error).to.equal(0);
      expect(rows).to.deep.equal([
        ['2', ''],
        ['3', 'the client left'],
      ]);
      assertAskedOnce();
    } finally {
      await cli.close();
      proxy.close();
      rmSync(folder, { recursive: true });
    }
  });
});
