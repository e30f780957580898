import { expect } from 'chai';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import {
  bundleOf,
  eventsOf,
  historyOf,
  memorySource,
  tenantOf,
  type Ask,
} from '../../../support/audit/signed-history.ts';

const events = eventsOf(40);
const eventAt = (n: number, of: readonly RecordedEvent[] = events): RecordedEvent => of[n] as RecordedEvent;
const nameOf = ({ stream, revision }: RecordedEvent): string => `${stream}@${revision}`;

/** What is found in an export of a history that was signed as it is given here. */
const verify = async (signed: readonly RecordedEvent[], ask: Ask = {}): Promise<BundleReport> => {
  const history = historyOf(signed);
  return verifyBundle(memorySource(await bundleOf(history, ask)), { trust: history.trust });
};
const texts = ({ findings }: BundleReport): string[] => findings.map(findingText);

/** Places of the events of a stream that has enough of them. */
const placesOf = (stream: string): number[] =>
  events.flatMap((event, place) => (event.stream === stream ? [place] : []));
const [first, second, third] = placesOf(eventAt(7).stream) as [number, number, number];
const tenant = tenantOf(eventAt(first));
const positioned = (list: readonly RecordedEvent[]): RecordedEvent[] =>
  list.map((event, n) => ({ ...event, position: String(n + 1).padStart(16, '0') }));

/** The log itself lies: every one of these was signed as it is. */
describe('an export of a log in which, before it was signed,', () => {
  it('nothing was done, is in order', async () => {
    for (const ask of [{}, { tenant }, { from: 11 }, { from: 11, to: 30 }, { tenant, from: 2 }])
      expect(texts(await verify(events, ask)), JSON.stringify(ask)).to.deep.equal([]);
  });

  it('an event was taken out, names it and where it should stand', async () => {
    for (const place of [first, second]) {
      const gone = eventAt(place);
      const behind = placesOf(gone.stream).find((each) => each > place) as number;
      const report = await verify(positioned(events.toSpliced(place, 1)));
      expect(report.ok).to.equal(false);
      expect(texts(report)).to.deep.equal([
        `event ${nameOf(gone)}, place ${behind - 1}, events.ndjson line ${behind}: this event is missing: ` +
          `${nameOf(eventAt(behind))} stands where it should be`,
      ]);
    }
  });

  it('several were taken out one behind the other, names them all', async () => {
    const report = await verify(positioned(events.filter((_, place) => place !== first && place !== second)));
    expect(texts(report)).to.have.length(1);
    expect(texts(report)[0])
      .to.include(`event ${nameOf(eventAt(first))}`)
      .and.to.include(
        `this event and those up to ${nameOf(eventAt(second))} are missing: ${nameOf(eventAt(third))} stands`,
      );
  });

  it('two events of a stream were turned round, names both, also in an export of a tenant', async () => {
    const turned = positioned(events.with(first, eventAt(second)).with(second, eventAt(first)));
    const report = await verify(turned);
    expect(report.findings.map(({ code, event, place }) => [code, event, place])).to.deep.equal([
      ['missing-event', nameOf(eventAt(first)), first],
      ['order', nameOf(eventAt(first)), second],
    ]);
    const theirs = await verify(turned, { tenant });
    expect(theirs.findings.map(({ code, event }) => [code, event])).to.deep.equal([
      ['order', nameOf(eventAt(first))],
    ]);
    expect(texts(theirs)[0]).to.include(`it stands behind ${nameOf(eventAt(second))}, which is at place `);
  });

  it('a second event of the same revision was put in, names it, also in an export of a tenant', async () => {
    const fork = { ...eventAt(first), id: 'f'.repeat(32), data: { ...eventAt(first).data, note: 'forged' } };
    const forked = positioned(events.toSpliced(first + 1, 0, fork));
    const report = await verify(forked);
    expect(texts(report)).to.deep.equal([
      `event ${nameOf(fork)}, place ${first + 1}, events.ndjson line ${first + 2}: ` +
        `the event at place ${first} is of the same revision: one of the two was added`,
    ]);
    const theirs = await verify(forked, { tenant });
    expect(theirs.findings.map(({ code, event }) => [code, event])).to.deep.equal([
      ['added-event', nameOf(fork)],
    ]);
  });

  it('an event was given the id of another one, names it, also in an export of a tenant', async () => {
    const place = events.findIndex((event, n) => n > first && tenantOf(event) === tenant);
    const copied = events.with(place, { ...eventAt(place), id: eventAt(first).id });
    expect(texts(await verify(copied))).to.deep.equal([
      `event ${nameOf(eventAt(place))}, place ${place}, events.ndjson line ${place + 1}: ` +
        `its id is that of the event at place ${first}: no two events have one`,
    ]);
    expect(texts(await verify(copied, { tenant }))).to.have.length(1);
  });

  it('an event was taken out, shows it in a part of the log that has the one before it', async () => {
    const gone = positioned(events.toSpliced(second, 1));
    expect(texts(await verify(gone, { from: first }))).to.have.length(1);
    // A stream of which nothing stands before may begin anywhere.
    expect(texts(await verify(gone, { from: first + 1 }))).to.deep.equal([]);
  });

  it('more events of a stream were taken out than are withheld meanwhile, shows it', async () => {
    const [from, to] = [second, third].map((place) => place - 1) as [number, number];
    const gone = positioned(events.toSpliced(second, 1));
    const withheld = (most: number): Ask => {
      let left = most;
      return {
        show: (_, place) => {
          if (place < from || place >= to || left === 0) return 'full';
          left -= 1;
          return 'withheld';
        },
      };
    };
    expect(to - from, 'room between the two').to.be.greaterThan(0);
    expect(texts(await verify(gone, withheld(0)))).to.have.length(1);
    // It may be the one that is withheld: nobody can tell.
    expect(texts(await verify(gone, withheld(1)))).to.deep.equal([]);
  });

  it('an event of a tenant was taken out, says that its own export does not show whose it is', async () => {
    const gone = eventAt(second);
    const report = await verify(positioned(events.toSpliced(second, 1)), { tenant });
    expect(report.findings).to.deep.equal([]);
    expect(report.notProven.join('\n')).to.include(
      `that the event of its streams which is neither shown nor withheld (${nameOf(gone)}) is of another tenant`,
    );
    const sound = await verify(events, { tenant });
    expect(sound.notProven.join('\n')).not.to.include('neither shown nor withheld');
  });

  it('an event has a revision that none can have, says so', async () => {
    for (const revision of [-1, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      const report = await verify(events.with(5, { ...eventAt(5), revision }), {
        tenant: tenantOf(eventAt(5)),
      });
      expect(texts(report).join('\n'), String(revision)).to.include('no event has such a revision');
    }
  });
});
