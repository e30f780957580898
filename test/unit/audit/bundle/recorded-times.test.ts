import { expect } from 'chai';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import {
  bundleOf,
  editJson,
  eventsOf,
  historyOf,
  memorySource,
  signManifest,
  tenantOf,
  type Ask,
} from '../../../support/audit/signed-history.ts';

const events = eventsOf(40);
const eventAt = (n: number): RecordedEvent => events[n] as RecordedEvent;
const nameAt = (n: number): string => `${eventAt(n).stream}@${eventAt(n).revision}`;
const timeAt = (n: number): string => eventAt(n).recordedAt;
const shifted = (time: string, seconds: number): string =>
  new Date(Date.parse(time) + seconds * 1000).toISOString();
const at = (n: number, recordedAt: string): RecordedEvent[] => events.with(n, { ...eventAt(n), recordedAt });

/** What is found in an export that was asked for by these times; all of it was signed as it is. */
const verify = async (
  signed: readonly RecordedEvent[],
  period: JsonObject,
  ask: Ask = {},
): Promise<BundleReport> => {
  const history = historyOf(signed);
  const files = await bundleOf(history, ask);
  editJson(files, 'manifest.json', (manifest) => ({ ...manifest, filter: period }));
  signManifest(files);
  return verifyBundle(memorySource(files), { trust: history.trust });
};
const SET = 'somebody set the clock';
const texts = ({ findings }: BundleReport): string[] => findings.map(findingText);

/** No root tells of them: they are the service's word, which must not contradict what it was asked for; clocks may be set. */
describe('recorded times of an export', () => {
  it('are of the period that was asked for, which the report says', async () => {
    const [from, to] = [timeAt(5), timeAt(20)];
    const report = await verify(events, { from, to }, { from: 5, to: 20 });
    expect(texts(report)).to.deep.equal([]);
    expect(report.period).to.deep.equal({ from, to });
    expect((await verify(events, { to: timeAt(3) }, { to: 3 })).period).to.deep.equal({ to: timeAt(3) });
    expect((await verify(events, {})).period).to.deep.equal({});
    const empty = await verify(events, { to: '2020-01-01T00:00:00.000Z' }, { to: 0 });
    expect([texts(empty), empty.period]).to.deep.equal([[], { to: '2020-01-01T00:00:00.000Z' }]);
  });

  it('are not at its end, nor later', async () => {
    const report = await verify(events, { to: timeAt(20) }, { to: 21 });
    expect(report.findings.map(({ code, event, place }) => [code, event, place])).to.deep.equal([
      ['time', nameAt(20), 20],
    ]);
    expect(texts(report)[0]).to.include(
      `events.ndjson line 21: it was recorded at ${timeAt(20)}, as the service states; ` +
        `the export is of what was recorded before ${timeAt(20)}`,
    );
    const other = await verify(events, { from: '2030-01-01T00:00:00.000Z', to: '2031-01-01T00:00:00.000Z' });
    expect(other.count).to.equal(events.length);
    expect(texts(other)[0]).to.include(
      'the export is of what was recorded at 2030-01-01T00:00:00.000Z or later',
    );
    expect(other.pin).to.equal('none');
  });

  it('are not earlier than its beginning, unless a clock was set back behind it', async () => {
    const from = timeAt(5);
    expect(texts(await verify(events, { from }, { from: 4 }))).to.have.length(1);
    // A clock that went back a little: what others stored before, or what is withheld, reached the beginning.
    const back = at(6, shifted(from, -2));
    expect(texts(await verify(back, { from }, { from: 5 }))).to.deep.equal([]);
    expect(texts(await verify(back, { from }, { from: 6 }))).to.have.length(1);
    const show: Ask['show'] = (_, place) => (place === 5 ? 'withheld' : 'full');
    const first = at(5, shifted(from, -2));
    expect(
      texts(await verify(first, { from }, { from: 4, show: (_, n) => (n === 4 ? 'withheld' : 'full') })),
    ).to.deep.equal([]);
    expect(texts(await verify(back, { from }, { from: 5, show }))).to.deep.equal([]);
    const tenant = tenantOf(eventAt(6));
    const before = events.slice(0, 6).filter((event) => tenantOf(event) === tenant).length;
    expect(texts(await verify(back, { from }, { tenant, from: before }))).to.deep.equal([]);
    const far = await verify(at(6, shifted(from, -3_600)), { from }, { tenant, from: before });
    expect([texts(far), far.ok]).to.deep.equal([[], true]);
    expect(far.remarks.join()).to.include(`event ${nameAt(6)}, place ${before}, events.ndjson line 1: `);
    expect(far.remarks.join()).to.include(
      `recorded at ${from} or later, and of what came behind that: ${SET}`,
    );
  });

  it('that go back by more than clocks differ are a remark, told once, and nothing wrong: a clock may be set back', async () => {
    const remarks = async (signed: readonly RecordedEvent[], period = {}, ask: Ask = {}) => {
      const { ok, count, proven, trust, remarks: said } = await verify(signed, period, ask);
      expect([ok, count, trust !== undefined]).to.deep.equal([true, 0, true]);
      expect(proven.length).to.be.greaterThan(0);
      return said;
    };
    expect(await remarks(events)).to.deep.equal([]);
    expect(await remarks(at(3, '1999-01-01T00:00:00.000Z'))).to.deep.equal([
      `event ${nameAt(3)}, place 3, events.ndjson line 4: it was recorded at 1999-01-01T00:00:00.000Z, as the service ` +
        `states; the event at place 2 before it at ${timeAt(2)}: ${SET} of the store back, or the clocks of who stores and ` +
        'who signs differ; else the time was changed',
    ]);
    expect(await remarks(at(3, shifted(timeAt(2), -299)))).to.deep.equal([]);
    const all = events.map((event, n) =>
      n < 10 ? event : { ...event, recordedAt: shifted(event.recordedAt, -900) },
    );
    const [once, ...more] = await remarks(all);
    expect([once?.includes(`event ${nameAt(10)}, place 10,`), more]).to.deep.equal([true, []]);
    // Also where the export begins in front of it: what was asked for by a time has what came behind that.
    expect(await remarks(all, { from: timeAt(5) }, { from: 5 })).to.have.length(1);
    // Nor in small steps: it is the latest one before that counts.
    const steps = events.with(3, { ...eventAt(3), recordedAt: shifted(timeAt(2), -200) });
    const creeping = steps.with(4, { ...eventAt(4), recordedAt: shifted(timeAt(2), -400) });
    expect((await remarks(creeping)).join()).to.include(`event ${nameAt(4)}, place 4,`);
    // Two clocks by turns: a hundred are told, and of more how many there are.
    const turns = eventsOf(240).map((event, n) =>
      n % 2 === 0 ? event : { ...event, recordedAt: shifted(event.recordedAt, -900) },
    );
    const many = await remarks(turns);
    expect(many).to.have.length(101);
    expect(many.at(-1)).to.include('20 more recorded times');
  });

  it('later than the head over them are a remark: a clock that was ahead may be set right before the next head', async () => {
    const late = await verify(at(39, '2053-01-01T00:00:00.000Z'), {});
    expect([late.ok, late.count, late.remarks.length]).to.deep.equal([true, 0, 1]);
    expect(late.remarks[0]).to.include(`event ${nameAt(39)}, place 39, `);
    expect(late.remarks[0]).to.include(
      `2053-01-01T00:00:00.000Z, as the service states; the head over it was signed at 2026-11-21T12:00:40.000Z: ${SET}`,
    );
    expect((await verify(at(39, shifted(timeAt(39), 240)), {})).remarks).to.deep.equal([]);
  });

  it('are not remarked on where the events are not those that were signed', async () => {
    const history = historyOf(at(3, '1999-01-01T00:00:00.000Z'));
    const files = await bundleOf(history);
    files.set('events.ndjson', Buffer.from('{}\n'));
    const { ok, remarks } = await verifyBundle(memorySource(files), { trust: history.trust });
    expect([ok, remarks]).to.deep.equal([false, []]);
  });

  it('of a hundred lines are told one by one, and of more how many there are', async () => {
    const many = eventsOf(120);
    const report = await verify(many, { to: '2020-01-01T00:00:00.000Z' });
    expect(report.count).to.equal(101);
    expect(report.findings).to.have.length(100);
  });

  it('are times, as those that were asked for are', async () => {
    expect(texts(await verify(at(39, 'yesterday'), {})).join()).to.include('not a time');
    for (const from of ['x', 5])
      expect(texts(await verify(events, { from }))).to.deep.equal([
        `manifest.json: it says that the export was asked for by a time which is none: from ${JSON.stringify(from)}`,
      ]);
    expect(texts(await verify(events, { from: null }))).to.deep.equal([]);
  });
});
