import { existsSync } from 'node:fs';
import { BroadcastChannel } from 'node:worker_threads';
import { createGrowth } from '../shared/paged-subscription.ts';
import { logFile } from './files.ts';
import { createLogReader, type EventLogReader } from './log-reader.ts';
import { openLogForReading } from './schema.ts';
import { createSharedPages, type SharedPages } from './shared-pages.ts';
import { GATHERED_MS, growthChannel, type GrowthPace } from './writer-protocol.ts';

/** Milliseconds between looks when no word of the writer comes: a net, not the way events arrive. */
const POLL_MS = 1000;

export type SqliteLogReaderOptions = {
  readonly dataDir: string;
  /** Milliseconds to wait for a lock on the file. Default 5,000. */
  readonly busyMs?: number;
  /** With the others of this thread that say so, the end of the log is read once. Default: false. */
  readonly shared?: boolean;
};

/** By file, with the number of their readers. */
const shared = new Map<string, { readonly pages: SharedPages; readers: number }>();

const share = (file: string) => {
  const found = shared.get(file) ?? { pages: createSharedPages(), readers: 0 };
  shared.set(file, found);
  found.readers += 1;
  let left = false;
  return {
    pages: found.pages,
    leave: (): void => {
      if (left) return;
      left = true;
      found.readers -= 1;
      if (found.readers === 0) shared.delete(file);
    },
  };
};

/**
 * The reading half of an embedded log, in any thread of the process that writes it (and in other processes, where
 * new events arrive within a second). The log must exist. Throws StoreDamaged and StoreTooNew.
 */
export const openSqliteLogReader = (options: SqliteLogReaderOptions): EventLogReader => {
  const file = logFile(options.dataDir);
  if (!existsSync(file)) throw new Error(`no event log in ${options.dataDir}`);
  const db = openLogForReading(file, options.busyMs);
  const growth = createGrowth({ pollMs: POLL_MS });
  const following = options.shared === true ? share(file) : undefined;
  const reader = createLogReader(db, file, growth, following?.pages);
  const channels = new Map<GrowthPace, BroadcastChannel>();
  const listen = (pace: GrowthPace): void => {
    if (channels.has(pace)) return;
    const channel = new BroadcastChannel(growthChannel(reader.storeId, pace));
    channel.onmessage = (message): void => growth.grew(Number((message as MessageEvent).data));
    channel.unref();
    channels.set(pace, channel);
  };
  return {
    ...reader,
    subscribe: ({ patienceMs = 0, ...options }) => {
      // A thread that is told of every COMMIT is woken for every COMMIT: who can wait listens to fewer words.
      listen(patienceMs >= GATHERED_MS ? 'gathered' : 'each');
      return reader.subscribe({ ...options, patienceMs: patienceMs >= GATHERED_MS ? 0 : patienceMs });
    },
    close: async () => {
      for (const channel of channels.values()) channel.close();
      following?.leave();
      await reader.close();
    },
  };
};
