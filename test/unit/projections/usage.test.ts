import { expect } from 'chai';
import fc from 'fast-check';
import { DatabaseSync } from 'node:sqlite';
import { meteredKinds } from '../../../src/domain/acting-kinds.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { evolveCluster } from '../../../src/domain/clusters/cluster.ts';
import { type ClusterEvent, initialCluster, isStoredCluster } from '../../../src/domain/clusters/state.ts';
import { cluster as clusterKind } from '../../../src/domain/kinds.ts';
import { numberAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { UsagePeriod, UsageQuery, UsageRow } from '../../../src/domain/metering/usage.ts';
import { UsageRefused } from '../../../src/projections/usage/usage-refused.ts';
import { scanUsage } from '../../../src/projections/usage/usage-scan.ts';
import { createUsageScans } from '../../../src/projections/usage/usage-scans.ts';
import { openReadConnection } from '../../../src/projections/runner/read-connection.ts';
import { usageReader } from '../../../src/projections/usage/usage-reader.ts';
import { usageView } from '../../../src/projections/usage/usage-view.ts';
import { clusterHistories } from '../../support/arbitraries/cluster-histories.ts';
import { check } from '../../support/property.ts';
import { recorded } from '../../support/streams/samples.ts';
import { toyKind } from '../../support/process-runner/toy-kind.ts';
import { order, ordered } from '../domain/clusters/samples.ts';

const view = usageView({ codec: { decode: ({ type, data }) => ({ type, data }) }, kinds: meteredKinds });
const START = Date.parse(ordered.at);
const END = START + 200_000_000;

type Life = { readonly id: string; readonly tenant: string; readonly events: readonly RecordedEvent[] };

/** The history of a cluster of its own tenant, as the store gives it. */
const lifeOf = (n: number, history: readonly ClusterEvent[]): Life => {
  const id = `c${n}`;
  const tenant = `t${n % 2}`;
  const events = history.map((event, revision) => {
    const data = event.type === 'ClusterOrdered' ? { ...event.data, id, tenant } : event.data;
    return recorded(event.type, data as unknown as JsonObject, { stream: `cluster-${id}`, revision });
  });
  return { id, tenant, events };
};

/**
 * Time of a period, straight from the documents that reads showed, each for as long as it was the newest: billed once one
 * showed READY, provisioning before.
 */
const fromHistory = (
  lives: readonly Life[],
  { fromMs, toMs }: UsagePeriod,
  asOfMs: number,
  tenant?: string,
) => {
  const total = { resourceMs: 0, nodeMs: 0, provisioningMs: 0, provisioningNodeMs: 0 };
  for (const life of lives) {
    if (tenant !== undefined && life.tenant !== tenant) continue;
    let state = initialCluster();
    let now = 0;
    let delivered = false;
    const add = (until: number): void => {
      if (!isStoredCluster(state)) return;
      const view = clusterKind.view(state);
      if (!view.exists || view.archived || !isBillable(view.document)) return;
      delivered ||= stringAt(objectAt(view.document, 'status'), 'state') === 'CLUSTER_STATE_READY';
      const ms = Math.max(0, Math.min(until, toMs, asOfMs) - Math.max(now, fromMs));
      total[delivered ? 'resourceMs' : 'provisioningMs'] += ms;
      for (const set of Object.values(objectAt(objectAt(view.document, 'spec'), 'node_sets')))
        total[delivered ? 'nodeMs' : 'provisioningNodeMs'] += ms * numberAt(set, 'size');
    };
    for (const { type, data } of life.events) {
      const next = Math.max(now, Date.parse(stringAt(data, 'at')));
      add(next);
      state = evolveCluster(state, { type, data } as unknown as ClusterEvent);
      now = next;
    }
    add(Infinity);
  }
  return total;
};
const isBillable = (document: JsonObject): boolean =>
  ['CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_READY'].includes(
    stringAt(objectAt(document, 'status'), 'state'),
  );

/** The streams of a log in one order of many. */
const interleaved = (lives: readonly Life[], order: readonly number[]): readonly RecordedEvent[] => {
  const left = lives.map(({ events }) => [...events]);
  const log: RecordedEvent[] = [];
  for (const pick of [...order, ...lives.flatMap(({ events }, i) => events.map(() => i))]) {
    const event = left[pick % Math.max(1, left.length)]?.shift();
    if (event !== undefined) log.push(event);
  }
  return log;
};

const emptyFile = (): DatabaseSync => {
  const db = new DatabaseSync(':memory:');
  db.exec(view.schema);
  return db;
};

/** Folds a log, flushing now and then; `fresh` begins with nothing in memory each time, as after a restart. */
const fold = (log: readonly RecordedEvent[], flushEvery: number, fresh: boolean): DatabaseSync => {
  const db = emptyFile();
  let apply = view.open(db);
  for (const [i, event] of log.entries()) {
    apply(event);
    if ((i + 1) % flushEvery !== 0) continue;
    apply.flush?.();
    if (fresh) apply = view.open(db);
    apply(event); // once more: nothing comes of it
  }
  apply.flush?.();
  return db;
};

const AMOUNTS = ['resourceMs', 'nodeMs', 'provisioningMs', 'provisioningNodeMs'] as const;
const total = (rows: readonly UsageRow[]) =>
  Object.fromEntries(
    AMOUNTS.map((amount) => [amount, rows.reduce((sum, row) => sum + Number(row[amount]), 0)]),
  );
const logs = fc.record({
  histories: fc.array(clusterHistories(25), { maxLength: 4 }),
  order: fc.array(fc.nat({ max: 3 }), { maxLength: 60 }),
  flushEvery: fc.integer({ min: 1, max: 20 }),
  fresh: fc.boolean(),
});
const moment = fc.integer({ min: START - 1_000_000, max: END });

describe('usage', () => {
  it('is of every kind that is metered, apart where ids are equal', () => {
    const both = usageView({
      codec: { decode: ({ type, data }) => ({ type, data }) },
      kinds: [toyKind, ...meteredKinds],
    });
    const db = new DatabaseSync(':memory:');
    db.exec(both.schema);
    const apply = both.open(db);
    const at = new Date(START).toISOString();
    apply(recorded('ToyMade', { at, id: 'c0', tenant: 't0' }, { stream: 'toy-c0', revision: 0 }));
    for (const event of lifeOf(0, [order]).events) apply(event);
    const end = new Date(START + 5_000).toISOString();
    apply(recorded('ToyBroken', { at: end }, { stream: 'toy-c0', revision: 1 }));
    apply.flush?.();
    const periods = [{ fromMs: START, toMs: START + 60_000 }];
    const rows = scanUsage(db, { periods, by: ['kind'], only: {}, asOfMs: START + 10_000 });
    expect(
      rows.map(({ values, resourceMs, provisioningMs }) => [...values, resourceMs, provisioningMs]),
    ).to.deep.equal([
      ['cluster', 0, 10_000],
      ['toy', 5_000, 0],
    ]);
    const { billed } = usageReader(openReadConnection(db), {
      run: () => Promise.reject(new Error('not here')),
    });
    expect(billed({ after: { kind: '', id: '' }, limit: 9 }).map(({ place }) => place)).to.deep.equal([
      { kind: 'cluster', id: 'c0' },
    ]);
  });

  it('is what the history says, to the millisecond, for any period, tenant and moment', () =>
    check(
      fc.property(logs, fc.tuple(moment, moment), moment, (given, [one, other], asOfMs) => {
        const lives = given.histories.map((history, n) => lifeOf(n, history));
        const db = fold(interleaved(lives, given.order), given.flushEvery, given.fresh);
        const period = { fromMs: Math.min(one, other), toMs: Math.max(one, other) };
        for (const tenant of [undefined, 't0', 't1']) {
          const query: UsageQuery = {
            periods: [period],
            by: ['tenant', 'resource', 'hostType'],
            only: tenant === undefined ? {} : { tenant },
            asOfMs,
          };
          expect(total(scanUsage(db, query))).to.deep.equal(fromHistory(lives, period, asOfMs, tenant));
        }
      }),
      { numRuns: 120 },
    ));

  it('of a time is the sum of its parts, however it is cut and told apart', () =>
    check(
      fc.property(logs, fc.uniqueArray(moment, { minLength: 2, maxLength: 8 }), (given, cuts) => {
        const lives = given.histories.map((history, n) => lifeOf(n, history));
        const db = fold(interleaved(lives, given.order), given.flushEvery, given.fresh);
        const bounds = cuts.toSorted((left, right) => left - right);
        const periods = bounds.slice(1).map((toMs, i) => ({ fromMs: bounds[i] ?? 0, toMs }));
        const rows = scanUsage(db, {
          periods,
          by: ['project', 'template', 'nodeSet'],
          only: {},
          asOfMs: END,
        });
        for (const [i, period] of periods.entries())
          expect(total(rows.filter((row) => row.period === i))).to.deep.equal(
            fromHistory(lives, period, END),
          );
        const keys = rows.map(({ period, values }) => JSON.stringify([period, values]));
        expect(new Set(keys).size, 'each row once').to.equal(keys.length);
      }),
      { numRuns: 80 },
    ));

  it('gives the same rows whatever was in memory, and its file passes its own check', async () => {
    const histories = fc.sample(clusterHistories(60), { numRuns: 20, seed: 7 });
    const lives = histories.map((history, n) => lifeOf(n, history));
    const log = interleaved(lives, []);
    const dump = (db: DatabaseSync): unknown =>
      ['meters', 'intervals'].map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2, 3, 4`).all());
    const once = fold(log, Infinity, false);
    expect(dump(fold(log, 1, true))).to.deep.equal(dump(once));
    const readStream = async function* (stream: string) {
      yield* lives.find(({ id }) => `cluster-${id}` === stream)?.events ?? [];
    };
    expect(await view.verify?.(once, readStream)).to.deep.equal([]);
    once.exec('UPDATE intervals SET since_ms = since_ms + 1');
    expect((await view.verify?.(once, readStream))?.[0]).to.contain('are not those that its stream gives');
  });

  it('forgets what was rolled back', () => {
    const [history = []] = fc.sample(clusterHistories(), { numRuns: 1, seed: 3 });
    const { events } = lifeOf(0, history);
    const db = emptyFile();
    const apply = view.open(db);
    db.exec('BEGIN');
    for (const event of events) apply(event);
    apply.flush?.();
    db.exec('ROLLBACK');
    apply.reset?.();
    for (const event of events) apply(event);
    apply.flush?.();
    const rows = (of: DatabaseSync): unknown =>
      of.prepare('SELECT * FROM intervals ORDER BY 1, 2, 3, 4').all();
    expect(rows(db)).to.deep.equal(rows(fold(events, Infinity, false)));
  });

  it('lets few wait, and none who has left', async () => {
    const scans = createUsageScans(() => emptyFile());
    const query: UsageQuery = { periods: [{ fromMs: 0, toMs: 1 }], by: [], only: {}, asOfMs: 1 };
    const open = new AbortController();
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, () => scans.run(query, open.signal)));
    const reasons = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? 'rows' : (outcome.reason as UsageRefused).reason,
    );
    expect(reasons).to.deep.equal(['rows', 'rows', 'rows', 'rows', 'busy', 'busy']);
    const left = await scans.run(query, AbortSignal.abort()).catch((error: unknown) => error);
    expect(left).to.be.instanceOf(UsageRefused).with.property('reason', 'cancelled');
    await scans.close();
  });
});
