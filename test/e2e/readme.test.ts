import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { createStack, type Stack } from '../support/e2e-stack.ts';
import { SHELL, statedIn } from '../support/shell-examples.ts';

const run = promisify(execFile);

/** The lines of the README's examples as they stand there, typed into a shell. */
const HEADING = '### By example';

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
