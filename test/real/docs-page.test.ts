import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { AS_DEPLOYED, createStack, type Stack } from '../support/service/stack.ts';
import { notRunHere } from '../support/not-run-here.ts';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

/** `/docs` in a browser without a network: it shows the API, and nothing was refused or asked of another host. */
describe('/docs in a real browser', function () {
  this.timeout(120_000);
  let stack: Stack;
  let profile: string;
  let browser: string;

  before(async function () {
    const found = BROWSERS.find((name) => spawnSync(name, ['--version']).status === 0);
    if (found === undefined)
      return notRunHere(this, 'browser', `none of ${BROWSERS.join(', ')} is installed`);
    browser = found;
    profile = mkdtempSync(join(tmpdir(), 'ledger-browser-'));
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
  });
  after(async () => {
    await stack?.dispose();
    if (profile !== undefined) rmSync(profile, { recursive: true, force: true });
  });

  /** The page as it stands after its scripts ran, and what the browser had to say. */
  const visit = (path: string): { readonly dom: string; readonly said: string } => {
    const run = spawnSync(
      browser,
      [
        '--headless=new',
        '--no-sandbox',
        '--disable-gpu',
        `--user-data-dir=${profile}`,
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
        '--enable-logging=stderr',
        '--virtual-time-budget=15000',
        '--dump-dom',
        `${stack.http()}${path}`,
      ],
      { encoding: 'utf8', timeout: 60_000, maxBuffer: 64 * 1024 * 1024 },
    );
    return { dom: run.stdout, said: run.stderr };
  };
  /** Underscores of operation ids make Swagger UI think of an older way to write links, which it talks about. */
  const complaints = (said: string): readonly string[] =>
    said
      .split('\n')
      .filter((line) => /CONSOLE|Content Security Policy|Refused to/.test(line))
      .filter((line) => !line.includes('Deprecated: escaping deep link whitespace'));

  it('shows every part of the API', () => {
    const { dom, said } = visit('/docs');
    expect(complaints(said)).to.deep.equal([]);
    expect(dom).to.include('data-tag="public.Clusters"').and.to.include('OAS 3.1');
    expect(dom).not.to.match(/Failed to load|No operations defined|Resolver error/i);
  });

  it('shows one operation with its examples when a link names it', () => {
    const { dom, said } = visit('/docs#/public.Clusters/public_Clusters_Create');
    expect(complaints(said)).to.deep.equal([]);
    expect(dom).to.include('Order a cluster from a template').and.to.include('Idempotency-Key');
  });
});
