import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWriterFaults } from '../../../src/adapters/event-store/sqlite/faults.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { describeEventStoreContract } from './contract.ts';

describeEventStoreContract('sqlite', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'event-log-'));
  const faults = createWriterFaults();
  const open = (): Promise<SqliteEventStore> => openSqliteEventStore({ dataDir, faults, stuckMs: 1500 });
  let store = await open();
  return {
    store,
    dispose: async () => {
      faults.resume();
      await store.close();
      await rm(dataDir, { recursive: true });
    },
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
    unresponsive: async () => {
      faults.hang();
      return async () => faults.resume();
    },
    // What is asked for in one turn goes to the writer at its end.
    sent: () => new Promise(setImmediate),
    loseNextAnswer: async () => faults.loseNextAnswer(),
    dropConnections: async () => faults.crashNext(),
    down: async () => {
      faults.refuseStart(true);
      faults.crashNext();
      await store.ping().catch(() => undefined);
      return async () => faults.refuseStart(false);
    },
  };
}, ['reopen', 'unresponsive', 'loseNextAnswer', 'dropConnections', 'down']);
