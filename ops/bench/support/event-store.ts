import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPeerProcess } from '../../../test/support/eventstoredb-peer/process.ts';

/** Connection string of a real EventStoreDB; empty: the protocol peer of the tests answers in its place. */
const REAL = process.env['LEDGER_TEST_EVENTSTOREDB'] ?? '';

/** What answers where an EventStoreDB is measured, for the head of the figures. */
export const EVENTSTOREDB =
  REAL === ''
    ? 'EventStoreDB: the protocol peer in another process, nothing stored'
    : 'EventStoreDB: the server of LEDGER_TEST_EVENTSTOREDB';

/** Starts the peer, or names the real server, whose log stays as the bench leaves it. */
export const openEventStoreDb = async (): Promise<{
  readonly connectionString: string;
  readonly stop: () => Promise<void>;
}> => (REAL === '' ? startPeerProcess() : { connectionString: REAL, stop: () => Promise.resolve() });

const onEventStoreDb = REAL !== '' || process.env['LEDGER_TEST_STORE'] === 'eventstoredb-peer';

/** The store under the services of the benches, for the head of their figures. */
export const SERVICE_STORE = onEventStoreDb ? EVENTSTOREDB : 'sqlite synchronous=FULL';

/** Settings of a service for that store, and what ends with it. */
export const serviceStore = async (): Promise<{
  readonly settings: Readonly<Record<string, string>>;
  readonly stop: () => Promise<void>;
}> => {
  if (!onEventStoreDb) return { settings: {}, stop: () => Promise.resolve() };
  const { connectionString, stop } = await openEventStoreDb();
  const settings = { LEDGER_EVENT_STORE: connectionString };
  return { settings: REAL === '' ? settings : { ...settings, LEDGER_SECRETS_DIR: keptSecrets() }, stop };
};

/** A log belongs to the keys that it was begun with: the next bench on the same server needs them again. */
const keptSecrets = (): string =>
  join(tmpdir(), `ledger-bench-secrets-${createHash('sha256').update(REAL).digest('hex').slice(0, 12)}`);
