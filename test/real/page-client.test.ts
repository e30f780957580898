import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { findBrowser, showPage } from '../support/browser.ts';
import { startSecureStack, type SecureStack } from '../support/service/tls.ts';
import { notRunHere } from '../support/not-run-here.ts';

const ROOT = resolve('.');
/** Packages that the example imports, and those that they do. */
const PACKAGES = [
  '@bufbuild/protobuf',
  '@bufbuild/protobuf/codegenv2',
  '@bufbuild/protobuf/reflect',
  '@bufbuild/protobuf/wire',
  '@bufbuild/protobuf/wkt',
  '@connectrpc/connect',
  '@connectrpc/connect/protocol',
  '@connectrpc/connect/protocol-connect',
  '@connectrpc/connect/protocol-grpc-web',
  '@connectrpc/connect-web',
];
const imports = Object.fromEntries(
  PACKAGES.map((name) => [name, fileURLToPath(import.meta.resolve(name)).slice(ROOT.length)]),
);
const pageOf = (call: string): string => `<!doctype html>
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  const told = [];
  try {
    const { order } = await import('/fixtures/clients/browser.ts');
    await order(${call});
  } catch (error) {
    told.push(String(error));
  }
  await fetch('/told', { method: 'POST', body: JSON.stringify(told) });
</script>`;

/** The example as it is, in a page of another origin, by the browser's own HTTP/2, TLS and preflights. */
describe('the example for a page in a real browser', function () {
  this.timeout(180_000);
  let browser: string;
  let secure: SecureStack;
  let server: Server;
  let page = '';
  let tell: (lines: readonly string[]) => void;
  const told = new Promise<readonly string[]>((resolved) => (tell = resolved));

  before(async function () {
    const found = findBrowser();
    if ('missing' in found) return notRunHere(this, 'browser', found.missing);
    browser = found.program;
    secure = await startSecureStack();
    server = createServer((request, response) => {
      const { pathname } = new URL(request.url ?? '', 'http://x');
      if (pathname === '/told') {
        void text(request).then((lines) => tell(JSON.parse(lines) as string[]));
        response.end();
      } else if (pathname === '/') {
        response.writeHead(200, { 'content-type': 'text/html' }).end(page);
      } else if (/\.(js|ts)$/.test(pathname)) {
        const code = readFileSync(join(ROOT, pathname), 'utf8');
        response.writeHead(200, { 'content-type': 'text/javascript' });
        response.end(pathname.endsWith('.ts') ? stripTypeScriptTypes(code) : code);
      } else response.writeHead(404).end();
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  });
  after(async () => {
    server?.closeAllConnections();
    server?.close();
    await secure?.stack.dispose();
  });

  it('orders a cluster and follows it until it is READY', async () => {
    const token = await secure.stack.token({ tenant: 'acme', user: 'alice' });
    const connection = JSON.stringify({ baseUrl: `https://${secure.grpc}` });
    page = pageOf(`'in-a-page', '${token}', (line) => told.push(line), ${connection}`);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const lines = await showPage(browser, url, told);
    expect(lines.at(-1)).to.equal('in-a-page CLUSTER_STATE_READY');
  });
});
