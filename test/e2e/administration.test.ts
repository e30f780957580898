import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { AS_DEPLOYED, E2E_STORE, createStack, type Stack } from '../support/e2e-stack.ts';
import { SHELL, statedIn } from '../support/shell-examples.ts';

const run = promisify(execFile);

/** What comes after it is about other installations. */
const END = "## Operators' commands in production";
const ADDRESS = 'http://127.0.0.1:8001';

/** `npx ledgerctl` as it is from the sources. */
const NPX = `npx() { shift; node '${join(import.meta.dirname, '../../src/main.ts')}' "$@"; }\n`;

describe('the examples of the guide for administrators', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-administration-'));
    stack = await createStack(E2E_STORE);
    await stack.start(AS_DEPLOYED);
  });
  after(async () => {
    await stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  it('work in their order, with the statuses that they state', async () => {
    const [guide = ''] = readFileSync('docs/administration.md', 'utf8').split(END);
    const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block).join('\n');
    writeFileSync(join(folder, 'hub.kubeconfig'), 'apiVersion: v1\nkind: Config\n');
    const environment = {
      ...process.env,
      LEDGER_DATA_DIR: stack.dataDir,
      LEDGERCTL_URL: stack.http(),
    };
    const script = SHELL + NPX + blocks.replaceAll(ADDRESS, stack.http());
    const { stdout, stderr } = await run('bash', ['-c', script], { cwd: folder, env: environment });
    const statuses = readFileSync(join(folder, 'statuses.txt'), 'utf8').trim().split('\n');
    expect(statuses, stdout + stderr).to.deep.equal(statedIn(blocks));
    expect(stderr).to.match(/^erasure complete: the data of \S+ cannot be read any more\n$/);
    expect(stdout.match(/"password"/g), 'shown once').to.have.length(1);
    expect(stdout).not.to.include('only-sent-never-shown');
  });
});
