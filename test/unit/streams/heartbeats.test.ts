import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { meteredKinds } from '../../../src/domain/acting-kinds.ts';
import { heartbeats, windowStart } from '../../../src/app/streams/heartbeats.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { openReadConnection } from '../../../src/projections/runner/read-connection.ts';
import { usageReader } from '../../../src/projections/usage/usage-reader.ts';
import { usageView } from '../../../src/projections/usage/usage-view.ts';
import { recorded } from '../../support/streams/samples.ts';
import { deletionRequested, order, ordered, readyHistory } from '../domain/clusters/samples.ts';

const NOW = Date.parse('2026-11-21T13:00:42.123Z');
const MINUTE = 60_000;

/** The read model of clusters with these histories, and what it says is billed. */
const billedOf = (histories: { readonly [id: string]: readonly object[] }) => {
  const view = usageView({ codec: { decode: ({ type, data }) => ({ type, data }) }, kinds: meteredKinds });
  const db = new DatabaseSync(':memory:');
  db.exec(view.schema);
  const apply = view.open(db);
  for (const [id, history] of Object.entries(histories))
    for (const [revision, event] of (history as readonly { type: string; data: JsonObject }[]).entries())
      apply(
        recorded(
          event.type,
          { ...event.data, ...(revision === 0 ? { id } : {}) },
          { stream: `cluster-${id}`, revision },
        ),
      );
  apply.flush?.();
  return usageReader(openReadConnection(db), { run: () => Promise.reject(new Error('not here')) }).billed;
};

describe('heartbeats', () => {
  it('come of every component that is billed, once in each window', () => {
    const ids = Array.from({ length: 120 }, (_, i) => `c${String(i).padStart(3, '0')}`);
    const billed = billedOf({
      ...Object.fromEntries(ids.map((id) => [id, readyHistory])),
      failed: [
        order,
        { type: 'ClusterFailed', data: { at: order.data.at, reason: 'x', message: 'y', permanent: true } },
      ],
      deleting: [...readyHistory, deletionRequested],
    });
    const pages = [...heartbeats(billed, { nowMs: NOW, intervalMs: MINUTE })];
    expect(pages.length, 'a page at a time').to.be.greaterThan(2);
    const records = pages.flat();
    expect(records.map(({ key }) => key)).to.deep.equal(ids.flatMap((id) => [id, id, id]));
    const window = Date.parse('2026-11-21T13:00:00.000Z') / 1000;
    expect(records[0]?.headers['ce_id']).to.equal(`hb/c000/${window}/_control_plane`);
    expect(new Set(records.map(({ headers }) => headers['ce_id'])).size).to.equal(records.length);
  });

  it('are equal for one window, whoever sends them and when in it', () => {
    const billed = billedOf({ [ordered.id]: readyHistory });
    const recordsAt = (nowMs: number) => [...heartbeats(billed, { nowMs, intervalMs: MINUTE })].flat();
    expect(recordsAt(NOW + 10_000)).to.deep.equal(recordsAt(NOW));
    expect(JSON.parse(recordsAt(NOW)[0]?.value ?? '')).to.include({ time: '2026-11-21T13:00:00.000Z' });
    const ids = (nowMs: number) => recordsAt(nowMs).map(({ headers }) => headers['ce_id']);
    expect(ids(NOW + MINUTE)).not.to.deep.equal(ids(NOW));
    expect(windowStart(NOW, MINUTE)).to.equal(windowStart(NOW + 17_000, MINUTE));
  });

  it('are none while nothing is billed', () => {
    expect([...heartbeats(billedOf({}), { nowMs: NOW, intervalMs: MINUTE })]).to.deep.equal([]);
  });
});
