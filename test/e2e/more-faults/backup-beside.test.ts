import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { simulatedHubFile } from '../../../src/adapters/management-cluster/simulated/simulated-hubs.ts';
import { createApiClient, type ApiClient } from '../../../src/cli/api-client.ts';
import { startService, type ServiceProcess } from '../../../src/cli/demo/service-process.ts';
import {
  CLUSTERS,
  createStack,
  isReady,
  PRIVATE,
  SERVE,
  until,
  untilCluster,
  untilReady,
  type ClusterBody,
  type Stack,
} from '../../support/service/stack.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';

type Hub = {
  readonly id: string;
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
  };
};

const FAST = { simulation: 'factor=0.1' };
const order = (name: string): object => ({
  metadata: { name, annotations: FAST },
  spec: { template: { id: 'osac.templates.ocp_small' } },
});

describe('a backup that is started beside the live service, on the same hubs', function () {
  this.timeout(120_000);
  let live: Stack;
  let dir: string;
  let restored: ServiceProcess;
  let admin: ApiClient;
  let alice: ApiClient;
  let beside: { readonly admin: ApiClient; readonly alice: ApiClient };
  let id: string;

  before(async () => {
    live = await createStack('sqlite');
    await live.start();
    admin = await live.client({ admin: true, user: 'root' });
    alice = await live.client({ tenant: 'acme', user: 'alice' });
    ({ id } = await alice.send<ClusterBody>('POST', CLUSTERS, order('kept')));
    await untilCluster(alice, id, isReady);

    dir = mkdtempSync(join(tmpdir(), 'ledger-beside-'));
    const dataDir = join(dir, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    await admin.send('POST', '/api/ledger/v1/store/backup', { file: logFile(dataDir) });
    // One set of hubs: what the restored log does there, it does to the clusters of the live one.
    symlinkSync(join(live.dataDir, 'hubs'), join(dataDir, 'hubs'));
    restored = await startService({
      command: SERVE,
      environment: {
        ...live.environment,
        LEDGER_DATA_DIR: dataDir,
        LEDGER_SECRETS_DIR: join(live.dataDir, 'secrets'),
      },
    });
    await untilReady(restored);
    beside = {
      admin: createApiClient(restored.http, await live.token({ admin: true, user: 'root' })),
      alice: createApiClient(restored.http, await live.token({ tenant: 'acme', user: 'alice' })),
    };
  });
  after(async () => {
    await restored?.stop('SIGKILL');
    await live.dispose();
    rmSync(dir, { recursive: true, force: true });
  });

  it('says on every hub that another one drives it', async () => {
    await until('each hub says so', async () => {
      const { items } = await beside.admin.get<{ items: readonly Hub[] }>(`${PRIVATE}/hubs`);
      const told = items.map(({ status }) => status?.conditions?.find(({ type }) => type === 'DrivenHere'));
      return (
        told.length > 0 &&
        told.every(
          (each) =>
            each?.status === 'CONDITION_STATUS_FALSE' && /ledgerctl store restore/.test(each.message ?? ''),
        )
      );
    });
    expect(restored.log.filter((line) => line.includes('hub left alone'))).to.not.deep.equal([]);
  });

  it('drives nothing: neither a deletion nor a new order reaches a hub', async () => {
    await beside.alice.send('DELETE', `${CLUSTERS}/${id}`);
    const { id: fresh } = await beside.alice.send<ClusterBody>('POST', CLUSTERS, order('fresh'));
    // The live service works on while the other one has had its chances.
    const { id: other } = await alice.send<ClusterBody>('POST', CLUSTERS, order('meanwhile'));
    await untilCluster(alice, other, isReady);
    const { items } = await admin.get<{ items: readonly Hub[] }>(`${PRIVATE}/hubs`);
    const calls = items.flatMap((hub) => readHubCalls(simulatedHubFile(join(live.dataDir, 'hubs'), hub.id)));
    const writes = calls.filter(({ operation }) => ['create', 'patch', 'delete'].includes(operation));
    expect(writes.filter(({ effectId }) => effectId.includes(fresh))).to.deep.equal([]);
    expect(writes.filter(({ operation }) => operation === 'delete')).to.deep.equal([]);
    const told = JSON.stringify(await beside.admin.get<object>(`/api/ledger/v1/orders/${id}`));
    expect(told).to.match(/"held_back":"hub sim-[^"]* is left alone: /);
    expect(isReady(await alice.get<ClusterBody>(`${CLUSTERS}/${id}`))).to.equal(true);
  });

  it('leaves the live service alone, which goes on at once after kill -9', async () => {
    await live.stop('SIGKILL');
    await live.start();
    alice = await live.client({ tenant: 'acme', user: 'alice' });
    const { id: next } = await alice.send<ClusterBody>('POST', CLUSTERS, order('next'));
    await untilCluster(alice, next, isReady);
    const held = live.service().log.filter((line) => /hub left alone|waiting whether/.test(line));
    expect(held).to.deep.equal([]);
  });
});
