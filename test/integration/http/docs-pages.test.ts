import { expect } from 'chai';
import { callerOf, startTestService, type Caller, type TestService } from '../../support/http/service.ts';

const HTML = { accept: 'text/html,application/xhtml+xml' };

/** Pages for people: without a token, without anything inline, without a request to anywhere else. */
describe('the pages of the API documentation', () => {
  let service: TestService;
  let caller: Caller;
  before(async () => {
    service = await startTestService();
    caller = callerOf(service);
  });
  after(() => service.close());

  /** What a page or style sheet loads, as paths of this service. */
  const loadedBy = (html: string): readonly string[] =>
    [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, to]) => to ?? '');

  for (const page of ['/docs', '/'])
    it(`${page} loads only what is here, and nothing is inline`, async () => {
      const { status, text, headers } = await caller('GET', page, undefined, HTML);
      expect(status).to.equal(200);
      expect(headers.get('content-type')).to.equal('text/html; charset=utf-8');
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy).to.include("default-src 'none'").and.to.include("script-src 'self'");
      expect(policy).not.to.match(/unsafe|https?:|\*/);
      expect(text).not.to.match(/<script>|<style>|\son\w+=|\sstyle=|javascript:/i);
      for (const path of loadedBy(text)) {
        expect(path).not.to.match(/^(?:\w+:|\/)/);
        expect((await caller('GET', `/${path}`)).status, path).to.equal(200);
      }
    });

  it('programs find links at the root, browsers a page', async () => {
    for (const accept of ['*/*', 'application/json']) {
      const index = await caller('GET', '/', undefined, { accept });
      expect(index.headers.get('content-type')).to.equal('application/json');
      const links = Object.keys(index.json['links'] as object);
      expect(links).to.include.members(['/docs', '/openapi.json', '/healthz']);
      for (const link of links) expect((await caller('GET', link)).status, link).to.be.oneOf([200, 503]);
    }
    expect((await caller('POST', '/', {})).status).to.equal(405);
    expect((await caller('GET', '/', undefined, HTML)).text).to.include('href="docs"');
  });

  it('/docs/ leads to /docs, where relative paths mean what they should', async () => {
    const response = await fetch(`${service.url}/docs/`, { redirect: 'manual' });
    expect(response.status).to.equal(308);
    expect(new URL(response.headers.get('location') ?? '', `${service.url}/docs/`).pathname).to.equal(
      '/docs',
    );
  });

  it('serves the files of the page and no others', async () => {
    for (const [file, type] of [
      ['swagger-ui.css', 'text/css; charset=utf-8'],
      ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
      ['init.js', 'text/javascript; charset=utf-8'],
    ] as const) {
      const reply = await caller('GET', `/docs/${file}`);
      expect([reply.status, reply.headers.get('content-type')]).to.deep.equal([200, type]);
      expect(reply.headers.get('x-content-type-options')).to.equal('nosniff');
    }
    for (const file of [
      'package.json',
      'index.html',
      '..%2fpackage.json',
      '%2e%2e/package.json',
      '__proto__',
      'constructor',
    ])
      expect((await caller('GET', `/docs/${file}`)).status, file).to.equal(404);
  });

  it('are compressed for who asks, and not sent twice', async () => {
    const reply = await caller('GET', '/docs/swagger-ui.css', undefined, { 'accept-encoding': 'gzip' });
    expect(reply.headers.get('content-encoding')).to.equal('gzip');
    const plain = await caller('GET', '/docs/swagger-ui.css', undefined, { 'accept-encoding': 'identity' });
    expect(plain.headers.get('content-encoding')).to.equal(null);
    const refused = await caller('GET', '/docs/swagger-ui.css', undefined, {
      'accept-encoding': 'br, gzip;q=0',
    });
    expect(refused.headers.get('content-encoding')).to.equal(null);
    expect(plain.text).to.equal(reply.text);
    const etag = plain.headers.get('etag') ?? '';
    expect(
      (await caller('GET', '/docs/swagger-ui.css', undefined, { 'if-none-match': etag })).status,
    ).to.equal(304);
  });

  it('can only be read', async () => {
    const reply = await caller('POST', '/docs', {});
    expect([reply.status, reply.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD']);
    const head = await caller('HEAD', '/openapi.json', undefined, { 'accept-encoding': 'identity' });
    expect([head.status, head.text]).to.deep.equal([200, '']);
    expect(Number(head.headers.get('content-length'))).to.be.greaterThan(100_000);
  });

  it('are counted under their route, not under what was asked', async () => {
    const seen: string[] = [];
    const counted = await startTestService({ onRequest: ({ route }) => void seen.push(route) });
    try {
      await callerOf(counted)('GET', '/docs/init.js');
      await callerOf(counted)('GET', '/docs/x'.padEnd(40, 'x'));
      await callerOf(counted)('GET', '/openapi.json');
    } finally {
      await counted.close();
    }
    expect(seen).to.deep.equal(['/docs/{file}', '/docs/{file}', '/openapi.json']);
  });
});
