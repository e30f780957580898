import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/event-store.ts';
import { CLUSTER_CATEGORY } from '../../domain/clusters/cluster.ts';
import type { ClusterEvent } from '../../domain/clusters/events.ts';
import { isStoredCluster } from '../../domain/clusters/state.ts';
import {
  initialMeter,
  meterEvent,
  METER_VERSION,
  type ClosedInterval,
  type ClusterMeter,
  type OpenInterval,
} from '../../domain/metering/cluster-meter.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { Decode } from '../resources/fold.ts';
import type { View } from '../view.ts';
import { USAGE_SCHEMA, USAGE_TABLES } from './schema.ts';
import { verifyUsage } from './verify.ts';

export type UsageViewOptions = { readonly codec: Pick<Decode, 'decode'>; readonly stateVersion: number };

/** Intervals of clusters that OSAC's metering bills, with the first READY, from which on `usage` bills them, as the metering topics tell them too: both fold the same events by one function. */
export const usageView = ({ codec, stateVersion }: UsageViewOptions): View => ({
  name: 'usage',
  version: 2,
  settings: JSON.stringify({ stateVersion, meter: METER_VERSION }),
  schema: USAGE_SCHEMA,
  tables: USAGE_TABLES,
  filter: { streamPrefixes: [`${CLUSTER_CATEGORY}-`] },
  together: true,
  rowsBelongToOneStream: true,
  // No write waits for it; bills are made later.
  isUrgent: false,
  open: (db) => openUsage(db, codec),
  verify: (db, readStream) => verifyUsage(db, codec, readStream),
});

/** Clusters kept folded between batches: what is touched again soon need not be parsed again. */
const KEPT_METERS = 2_000;

type Entry = { revision: number; meter: ClusterMeter };

const openUsage = (db: DatabaseSync, codec: Pick<Decode, 'decode'>): ReturnType<View['open']> => {
  const select = db.prepare('SELECT revision, meter FROM meters WHERE resource = ?');
  const upsert = db.prepare(
    `INSERT INTO meters VALUES (?, ?, ?, ?) ON CONFLICT (resource) DO UPDATE SET
       revision = excluded.revision, billed = excluded.billed, meter = excluded.meter`,
  );
  const intervals = openIntervals(db);
  const entries = new Map<string, Entry>();
  const dirty = new Set<string>();

  const entryOf = (id: string): Entry => {
    const known = entries.get(id);
    if (known !== undefined) return known;
    const row = select.get(id);
    const entry: Entry =
      row === undefined
        ? { revision: -1, meter: initialMeter() }
        : { revision: Number(row['revision']), meter: JSON.parse(String(row['meter'])) as ClusterMeter };
    entries.set(id, entry);
    return entry;
  };

  const apply = (event: RecordedEvent): void => {
    const { id } = parseStreamName(event.stream);
    const entry = entryOf(id);
    if (event.revision <= entry.revision) return; // a redelivery
    // The fold passes types that it does not know.
    const { meter, closed, opened } = meterEvent(entry.meter, codec.decode(event) as ClusterEvent);
    for (const interval of closed) intervals.close(id, interval);
    for (const interval of opened) intervals.open(meter, interval);
    if (meter.deliveredMs !== entry.meter.deliveredMs) intervals.deliver(id, meter.deliveredMs);
    entry.meter = meter;
    entry.revision = event.revision;
    dirty.add(id);
  };

  const flush = (): void => {
    for (const id of dirty) {
      const entry = entries.get(id);
      if (entry === undefined) continue;
      const { revision, meter } = entry;
      upsert.run(id, revision, meter.open.length > 0 ? 1 : 0, JSON.stringify(meter));
      entries.delete(id); // and in again: what was touched last is forgotten last
      entries.set(id, entry);
    }
    dirty.clear();
    for (const id of entries.keys()) {
      if (entries.size <= KEPT_METERS) return;
      entries.delete(id);
    }
  };

  const reset = (): void => {
    entries.clear();
    dirty.clear();
  };

  return Object.assign(apply, { flush, reset });
};

const openIntervals = (db: DatabaseSync) => {
  const insert = db.prepare(
    'INSERT OR REPLACE INTO intervals VALUES (?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  const end = db.prepare(
    'UPDATE intervals SET until_ms = ? WHERE resource = ? AND component = ? AND node_set = ? AND since_ms = ?',
  );
  const deliver = db.prepare('UPDATE intervals SET delivered_ms = ? WHERE resource = ?');
  const drop = db.prepare(
    'DELETE FROM intervals WHERE resource = ? AND component = ? AND node_set = ? AND since_ms = ?',
  );
  return {
    open: (meter: ClusterMeter, { component: of, sinceMs }: OpenInterval): void => {
      const { cluster, deliveredMs = null } = meter;
      if (!isStoredCluster(cluster)) return;
      const { id, tenant, project, template, name } = cluster;
      const { component, nodeSet, hostType, nodeCount } = of;
      insert.run(
        id,
        component,
        nodeSet,
        sinceMs,
        CLUSTER_CATEGORY,
        tenant,
        project,
        template.id,
        name,
        template.name,
        deliveredMs,
        hostType,
        nodeCount,
      );
    },
    deliver: (id: string, deliveredMs: number | undefined): void => void deliver.run(deliveredMs ?? null, id),
    close: (id: string, { component: { component, nodeSet }, sinceMs, untilMs }: ClosedInterval): void => {
      if (untilMs > sinceMs) end.run(untilMs, id, component, nodeSet, sinceMs);
      else drop.run(id, component, nodeSet, sinceMs);
    },
  };
};
