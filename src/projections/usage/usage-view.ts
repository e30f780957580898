import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import {
  METER_VERSION,
  type ClosedInterval,
  type Meter,
  type Metering,
  type OpenInterval,
} from '../../domain/metering/meter.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { Decode } from '../resources/fold.ts';
import type { View } from '../view.ts';
import { verifyUsage } from './verify.ts';

/** Tables of the view `usage`: the meter of every object that is metered, and the intervals that OSAC's metering bills. */
export const USAGE_SCHEMA = `
  -- Each meter as of a revision of its object's stream. billed: some of its components are at present.
  CREATE TABLE meters (
    kind TEXT NOT NULL,
    resource TEXT NOT NULL,
    revision INTEGER NOT NULL,
    billed INTEGER NOT NULL,
    meter TEXT NOT NULL,
    PRIMARY KEY (kind, resource)
  ) STRICT;
  CREATE INDEX meters_billed ON meters (billed, kind, resource);

  -- Milliseconds since 1970; until_ms NULL: it goes on. Nothing of no length is kept. delivered_ms: first READY of the object; NULL: not yet.
  CREATE TABLE intervals (
    resource TEXT NOT NULL,
    component TEXT NOT NULL,
    node_set TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    template TEXT NOT NULL,
    resource_name TEXT NOT NULL,
    template_name TEXT NOT NULL,
    delivered_ms INTEGER,
    host_type TEXT NOT NULL,
    node_count INTEGER NOT NULL,
    PRIMARY KEY (kind, resource, component, node_set, since_ms)
  ) STRICT;
  CREATE INDEX intervals_until ON intervals (until_ms);
  CREATE INDEX intervals_of_tenant ON intervals (tenant, until_ms);
`;
const USAGE_TABLES = ['meters', 'intervals'] as const;

type MeteredKind = Pick<ActingKind, 'kind' | 'stateVersion'> & { readonly meter: Meter };
type UsageViewOptions = {
  readonly codec: Pick<Decode, 'decode'>;
  readonly kinds: readonly MeteredKind[];
};

/**
 * Intervals that metering bills, with the first READY, from which on `usage` bills them, as the metering topics tell them
 * too: both fold the same events by one function.
 */
export const usageView = ({ codec, kinds }: UsageViewOptions): View => ({
  name: 'usage',
  version: 3,
  settings: JSON.stringify({
    meter: METER_VERSION,
    kinds: kinds.map(({ kind, stateVersion, meter }) => [kind, stateVersion, meter.version]),
  }),
  schema: USAGE_SCHEMA,
  tables: USAGE_TABLES,
  filter: { streamPrefixes: kinds.map(({ kind }) => `${kind}-`) },
  rowsBelongToOneStream: true,
  // No write waits for it; bills are made later.
  isUrgent: false,
  gatherMs: 100,
  open: (db) => openUsage(db, codec, kinds),
  verify: (db, readStream) => verifyUsage(db, codec, kinds, readStream),
});

/** Meters kept folded between batches: what is touched again soon need not be parsed again. */
const KEPT_METERS = 2_000;

type Entry = { readonly kind: string; readonly id: string; revision: number; meter: Metering };

const openUsage = (
  db: DatabaseSync,
  codec: Pick<Decode, 'decode'>,
  kinds: readonly MeteredKind[],
): ReturnType<View['open']> => {
  const meters = new Map(kinds.map(({ kind, meter }) => [kind, meter]));
  const select = db.prepare('SELECT revision, meter FROM meters WHERE kind = ? AND resource = ?');
  const upsert = db.prepare(
    `INSERT INTO meters VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, resource) DO UPDATE SET
       revision = excluded.revision, billed = excluded.billed, meter = excluded.meter`,
  );
  const intervals = openIntervals(db);
  const entries = new Map<string, Entry>();
  const dirty = new Set<string>();

  const entryOf = (stream: string, kind: string, id: string, rules: Meter): Entry => {
    const known = entries.get(stream);
    if (known !== undefined) return known;
    const row = select.get(kind, id);
    const stored =
      row === undefined
        ? { revision: -1, meter: rules.initial() }
        : { revision: Number(row['revision']), meter: JSON.parse(String(row['meter'])) as Metering };
    const entry: Entry = { kind, id, ...stored };
    entries.set(stream, entry);
    return entry;
  };

  const apply = (event: RecordedEvent): void => {
    const { stream } = event;
    const { category, id } = parseStreamName(stream);
    const rules = meters.get(category);
    if (rules === undefined) return;
    const entry = entryOf(stream, category, id, rules);
    if (event.revision <= entry.revision) return; // a redelivery
    const { meter, closed, opened } = rules.fold(entry.meter, codec.decode(event));
    for (const interval of closed) intervals.close(category, id, interval);
    for (const interval of opened) intervals.open(category, meter, interval);
    if (meter.deliveredMs !== entry.meter.deliveredMs) intervals.deliver(category, id, meter.deliveredMs);
    entry.meter = meter;
    entry.revision = event.revision;
    dirty.add(stream);
  };

  const flush = (): void => {
    for (const stream of dirty) {
      const entry = entries.get(stream);
      if (entry === undefined) continue;
      const { kind, id, revision, meter } = entry;
      upsert.run(kind, id, revision, meter.open.length > 0 ? 1 : 0, JSON.stringify(meter));
      entries.delete(stream); // and in again: what was touched last is forgotten last
      entries.set(stream, entry);
    }
    dirty.clear();
    for (const stream of entries.keys()) {
      if (entries.size <= KEPT_METERS) return;
      entries.delete(stream);
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
    'UPDATE intervals SET until_ms = ? WHERE kind = ? AND resource = ? AND component = ? AND node_set = ? AND since_ms = ?',
  );
  const deliver = db.prepare('UPDATE intervals SET delivered_ms = ? WHERE kind = ? AND resource = ?');
  const drop = db.prepare(
    'DELETE FROM intervals WHERE kind = ? AND resource = ? AND component = ? AND node_set = ? AND since_ms = ?',
  );
  return {
    open: (kind: string, meter: Metering, { component: of, sinceMs }: OpenInterval): void => {
      const { facts, deliveredMs = null } = meter;
      if (facts === undefined) return;
      const { id, tenant, project, template, name } = facts;
      const { component, nodeSet, hostType, nodeCount } = of;
      insert.run(
        id,
        component,
        nodeSet,
        sinceMs,
        kind,
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
    deliver: (kind: string, id: string, deliveredMs: number | undefined): void =>
      void deliver.run(deliveredMs ?? null, kind, id),
    close: (
      kind: string,
      id: string,
      { component: { component, nodeSet }, sinceMs, untilMs }: ClosedInterval,
    ): void => {
      if (untilMs > sinceMs) end.run(untilMs, kind, id, component, nodeSet, sinceMs);
      else drop.run(kind, id, component, nodeSet, sinceMs);
    },
  };
};
