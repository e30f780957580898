import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createStack, type Stack } from '../support/e2e-stack.ts';

const run = promisify(execFile);

/** The lines of the README's examples as they stand there, typed into a shell. */
const HEADING = '### By example';

/** Every call says its status and how many lines of events it got; what it printed stays what it printed. */
const SHELL = String.raw`
curl() {
  body=$(command curl -w '\n%{http_code}' "$@")
  printf '%s\n' "$body" | sed '$d'
  printf '%s\n' "$(printf '%s\n' "$body" | tail -n 1)" >> statuses.txt
}
`;

describe('the examples of the README', function () {
  this.timeout(60_000);
  let stack: Stack;
  let folder: string;
  let block: string;

  before(async () => {
    const [, text = ''] = readFileSync('README.md', 'utf8').split(HEADING);
    block = /```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
    folder = mkdtempSync(join(tmpdir(), 'ledger-readme-'));
    stack = await createStack('sqlite');
    await stack.start();
  });
  after(async () => {
    await stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it('work as written, with the statuses that they state', async () => {
    const environment = {
      ...process.env,
      TOKEN: await stack.token({ tenant: 'acme', user: 'alice' }),
      API: `${stack.http()}/api/fulfillment/v1`,
    };
    const { stdout } = await run('bash', ['-c', SHELL + block], { cwd: folder, env: environment });
    const statuses = readFileSync(join(folder, 'statuses.txt'), 'utf8').trim().split('\n');
    expect(statuses, stdout).to.deep.equal(statedIn(block));
    const watched = stdout.split('\n').filter((line) => line.startsWith('{"result":'));
    expect(watched.join('\n'), stdout).to.include('while you were away');
    expect(stdout, 'the mask kept the other label').to.match(/"labels":\{[^}]*"team":"ai"/);
  });
});

/** A status in the comment above a call, or 200. */
const statedIn = (block: string): readonly string[] => {
  const stated: string[] = [];
  let last = '200';
  for (const line of block.split('\n')) {
    if (line.startsWith('# ')) last = /\((\d{3})\)/.exec(line)?.[1] ?? '200';
    if (line.startsWith('curl ')) stated.push(last);
  }
  return stated;
};
