import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { verifyStoppedStore } from '../../src/composition/stopped-store.ts';
import {
  AS_DEPLOYED,
  createStack,
  SERVE,
  untilCluster,
  isReady,
  type Stack,
} from '../support/service/stack.ts';
import { isShown, SHELL, shownIn, statedIn } from '../support/docs/shell-examples.ts';

const run = promisify(execFile);
const [MAIN = ''] = SERVE;
const blockOf = (text: string): string => /```sh\n([\s\S]*?)```/.exec(text)?.[1] ?? '';

/** What auditors are told to type, typed. */
describe('the chapters for auditors', function () {
  this.timeout(180_000);
  let stack: Stack;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-readme-audit-'));
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await alice.send('POST', '/api/fulfillment/v1/clusters', {
      id: 'readme-1',
      metadata: { name: 'readme' },
      spec: { template: { name: 'ocp-small' } },
    });
    await untilCluster(alice, 'readme-1', isReady);
  });
  after(async () => {
    await stack.dispose();
    rmSync(folder, { recursive: true, force: true });
  });

  const type = async (lines: string, env: NodeJS.ProcessEnv): Promise<string> => {
    const how = { cwd: folder, env: { ...process.env, ...env } };
    const { stdout } = await run('bash', ['-c', lines], how).catch((error: unknown) => {
      // What was found wrong is in what it printed, not in its errors.
      throw new Error(`${String(error)}\n${(error as { stdout?: string }).stdout}`, { cause: error });
    });
    return stdout;
  };

  it('the page for auditors takes an auditor from the first look to an export that is verified offline', async () => {
    const [, chapter = ''] = readFileSync('docs/audit.md', 'utf8').split('## First steps\n');
    const shell = `set -euo pipefail\nnpx() { shift; node '${MAIN}' "$@"; }\n`;
    const settings = { LEDGER_DATA_DIR: stack.dataDir, LEDGERCTL_URL: stack.http(), ID: 'readme-1' };
    const out = await type(shell + blockOf(chapter), settings);
    expect(out).to.match(/ alice +ClusterOrdered +cluster\/readme-1 +accepted +cluster-readme-1@0 +-\n/);
    expect(out).to.match(/^[+~] \/status(\/state)?: .*"CLUSTER_STATE_READY"/m);
    expect(out).to.match(/cluster-readme-1@0 \(ClusterOrdered\) is leaf \d+,[^]*keys: yours\n/);
    // The proof of one event, the export, the mirror as it comes, and as it lies there.
    expect(
      out.match(/^pin: (continued$|the signed head lies before your pin, which continues it )/gm),
    ).to.have.length(4);
    expect(out).to.match(/\/mirror holds the tree of \d+ events\n[^]*nothing wrong\n$/);
    const trust = JSON.parse(readFileSync(join(folder, 'trust.json'), 'utf8')) as { pin: string };
    expect(trust.pin).to.include('fulfillment-ledger/');
    // Without the service it is as right as with it.
    const store = `${shell}npx ledgerctl audit verify --store ${stack.dataDir} --trust trust.json 2>&1`;
    const inUse = await type(`${store} || echo "status $?"`, {});
    expect(inUse).to.equal(
      `ledgerctl: the store in ${stack.dataDir} is in use by process ${stack.service().pid}: stop that service first, or check a ` +
        'backup of it (ledgerctl store backup <file>, then audit verify --store <file>)\nstatus 2\n',
    );
    // Heads are 10 s apart: what happened since the last one is signed when the service stops.
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await alice.send('POST', '/api/fulfillment/v1/clusters', {
      id: 'last',
      metadata: { name: 'last' },
      spec: { template: { name: 'ocp-small' } },
    });
    expect(await stack.stop('SIGTERM')).to.equal(0);
    const { ok, leaves, signed, remarks } = await verifyStoppedStore({ dataDir: stack.dataDir });
    expect(leaves).to.be.greaterThan(0);
    expect([ok, signed, remarks]).to.deep.equal([true, leaves, []]);
    const again = await type(`${shell}npx ledgerctl audit verify acme.tar --trust trust.json`, {});
    expect(again).to.match(/nothing wrong\n$/);
    const tiles = await type(`${shell}npx ledgerctl audit verify --tiles mirror --trust trust.json`, {});
    expect(tiles).to.match(/^tree of \d+ events, [^]*nothing wrong\n$/);
    expect(await type(store, {})).to.match(/^\d+ events, [^]*nothing wrong\n$/);
    await stack.start();
  });

  it('docs/audit.md shows what is answered', async () => {
    const block = blockOf(readFileSync('docs/audit.md', 'utf8').split('## By example\n')[1] ?? '');
    const auditor = await run(
      'node',
      [MAIN, 'token', '--tenant', 'acme', '--user', 'audrey', '--role', 'auditor'],
      { env: { ...process.env, LEDGER_DATA_DIR: stack.dataDir } },
    );
    const out = await type(SHELL + block, {
      AUDITOR: auditor.stdout.trim(),
      ADMIN: await stack.token({ admin: true, user: 'root' }),
      API: `${stack.http()}/api/audit/v1`,
    });
    const statuses = readFileSync(join(folder, 'statuses.txt'), 'utf8').trim().split('\n');
    expect(statuses, out).to.deep.equal(statedIn(block));
    for (const [i, text] of shownIn(block).entries()) {
      const answer = readFileSync(join(folder, `answer-${i + 1}.txt`), 'utf8');
      expect(isShown(text, answer), `shown: ${text}\nanswered: ${answer}`).to.equal(true);
    }
  });
});
