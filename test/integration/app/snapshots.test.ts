import { expect } from 'chai';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteSnapshots } from '../../../src/adapters/snapshots/sqlite-snapshots.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { emptyStream, foldRecorded } from '../../../src/app/commands/loaded-streams.ts';
import type { Snapshot } from '../../../src/app/commands/snapshot-store.ts';
import { account, accountCodec, accounts } from '../../support/commands/fake-account.ts';
import { collect, createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { silentLogger } from '../../support/loggers.ts';

const deposit = (name: string) => ({ type: 'Deposit', amount: 1, deposit: name }) as const;

describe('snapshots', () => {
  let directory: string;
  const opened: ReturnType<typeof openSqliteSnapshots>[] = [];
  const open = (storeId = 'store-1', file = 'snapshots.db') => {
    const snapshots = openSqliteSnapshots({ file: join(directory, file), storeId, logger: silentLogger });
    opened.push(snapshots);
    return snapshots;
  };
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-snapshots-'));
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((snapshots) => snapshots.close()));
    await rm(directory, { recursive: true, force: true });
  });

  const snapshot = (revision: number): Snapshot => ({
    stream: 'account-a',
    revision,
    eventId: `event ${revision}`,
    stateVersion: 1,
    content: { state: { balance: revision, when: [1, null, 'x'], by: new Map([['a', new Set([1])]]) } },
  });

  it('keep the newest of each stream over a restart', async () => {
    const first = open();
    first.save(snapshot(1));
    first.save(snapshot(2));
    expect(await first.load('account-a')).to.deep.equal(snapshot(2));
    expect(await first.load('account-b')).to.equal(undefined);
    await first.close();
    const second = open();
    expect(await second.load('account-a')).to.deep.equal(snapshot(2));
    expect(second.waiting()).to.equal(0);
  });

  it('need neither a thread nor a file until there is one', async () => {
    const snapshots = open();
    expect(await snapshots.load('account-a')).to.equal(undefined);
    await snapshots.close();
    expect(existsSync(join(directory, 'snapshots.db'))).to.equal(false);
  });

  it('belong to one store', async () => {
    const one = open('store-1');
    one.save(snapshot(1));
    expect(await one.load('account-a')).to.deep.equal(snapshot(1));
    expect(await open('store-2').load('account-a')).to.equal(undefined);
  });

  it('start anew when the file is broken', async () => {
    await writeFile(
      join(directory, 'broken.db'),
      'this is no database, but long enough to look at'.repeat(50),
    );
    const snapshots = open('store-1', 'broken.db');
    snapshots.save(snapshot(1));
    expect(await snapshots.load('account-a')).to.deep.equal(snapshot(1));
  });

  it('are off, and nothing else, when there is no place for them', async () => {
    const snapshots = open('store-1', 'no/such/folder/snapshots.db');
    snapshots.save(snapshot(1));
    expect(await snapshots.load('account-a')).to.equal(undefined);
    snapshots.save(snapshot(2));
    expect(await snapshots.load('account-a')).to.equal(undefined);
  });

  it('do not fail a command whose state cannot be cloned', async () => {
    const snapshots = open();
    snapshots.save({ ...snapshot(1), content: { state: () => 1 } });
    expect(await snapshots.load('account-a')).to.equal(undefined);
  });

  describe('in the command runner', () => {
    const EVENTS = 300;
    const fill = async (store: EventStore, events = EVENTS) => {
      const snapshots = open();
      const { runner } = createTestRunner(store, { snapshots, snapshotEvery: 50 });
      await runner.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('open'));
      for (let i = 1; i < events; i += 1)
        await runner.execute(accounts, 'a', deposit(`d${i}`), fakeContext(`d${i}`));
      return snapshots;
    };
    const reading = (store: EventStore) => {
      const read = { events: 0 };
      const counted: EventStore = {
        ...store,
        async *readStream(...args) {
          for await (const event of store.readStream(...args)) {
            read.events += 1;
            yield event;
          }
        },
      };
      return { counted, read };
    };

    it('give the same state, version and memory of commands as a fold from the beginning', async () => {
      const store = createMemoryEventStore();
      const snapshots = await fill(store);
      const { counted, read } = reading(store);
      const restored = createTestRunner(counted, { snapshots, snapshotEvery: 50 }).runner;
      const plain = createTestRunner(store).runner;
      expect(await restored.load(accounts, 'a')).to.deep.equal(await plain.load(accounts, 'a'));
      expect(read.events, 'the event of the snapshot, and what came after it').to.be.at.most(52);
      for (const runner of [restored, plain]) {
        const again = await runner.execute(accounts, 'a', deposit('d280'), fakeContext('d280'));
        expect(again).to.deep.include({ outcome: 'accepted', replayed: true });
        expect(again.loaded).to.include({ revision: 280 });
      }
    });

    it('serve what is asked as of a later revision, and a repeated command behind them', async () => {
      const store = createMemoryEventStore();
      const snapshots = await fill(store, EVENTS - 20);
      const at = (await snapshots.load('account-a'))?.revision ?? -1;
      expect(at).to.equal(249);
      const { counted, read } = reading(store);
      const restored = createTestRunner(counted, { snapshots, snapshotEvery: 50 }).runner;
      const plain = createTestRunner(store).runner;
      for (const [asOfRevision, most] of [
        [at + 1, 2],
        [at, 1],
        [at - 1, EVENTS],
        [0, 2],
      ] as const) {
        read.events = 0;
        const loaded = await restored.load(accounts, 'a', { asOfRevision });
        expect(loaded).to.deep.equal(await plain.load(accounts, 'a', { asOfRevision }));
        expect(loaded.revision).to.equal(asOfRevision);
        expect(read.events, `at ${asOfRevision}`).to.be.at.most(most);
      }
      for (const revision of [at, at + 1]) {
        const id = `d${revision}`;
        const expected = await plain.execute(accounts, 'a', deposit(id), fakeContext(id));
        expect(await restored.execute(accounts, 'a', deposit(id), fakeContext(id))).to.deep.equal(expected);
        expect(expected).to.deep.include({ replayed: true });
      }
    });

    it('are ignored for another state version: it folds otherwise', async () => {
      const store = createMemoryEventStore();
      const snapshots = await fill(store);
      const evolve: typeof account.evolve = (state, event) => {
        const next = account.evolve(state, event);
        return event.type === 'MoneyDeposited' && next.status === 'open'
          ? { ...next, balance: next.balance + 1 }
          : next;
      };
      const newer = { ...accounts, decider: { ...account, evolve }, stateVersion: 2 };
      const { runner } = createTestRunner(store, { snapshots, snapshotEvery: 50 });
      const { state } = await runner.load(newer, 'a');
      expect(state).to.include({ balance: 2 * (EVENTS - 1) });
    });

    it('are ignored for another history', async () => {
      const snapshots = await fill(createMemoryEventStore());
      // A log that was restored from an older backup and has gone another way since.
      const other = createMemoryEventStore();
      const { runner: writer } = createTestRunner(other);
      await writer.execute(accounts, 'a', { type: 'OpenAccount', owner: 'eve' }, fakeContext('open 2'));
      const load = async () => {
        const readOnly = { ...snapshots, save: () => undefined };
        const { runner } = createTestRunner(other, { snapshots: readOnly, snapshotEvery: 50 });
        return (await runner.load(accounts, 'a')).state;
      };
      for (let i = 1; i < 60; i += 1)
        await writer.execute(accounts, 'a', deposit(`e${i}`), fakeContext(`e${i}`));
      expect(await load(), 'shorter than the snapshot').to.deep.include({ owner: 'eve', balance: 59 });
      for (let i = 60; i < EVENTS + 10; i += 1)
        await writer.execute(accounts, 'a', deposit(`e${i}`), fakeContext(`e${i}`));
      expect(await load(), 'longer: another event stands there').to.deep.include({
        owner: 'eve',
        balance: EVENTS + 9,
      });
    });

    it('hold the thread only for moments while a long stream is folded', async function () {
      this.timeout(30_000);
      const store = createMemoryEventStore();
      const metadata = JSON.stringify({ commandId: 'bulk', requestHash: '' });
      const events = Array.from({ length: 20_000 }, (_, i) => ({
        id: `e${i}`,
        type: i === 0 ? 'AccountOpened' : 'NoteTaken',
        data: i === 0 ? '{"owner":"ann"}' : '{"text":"x"}',
        metadata,
      }));
      await store.append('account-a', 'no_stream', events.slice(0, 10_000));
      await store.append('account-a', 9_999, events.slice(10_000));
      let turns = 0;
      let folding = true;
      const count = (): void => {
        turns += 1;
        if (folding) setImmediate(count);
      };
      setImmediate(count);
      const loaded = await createTestRunner(store).runner.load(accounts, 'a');
      folding = false;
      expect(loaded.revision).to.equal(19_999);
      // One turn of the event loop per slice of at most 256 events.
      expect(turns).to.be.at.least(Math.floor(20_000 / 256) - 1);
    });

    it('fold as the decider does', async () => {
      const store = createMemoryEventStore();
      await fill(store);
      const folded = emptyStream(account.initialState());
      for (const event of await collect(store.readStream('account-a')))
        foldRecorded(folded, account.evolve, accountCodec, event);
      const { state } = await createTestRunner(store).runner.load(accounts, 'a');
      expect(folded.state).to.deep.equal(state);
    });
  });
});
