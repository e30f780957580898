import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { createEventStoreDbStore } from '../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { DEPLOYMENT_STREAM, LOG_FORM } from '../../src/app/deployment/deployment.ts';
import { runMain } from '../support/service/run-main.ts';
import { E2E_STORES, createStack, until, type Stack } from '../support/service/stack.ts';

/** The log as a version of the service with other stored shapes leaves it. */
const putForm = async ({ dataDir, environment }: Stack, form: number): Promise<void> => {
  const connectionString = environment['LEDGER_EVENT_STORE'];
  const log =
    connectionString === undefined
      ? await openSqliteEventStore({ dataDir })
      : await createEventStoreDbStore({ connectionString, instance: 'other' });
  for await (const { id: _id, revision, type, data, metadata } of log.readStream(DEPLOYMENT_STREAM, {
    direction: 'backward',
    limit: 1,
  }))
    await log.append(DEPLOYMENT_STREAM, revision, [
      {
        id: randomUUID(),
        type,
        data: JSON.stringify({ ...data, form }),
        metadata: JSON.stringify(metadata),
      },
    ]);
  await log.close();
};

/** One process at a time works in a data directory, whichever store holds the log. */
for (const store of E2E_STORES)
  describe(`the data directory (${store})`, function () {
    this.timeout(180_000);
    let stack: Stack;
    beforeEach(async () => {
      stack = await createStack(store);
    });
    afterEach(() => stack.dispose());

    it('is refused to a second service, which says who has it and what to do', async () => {
      const first = await stack.start();
      const second = await runMain(['serve'], stack.environment);
      expect(second.code, second.err).to.equal(1);
      expect(second.err)
        .to.include(`the data directory ${stack.dataDir} is in use by process ${first.pid}: `)
        .and.to.include('LEDGER_DATA_DIR')
        .and.not.to.match(/\n\s+at /);
      expect(second.out).not.to.include('lease taken');
    });

    it('is refused when another version of the service wrote it, in one sentence', async () => {
      await stack.start();
      await stack.stop('SIGTERM');
      for (const form of [LOG_FORM - 1, LOG_FORM + 1]) {
        await putForm(stack, form);
        const refused = await runMain(['serve'], stack.environment);
        expect(refused.code, refused.err).to.equal(1);
        expect(refused.err).to.match(
          new RegExp(
            `^ledgerctl: the event log was written by another version of this service \\(form ${form}, .*` +
              'name another LEDGER_DATA_DIR.*or run the version that wrote it\\n$',
          ),
        );
        expect(refused.out).not.to.include('"listening"');
      }
    });

    it('is free after kill -9, and the next start has its leases back at once', async () => {
      const isLive = (log: readonly string[]) => log.some((line) => line.includes('process runner is live'));
      const first = await stack.start();
      await until('the first one works', async () => isLive(first.log));
      await stack.stop('SIGKILL');
      const next = await stack.start();
      const ready = performance.now();
      await until('the next one works', async () => isLive(next.log));
      // The time of a lease is 15 s, and whoever waits for its end waits 18.
      expect(performance.now() - ready).to.be.below(14_000);
    });
  });
