import { join } from 'node:path';

/** Names inside a data directory. */
export const logFile = (dataDir: string): string => join(dataDir, 'events.db');
export const lockFile = (dataDir: string): string => join(dataDir, 'events.lock');
/** Process id of the last holder of the lock: only to say who it is. */
export const holderFile = (dataDir: string): string => join(dataDir, 'events.holder');
