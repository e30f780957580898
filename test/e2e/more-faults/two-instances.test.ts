import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { createApiClient } from '../../../src/cli/api-client.ts';
import { startService, type ServiceProcess } from '../../../src/cli/demo/service-process.ts';
import { metadataText, readLog } from '../../support/service/stored-log.ts';
import {
  CLUSTERS,
  SERVE,
  createStack,
  isReady,
  until,
  untilCluster,
  untilReady,
  type ClusterBody,
  type Stack,
} from '../../support/service/stack.ts';

const order = (name: string): object => ({
  metadata: { name, annotations: { simulation: 'factor=0.05' } },
  spec: { template: { id: 'osac.templates.ocp_ci_small' } },
});

describe('two instances on one EventStoreDB', function () {
  // Two starts each, and the second takes over what the first one owned; other suites run beside this one.
  this.timeout(120_000);
  let stack: Stack;
  let second: ServiceProcess | undefined;

  beforeEach(async () => {
    stack = await createStack('eventstoredb-peer');
  });
  afterEach(async () => {
    await second?.stop('SIGKILL');
    second = undefined;
    await stack.dispose();
  });

  /** With files of its own, but the same secrets and the same hubs. */
  const startSecond = async (roles: string): Promise<ServiceProcess> => {
    const dataDir = join(stack.dataDir, '../second');
    mkdirSync(dataDir);
    symlinkSync(join(stack.dataDir, 'hubs'), join(dataDir, 'hubs'));
    second = await startService({
      command: SERVE,
      environment: {
        ...stack.environment,
        LEDGER_DATA_DIR: dataDir,
        LEDGER_SECRETS_DIR: join(stack.dataDir, 'secrets'),
        LEDGER_ROLES: roles,
      },
    });
    await untilReady(second);
    return second;
  };
  const owns = ({ log }: ServiceProcess): boolean =>
    log.some((line) => line.includes('process runner is live'));

  it('one with the role api and one with the processes show the same', async () => {
    const worker = await stack.start({ LEDGER_ROLES: 'api,processes' });
    const api = await startSecond('api');
    const token = await stack.token({ tenant: 'acme', user: 'alice' });
    const here = createApiClient(worker.http, token);
    const there = createApiClient(api.http, token);

    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const posted = await fetch(`${api.http}${CLUSTERS}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(order('shared')),
    });
    const { id } = (await posted.json()) as ClusterBody;
    const position = posted.headers.get('x-ledger-position') ?? '';
    const read = await fetch(`${worker.http}${CLUSTERS}/${id}`, {
      headers: { ...headers, 'x-ledger-min-position': position },
    });
    expect(read.status, 'a write on one is read on the other').to.equal(200);
    await untilCluster(there, id, isReady);
    await untilCluster(here, id, isReady);
    expect(await there.text(`${CLUSTERS}/${id}/kubeconfig`)).to.equal(
      await here.text(`${CLUSTERS}/${id}/kubeconfig`),
    );

    await here.send('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { from: 'here' } } });
    await there.send('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { from: 'here', and: 'there' } } });
    await untilCluster(here, id, ({ metadata }) => metadata.labels?.['and'] === 'there');
    const adminToken = await stack.token({ admin: true, user: 'root' });
    // Rows only: how far past the last row each instance has looked depends on when its checkpoints come.
    const digests = (): Promise<string[]> =>
      Promise.all(
        [worker, api].map(async ({ http }) => {
          const path = '/api/ledger/v1/projections/resources/digest';
          return (await createApiClient(http, adminToken).get<{ digest: string }>(path)).digest;
        }),
      );
    await until('both read models hold the same rows', async () => new Set(await digests()).size === 1);
    expect(owns(worker)).to.equal(true);
    expect(owns(api)).to.equal(false);
  });

  it('only one owns the processes, and the other goes on when that one ends', async () => {
    const first = await stack.start({ LEDGER_ROLES: 'api,processes' });
    const other = await startSecond('api,processes');
    const alice = createApiClient(other.http, await stack.token({ tenant: 'acme', user: 'alice' }));
    const one = await alice.send<ClusterBody>('POST', CLUSTERS, order('by-the-first'));
    await untilCluster(alice, one.id, isReady);
    expect([owns(first), owns(other)]).to.deep.equal([true, false]);
    const workers = async (): Promise<string[]> => {
      const started = (await readLog(stack)).filter(({ type }) => type === 'EffectStarted');
      return [...new Set(started.map((event) => metadataText(event, 'instance')))];
    };
    expect(await workers()).to.have.length(1);

    expect(await stack.stop('SIGTERM')).to.equal(0);
    const two = await alice.send<ClusterBody>('POST', CLUSTERS, order('by-the-other'));
    await untilCluster(alice, two.id, isReady);
    expect(owns(other)).to.equal(true);
    expect(await workers()).to.have.length(2);
  });
});
