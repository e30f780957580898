import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { CONNECT_PATH } from '../../src/http/console-socket.ts';
import { findBrowser, showPage } from '../support/browser.ts';
import { startMachine } from '../support/consoles/machine.ts';
import { networkStory, ok, type NetworkStory } from '../support/hubs/network-story.ts';
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

/** A console in a page of another origin, by the browser's own WebSocket and cookies. */
describe('a console in a real browser', function () {
  this.timeout(180_000);
  let browser: string;
  let whole: WholeService;
  let people: NetworkStory;
  let server: Server;
  let page = '';
  let tell: (sessions: readonly Session[]) => void = () => undefined;

  before(async function () {
    const found = findBrowser();
    if ('missing' in found) return notRunHere(this, 'browser', found.missing);
    browser = found.program;
    server = createServer((request, response) => {
      if (request.url === '/told') {
        void text(request).then((sessions) => tell(JSON.parse(sessions) as Session[]));
        response.end();
      } else response.writeHead(200, { 'content-type': 'text/html' }).end(page);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    whole = await createWholeService({ LEDGER_CORS_ORIGINS: originOf() });
    await whole.start();
    people = await networkStory(whole);
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await whole?.dispose();
  });
  const originOf = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  it('answers at the prompt with a ticket as a cookie, once', async () => {
    const machine = await startMachine(people.admin, people.user, 'vm1');
    const reply = await people.user('POST', `${PUBLIC}/console_sessions`, {
      resource_type: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE',
      resource_id: machine,
      type: 'CONSOLE_TYPE_SERIAL',
      client_id: '019a0000-0000-7000-8000-000000000000',
    });
    const { url } = await whole.access({ sub: 'x' });
    page = pageOf(`${url.replace('http', 'ws')}${CONNECT_PATH}`, textAt(ok(reply), 'ticket'), PUBLIC);
    const told = new Promise<readonly Session[]>((resolved) => (tell = resolved));
    const [first, second] = await showPage(browser, originOf(), told);
    expect(first?.said).to.include('\r\nin a page\r\n');
    expect(first?.code).to.equal(1000);
    expect(second).to.deep.equal({ said: '', code: 3000, reason: 'invalid ticket: it was used before' });
  });
});
