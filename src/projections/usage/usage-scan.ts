import { DatabaseSync } from 'node:sqlite';
import {
  createUsageSum,
  type UsageInterval,
  type UsageQuery,
  type UsageRow,
} from '../../domain/metering/usage.ts';
import { UsageRefused } from './usage-refused.ts';

/** Most rows of one answer: a wish for more is told to ask for less at once. */
export const MAX_USAGE_ROWS = 100_000;

const COLUMNS =
  'kind, resource, tenant, project, template, resource_name, template_name, component, node_set, host_type, node_count, since_ms, until_ms, delivered_ms';

/** Adds up one file, all of it as it was at the beginning. Holds its thread until it is done: not for the HTTP thread. */
export const scanUsageFile = (path: string, query: UsageQuery): readonly UsageRow[] => {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  try {
    return scanUsage(db, query);
  } finally {
    db.close();
  }
};

/** Throws UsageRefused when the answer would have too many rows. */
export const scanUsage = (db: DatabaseSync, query: UsageQuery): readonly UsageRow[] => {
  const sum = createUsageSum(query);
  const { tenant } = query.only;
  const from = query.periods[0]?.fromMs ?? 0;
  const to = query.periods.at(-1)?.toMs ?? 0;
  const ofTenant = tenant === undefined ? '' : 'tenant = ? AND';
  const overlapping = `${ofTenant} (until_ms IS NULL OR until_ms > ?) AND since_ms < ?`;
  const statement = db.prepare(`SELECT ${COLUMNS} FROM intervals WHERE ${overlapping}`);
  const values = tenant === undefined ? [from, to] : [tenant, from, to];
  for (const row of statement.iterate(...values)) {
    sum.add(intervalOf(row));
    if (sum.size() > MAX_USAGE_ROWS) throw new UsageRefused('too-many-rows');
  }
  return sum.rows();
};

const intervalOf = (row: Record<string, unknown>): UsageInterval => ({
  kind: String(row['kind']),
  resource: String(row['resource']),
  tenant: String(row['tenant']),
  project: String(row['project']),
  template: String(row['template']),
  resourceName: String(row['resource_name']),
  templateName: String(row['template_name']),
  component: String(row['component']),
  nodeSet: String(row['node_set']),
  hostType: String(row['host_type']),
  nodeCount: Number(row['node_count']),
  sinceMs: Number(row['since_ms']),
  untilMs: row['until_ms'] === null ? undefined : Number(row['until_ms']),
  deliveredMs: row['delivered_ms'] === null ? undefined : Number(row['delivered_ms']),
});
