import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { ApiClient } from '../../src/cli/api-client.ts';
import { AS_DEPLOYED, CLUSTERS, SERVE, createStack, isReady, until, untilCluster, untilReady, type ClusterBody, type Stack } from '../support/e2e-stack.ts';
import { assertNoSecondObject, readHubOrders } from '../support/hub-journal.ts';

const run = promisify(execFile);
/** The commands of the page as they stand there, block by block. */
const PAGE = readFileSync('docs/restore.md', 'utf8');
const blocksOf = (heading: string): string[] => {
  const [, chapter = ''] = PAGE.split(`\n## ${heading}\n`);
  return [...(chapter.split('\n## ')[0] ?? '').matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? '');
};
const SHELL = `set -e\nnpx() { shift; node '${SERVE[0]}' "$@"; }\n`;
const HUBS = ['sim-east-1', 'sim-east-2', 'sim-west-1'];

describe('the page docs/restore.md', function () {
  this.timeout(120_000);
  let stack: Stack;
  let folder: string;
  before(async () => {
    stack = await createStack('sqlite', AS_DEPLOYED);
    folder = dirname(stack.dataDir);
    await stack.start();
  });
  after(() => stack.dispose());

  const shell = async (block: string, dataDir: string): Promise<string> => {
    // The service itself is started by this test, on ports of its own.
    const lines = block.split('\n').filter((line) => !line.includes('npm start'));
    const { stdout } = await run('bash', ['-c', SHELL + lines.join('\n')], {
      cwd: folder,
      env: { ...process.env, LEDGER_DATA_DIR: dataDir, LEDGERCTL_URL: stack.http() },
    });
    return stdout;
  };
  const order = (client: ApiClient, name: string, simulation = ''): Promise<ClusterBody> =>
    client.send<ClusterBody>(
      'POST',
      CLUSTERS,
      { metadata: { name, annotations: { simulation } }, spec: { template: { name: 'ocp-small' } } },
    );

  it('explores', async () => {
    let alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const ready = await order(alice, 'ready', 'factor=0.1');
    const scaled = await order(alice, 'scaled', 'factor=0.1');
    const gone = await order(alice, 'gone', 'factor=0.1');
    await untilCluster(alice, ready.id, isReady);
    await untilCluster(alice, scaled.id, isReady);
    await untilCluster(alice, gone.id, isReady);
    const underWay = await order(alice, 'under-way', 'controlPlane=4s');
    await untilCluster(alice, underWay.id, (c) => c.status?.state === 'CLUSTER_STATE_PROGRESSING' && (c as any).status.hub !== undefined || true);
    const [backup = ''] = blocksOf('Before a disaster');
    console.log(await shell(backup, stack.dataDir));
    const later = await order(alice, 'later', 'factor=0.1');
    await untilCluster(alice, later.id, isReady);
    await alice.send('PATCH', `${CLUSTERS}/${scaled.id}?update_mask=spec.node_sets.workers.size`, { spec: { node_sets: { workers: { size: 4 } } } });
    await alice.send('DELETE', `${CLUSTERS}/${gone.id}`);
    await until('gone', async () => HUBS.flatMap((h) => readHubOrders(join(stack.dataDir, 'hubs', `${h}.sqlite`))).some((o) => o.clusterId === gone.id && o.goneAt !== undefined));
    await untilCluster(alice, scaled.id, isReady);
    await stack.stop('SIGKILL');
    for (const block of blocksOf('Restore the embedded store')) console.log(await shell(block, stack.dataDir));
    const restored = join(folder, 'restored');
    const objects = () => HUBS.flatMap((hub) => readHubOrders(join(restored, 'hubs', `${hub}.sqlite`)));
    const before = objects();
    await stack.start({ LEDGER_DATA_DIR: restored });
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await untilCluster(alice, ready.id, isReady);
    await untilCluster(alice, underWay.id, isReady);
    const t0 = Date.now();
    await until('shown', async () => {
      const text = await (await fetch(`${stack.service().metrics}/metrics`)).text();
      console.log(text.split('\n').filter((l) => /^ledger_hub_(unknown|ghost)/.test(l)).join('\n'));
      for (const c of [scaled, gone, later]) {
        const r = await alice.get<any>(`${CLUSTERS}/${c.id}`).catch((e) => String(e));
        console.log(c.metadata.name, typeof r === 'string' ? r : JSON.stringify({ s: r.status, n: r.spec.node_sets }).slice(0, 900));
      }
      return Date.now() - t0 > 4000;
    });
    console.log(JSON.stringify(before), JSON.stringify(objects()));
    for (const hub of HUBS) assertNoSecondObject(join(restored, 'hubs', `${hub}.sqlite`));
    for (const block of blocksOf('Checks at the end')) console.log(await shell(block, restored));
    for (const block of blocksOf('A damaged event')) console.log(await shell(block, restored).catch((e) => e.stdout + e.stderr));
  });
});
