import { join } from 'node:path';

/** Names inside a data directory. */
export const logFile = (dataDir: string): string => join(dataDir, 'events.db');
