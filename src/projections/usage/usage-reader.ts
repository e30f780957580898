import type { Holder } from '../../domain/holder.ts';
import type { Metering } from '../../domain/metering/meter.ts';
import type { UsageQuery, UsageRow } from '../../domain/metering/usage.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import type { UsageScans } from './usage-scans.ts';

export type UsageReader = {
  /** Rejects with UsageRefused. */
  readonly sum: (query: UsageQuery, signal: AbortSignal) => Promise<readonly UsageRow[]>;
  /** Meters of what is billed at present, by kind and id after `after`: what heartbeats are made of. */
  readonly billed: (page: { readonly after: Holder; readonly limit: number }) => readonly Billed[];
};

type Billed = { readonly place: Holder; readonly meter: Metering };

/** Statements of the HTTP thread; their query plans are tested. */
export const USAGE_STATEMENTS = {
  billed:
    'SELECT kind, resource, meter FROM meters WHERE billed = 1 AND (kind, resource) > (?, ?) ORDER BY kind, resource LIMIT ?',
} as const;

export const usageReader = (connection: ReadConnection, scans: Pick<UsageScans, 'run'>): UsageReader => ({
  sum: scans.run,
  billed: ({ after, limit }) =>
    connection
      .statement(USAGE_STATEMENTS.billed)
      .all(after.kind, after.id, limit)
      .map((row) => ({
        place: { kind: String(row['kind']), id: String(row['resource']) },
        meter: JSON.parse(String(row['meter'])) as Metering,
      })),
});
