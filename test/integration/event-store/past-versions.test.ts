import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { EventStore, EventToAppend } from '../../../src/app/log/event-store.ts';
import { accounts, type AccountCommand } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';

type Opened = { readonly store: EventStore; readonly close: () => Promise<void> };

const STORES: Readonly<Record<string, () => Promise<Opened>>> = {
  memory: async () => ({ store: createMemoryEventStore(), close: async () => undefined }),
  sqlite: async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'ledger-past-'));
    const store = await openSqliteEventStore({ dataDir });
    return {
      store,
      close: async () => {
        await store.close();
        rmSync(dataDir, { recursive: true });
      },
    };
  },
  'eventstoredb, against the protocol peer': async () => {
    const bench = createBench();
    const store = await bench.store(await bench.peer(), { deadlineMs: 15_000 });
    return { store, close: bench.clean };
  },
};

/** More than one page of a read, and more than is looked at in one turn. */
const VERSIONS = 600;

/** The events of many commands, made once in memory. */
const history = async (stream: string): Promise<readonly EventToAppend[]> => {
  const store = createMemoryEventStore();
  const { runner } = createTestRunner(store);
  const commands: readonly AccountCommand[] = [
    { type: 'OpenAccount', owner: 'ann' },
    ...Array.from({ length: VERSIONS }, (_, i): AccountCommand => {
      const deposit = { amount: 1, deposit: `d${i + 1}` };
      return i % 3 === 0 ? { type: 'DepositAndNote', ...deposit } : { type: 'Deposit', ...deposit };
    }),
    { type: 'TakeNote', text: 'changes no document' },
  ];
  for (const [i, command] of commands.entries())
    await runner.execute(accounts, 'a', command, fakeContext(`c${i}`));
  const events = await collect(store.readStream(stream));
  return events.map(({ id, type, data, metadata }) => ({
    id,
    type,
    data: JSON.stringify(data),
    metadata: JSON.stringify(metadata),
  }));
};

for (const [name, open] of Object.entries(STORES))
  describe(`an object as of a version, on ${name}`, function () {
    this.timeout(60_000);
    let opened: Opened;
    before(async () => {
      opened = await open();
      const stream = 'account-a';
      await opened.store.append(stream, 'no_stream', await history(stream));
    });
    after(() => opened.close());

    it('is what it was, for an instance that wrote nothing itself', async () => {
      const { runner } = createTestRunner(opened.store);
      for (const version of [0, 1, 2, 299, VERSIONS - 1, VERSIONS]) {
        const loaded = await runner.loadVersion(accounts, 'a', version);
        const state = { status: 'open', owner: 'ann', balance: version };
        expect(loaded?.version, String(version)).to.equal(version);
        expect(loaded?.state, String(version)).to.deep.include(state);
      }
      for (const version of [-1, VERSIONS + 1])
        expect(await runner.loadVersion(accounts, 'a', version)).to.equal(undefined);
    });
  });
