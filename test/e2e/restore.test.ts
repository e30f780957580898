import { execFile } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { mintToken } from '../../src/adapters/identity/development-issuer.ts';
import { createApiClient, type ApiClient } from '../../src/cli/api-client.ts';
import { startService, type ServiceProcess } from '../../src/cli/demo/service-process.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  SERVE,
  createStack,
  isReady,
  refusal,
  until,
  untilCluster,
  untilReady,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';
import { assertNoSecondObject, readHubCalls, readHubOrders } from '../support/hubs/hub-journal.ts';

const run = promisify(execFile);

const PAGE = readFileSync('docs/restore.md', 'utf8');
/** The commands under a heading of the page, as they stand there. */
const commandsUnder = (heading: string): string => {
  const [, rest = ''] = PAGE.split(`\n## ${heading}\n`);
  const [chapter = ''] = rest.split('\n## ');
  const blocks = [...chapter.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block ?? '');
  if (blocks.length === 0) throw new Error(`no commands under ${heading}`);
  // Services are started by this file, on ports of its own.
  return blocks
    .join('\n')
    .split('\n')
    .filter((line) => !line.includes('npm start'))
    .join('\n');
};
const SHELL = `set -e\nnpx() { shift; node '${SERVE[0]}' "$@"; }\n`;

const WRITES = new Set(['create', 'patch', 'delete']);
const HUBS = ['sim-east-1', 'sim-east-2', 'sim-west-1'];
type HubLine = { readonly health: string };

describe('a restore as docs/restore.md has it', function () {
  this.timeout(120_000);
  let stack: Stack;
  let folder: string;
  let restored: string;
  const others: ServiceProcess[] = [];

  before(async () => {
    stack = await createStack('sqlite', AS_DEPLOYED);
    folder = dirname(stack.dataDir);
    restored = join(folder, 'restored');
    await stack.start();
  });
  after(async () => {
    for (const service of others) await service.stop('SIGKILL');
    await stack.dispose();
  });

  const shell = async (commands: string, dataDir: string, url = stack.http()): Promise<string> => {
    const env = { ...process.env, LEDGER_DATA_DIR: dataDir, LEDGERCTL_URL: url };
    return (await run('bash', ['-c', SHELL + commands], { cwd: folder, env })).stdout;
  };
  const order = (client: ApiClient, name: string, simulation: string): Promise<ClusterBody> =>
    client.send<ClusterBody>('POST', CLUSTERS, {
      metadata: { name, annotations: { simulation } },
      spec: { template: { name: 'ocp-small' } },
    });
  const hubFiles = (): string[] => HUBS.map((hub) => join(restored, 'hubs', `${hub}.sqlite`));
  /** The objects on all hubs that carry the label of this cluster. */
  const objectsOf = ({ id }: ClusterBody) =>
    hubFiles()
      .flatMap(readHubOrders)
      .filter(({ clusterId }) => clusterId === id);
  const unknownOrders = async (): Promise<number> => {
    const text = await (await fetch(`${stack.service().metrics}/metrics`)).text();
    return [...text.matchAll(/^ledger_hub_unknown_orders\{.*\} (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    );
  };

  it('goes on with every order of the backup, and leaves alone what was ordered after it', async () => {
    let alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const ready = await order(alice, 'ready', 'factor=0.1');
    await untilCluster(alice, ready.id, isReady);
    const underWay = await order(alice, 'under-way', 'controlPlane=6s');
    expect(await shell(commandsUnder('Before a disaster'), stack.dataDir)).to.match(
      /\d+ events, nothing wrong\n$/,
    );
    const later = await order(alice, 'later', 'factor=0.1');
    await untilCluster(alice, later.id, isReady);
    await stack.stop('SIGKILL');

    const told = await shell(commandsUnder('Restore the embedded store'), stack.dataDir);
    expect(told)
      .to.match(/^deployment {2}ledger, id \S+$/m)
      .and.match(/^hubs {8}3 registered hubs$/m)
      .and.match(/^orders {6}\d under way/m);
    const [untouched] = objectsOf(later);
    expect(untouched, 'the hub has what the log does not know').not.to.equal(undefined);

    await stack.start({ LEDGER_DATA_DIR: restored });
    alice = createApiClient(stack.http(), await tokenOf(restored));
    await untilCluster(alice, ready.id, isReady);
    await untilCluster(alice, underWay.id, isReady);
    await until('the later order is told', async () => (await unknownOrders()) === 1);
    expect((await refusal(alice.get(`${CLUSTERS}/${later.id}`))).status).to.equal(404);
    for (const file of hubFiles()) assertNoSecondObject(file);
    for (const cluster of [ready, underWay]) expect(objectsOf(cluster)).to.have.length(1);
    expect(objectsOf(later)).to.deep.equal([untouched]);
    const writes = hubFiles()
      .flatMap(readHubCalls)
      .filter(({ object, operation }) => object === untouched?.name && WRITES.has(operation));
    expect(writes.map(({ operation }) => operation)).to.deep.equal(['create']);

    const shown = await shell(commandsUnder('Checks at the end'), restored);
    expect(shown).to.include('LogRestored').and.include('signing').and.not.include('DrivenElsewhere');
    expect(await shell(commandsUnder('A damaged event'), restored)).to.match(/\nnothing wrong\n$/);
  });

  const tokenOf = (dataDir: string): Promise<string> =>
    mintToken(join(dataDir, 'secrets'), { tenant: 'acme', user: 'alice', ttlSeconds: 3600, now: Date.now() });
  const adminOf = async (service: ServiceProcess, dataDir: string): Promise<ApiClient> => {
    const who = { admin: true, user: 'root', ttlSeconds: 3600, now: Date.now() } as const;
    return createApiClient(service.http, await mintToken(join(dataDir, 'secrets'), who));
  };
  /** Another service, on a directory that shares the hubs with the one that lives. */
  const startBeside = async (dataDir: string, more: Record<string, string> = {}): Promise<ServiceProcess> => {
    if (!existsSync(join(dataDir, 'hubs'))) symlinkSync(join(restored, 'hubs'), join(dataDir, 'hubs'));
    const environment = { ...stack.environment, LEDGER_DATA_DIR: dataDir, ...more };
    const service = await startService({ command: SERVE, environment });
    others.push(service);
    return service;
  };
  const untilHealth = async (admin: ApiClient, health: string): Promise<void> =>
    until(`every hub is ${health}`, async () => {
      const { items } = await admin.get<{ items: readonly HubLine[] }>('/api/ledger/v1/hubs');
      return items.length === HUBS.length && items.every((hub) => hub.health === health);
    });

  it('is practised beside the living service by the role api alone', async () => {
    /** The services that ever called a hub. */
    const callers = () =>
      new Set(
        hubFiles()
          .flatMap(readHubCalls)
          .map(({ instance }) => instance),
      );
    const before = callers();
    await shell(commandsUnder('The drill'), restored);
    const drill = join(folder, 'drill');
    const service = await startBeside(drill, { LEDGER_ROLES: 'api' });
    await untilReady(service);
    const alice = createApiClient(service.http, await tokenOf(drill));
    const { items } = await alice.get<{ items: readonly ClusterBody[] }>(CLUSTERS);
    expect(items.map(({ metadata }) => metadata.name).toSorted()).to.deep.equal(['ready', 'under-way']);
    const ordered = await order(alice, 'only-in-the-copy', '');
    expect(objectsOf(ordered)).to.deep.equal([]);
    expect(callers(), 'it calls no hub').to.deep.equal(before);
    await service.stop();
  });

  it('takes the hubs over from a service that goes on under the former id', async () => {
    const living = await adminOf(stack.service(), restored);
    await untilHealth(living, 'ok');
    await shell('npx ledgerctl store backup "$PWD/backups/again.sqlite"', restored);
    const takenDir = join(folder, 'taken');
    await shell(
      'npx ledgerctl store restore --file backups/again.sqlite --data-dir taken --confirm ledger',
      restored,
    );
    await shell('cp -a restored/secrets taken/secrets', restored);
    const taken = await startBeside(takenDir);
    const alice = createApiClient(taken.http, await tokenOf(takenDir));
    const anew = await order(alice, 'anew', 'factor=0.1');
    await untilCluster(alice, anew.id, isReady);
    await untilHealth(living, 'DrivenElsewhere');
    const late = await order(createApiClient(stack.http(), await tokenOf(restored)), 'late', 'factor=0.1');
    const last = await order(alice, 'last', 'factor=0.1');
    await untilCluster(alice, last.id, isReady);
    await untilHealth(await adminOf(taken, takenDir), 'ok');
    expect(objectsOf(late)).to.deep.equal([]);
    for (const cluster of [anew, last]) expect(objectsOf(cluster)).to.have.length(1);
    for (const file of hubFiles()) assertNoSecondObject(file);
  });
});
