import { existsSync } from 'node:fs';
import { createLogReader } from '../adapters/event-store/sqlite/log-reader.ts';
import { logFile } from '../adapters/event-store/sqlite/files.ts';
import { openLogForReading } from '../adapters/event-store/sqlite/schema.ts';
import { createGrowth } from '../adapters/event-store/shared/paged-subscription.ts';
import { verifyStore, type StoreReport } from '../app/audit/bundle/verify-store.ts';
import type { Trust } from '../app/audit/merkle/key-chain.ts';
import type { StoreToCheck } from '../cli/connection.ts';

/** Compares the events of a stopped embedded store, or of a backup, with all heads that were signed over them. */
export const verifyStoppedStore = async (which: StoreToCheck, trust?: Trust): Promise<StoreReport> => {
  const file = 'file' in which ? which.file : logFile(which.dataDir);
  if (!existsSync(file)) throw new Error(`there is no event log at ${file}`);
  const log = createLogReader(openLogForReading(file), file, createGrowth());
  try {
    return await verifyStore(log, trust === undefined ? {} : { trust });
  } finally {
    await log.close();
  }
};
