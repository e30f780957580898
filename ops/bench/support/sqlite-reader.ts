import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import type { LogReader } from '../../../src/projections/log-reader.ts';

/** Reader module of the projection workers: the embedded log of a data directory. */
export const openLogReader = (config: { dataDir: string }): LogReader => openSqliteLogReader(config);
