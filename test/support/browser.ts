import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

/** A browser of this machine, or why there is none. */
export const findBrowser = (): { readonly program: string } | { readonly missing: string } => {
  const program = BROWSERS.find((name) => spawnSync(name, ['--version']).status === 0);
  return program === undefined ? { missing: `none of ${BROWSERS.join(', ')} is installed` } : { program };
};

/** Shows a page, headless, until `told` is there: what the page has told. Throws when the browser ends before. */
export const showPage = async <T>(program: string, url: string, told: Promise<T>): Promise<T> => {
  const profile = mkdtempSync(join(tmpdir(), 'ledger-page-'));
  const options = ['--headless=new', '--no-sandbox', '--disable-gpu', '--ignore-certificate-errors'];
  const shown = spawn(program, [...options, `--user-data-dir=${profile}`, url], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const closed = new Promise((ended) => shown.once('close', ended));
  const said = text(shown.stderr);
  try {
    return await Promise.race([
      told,
      said.then((end) => Promise.reject(new Error(`the browser ended: ${end}`))),
    ]);
  } finally {
    shown.kill('SIGKILL');
    await closed;
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
};
