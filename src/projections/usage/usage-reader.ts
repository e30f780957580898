import type { ClusterMeter } from '../../domain/metering/cluster-meter.ts';
import type { UsageQuery, UsageRow } from '../../domain/metering/usage.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import type { UsageScans } from './usage-scans.ts';

export type UsageReader = {
  /** Rejects with UsageRefused. */
  readonly sum: (query: UsageQuery, signal: AbortSignal) => Promise<readonly UsageRow[]>;
  /** Meters of clusters that are billed at present, by cluster id after `after`: what heartbeats are made of. */
  readonly billed: (page: {
    readonly after: string;
    readonly limit: number;
  }) => readonly { readonly resource: string; readonly meter: ClusterMeter }[];
};

/** Statements of the HTTP thread; their query plans are tested. */
export const USAGE_STATEMENTS = {
  billed: 'SELECT resource, meter FROM meters WHERE billed = 1 AND resource > ? ORDER BY resource LIMIT ?',
} as const;

export const usageReader = (connection: ReadConnection, scans: Pick<UsageScans, 'run'>): UsageReader => ({
  sum: scans.run,
  billed: ({ after, limit }) =>
    connection
      .statement(USAGE_STATEMENTS.billed)
      .all(after, limit)
      .map((row) => ({
        resource: String(row['resource']),
        meter: JSON.parse(String(row['meter'])) as ClusterMeter,
      })),
});
