import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';

describe('commands in line on the embedded store', function () {
  this.timeout(20_000);
  const dataDir = mkdtempSync(join(tmpdir(), 'ledger-lines-'));
  after(() => rmSync(dataDir, { recursive: true, force: true }));

  it('keep their order over many batches: none is carried out again, and the stream is not read again', async () => {
    const store = await openSqliteEventStore({ dataDir });
    const calls = { append: 0, readStream: 0 };
    const counted: EventStore = {
      ...store,
      append: (...args) => {
        calls.append += 1;
        return store.append(...args);
      },
      readStream: (...args) => {
        // Backward, an earlier append of the same command is looked for: there is no index of commands here.
        if (args[1]?.direction !== 'backward') calls.readStream += 1;
        return store.readStream(...args);
      },
    };
    try {
      const { runner } = createTestRunner(counted);
      const owner = { type: 'OpenAccount', owner: 'ann' } as const;
      await runner.execute(accounts, 'a', owner, fakeContext('open'));
      const before = { ...calls };
      const clients = Array.from({ length: 20 }, async (_, client) => {
        for (let i = 0; i < 25; i += 1) {
          const id = `${client}.${i}`;
          const command = { type: 'Deposit', amount: 1, deposit: id } as const;
          await runner.execute(accounts, 'a', command, fakeContext(id), { inLine: true });
          // Other streams share the batches, so that answers of one are told over several turns.
          await runner.execute(accounts, `b${client}.${i}`, owner, fakeContext(`b${id}`), {
            likelyNew: true,
          });
        }
      });
      await Promise.all(clients);
      expect(calls).to.deep.equal({ append: before.append + 1000, readStream: before.readStream });
      const { state } = await runner.load(accounts, 'a');
      expect(state.status === 'open' && state.balance).to.equal(500);
    } finally {
      await store.close();
    }
  });
});
