import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startService, type Service } from '../../../src/composition/service.ts';
import { readConfig } from '../../../src/config.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

/** The whole service with its threads; the server counts what is open. */
describe('the subscriptions of a service on an EventStoreDB', function () {
  this.timeout(60_000);
  const bench = createBench();
  let directory: string;
  let service: Service | undefined;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-subscriptions-'));
  });
  afterEach(async () => {
    await service?.stop();
    service = undefined;
    await bench.clean();
    await rm(directory, { recursive: true });
  });

  const started = async (connectionString: string): Promise<Service> => {
    const config = readConfig({
      LEDGER_DATA_DIR: directory,
      LEDGER_EVENT_STORE: connectionString,
      LEDGER_CATALOG: join(import.meta.dirname, '../../../fixtures/catalog'),
      LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
      LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
      LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
    });
    return startService(config, { logger: silentLogger, nodeEnv: 'test', announce: () => undefined });
  };

  it('are one, with all roles caught up, at the first start and at the next', async () => {
    const peer = await bench.peer();
    for (const start of ['first', 'next']) {
      service = await started(peer.connectionString);
      const ready = async (): Promise<boolean> => (await fetch(`${service?.http}/readyz`)).status === 200;
      await eventually(`ready at the ${start} start`, ready, 30_000);
      await eventually('one subscription is left', () => peer.stats.openSubscriptions === 1, 30_000);
      await service.stop();
      service = undefined;
      await eventually('none is left', () => peer.stats.openSubscriptions === 0);
    }
  });
});
