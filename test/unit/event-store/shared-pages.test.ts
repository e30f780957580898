import { expect } from 'chai';
import fc from 'fast-check';
import { createSharedPages } from '../../../src/adapters/event-store/sqlite/shared-pages.ts';
import { formatPosition } from '../../../src/adapters/event-store/shared/position.ts';
import type { EventFilter, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { check } from '../../support/property.ts';

const eventAt = (number: number, category: string): RecordedEvent => ({
  position: formatPosition(number),
  stream: `${category}-x`,
  revision: number,
  id: `e${number}`,
  type: 'Written',
  data: {},
  metadata: {},
  recordedAt: '2026-11-23T10:00:00.000Z',
});

/** A log in memory and readers of it in one thread; `looks`: events that were read from it. */
const createLog = (bytesOfEvent = 1) => {
  const log: RecordedEvent[] = [];
  const pages = createSharedPages();
  let read = 0;
  let damaged = Infinity;
  const pageOf = (most: number, filter?: EventFilter) => (after: number) => {
    const events: RecordedEvent[] = [];
    let considered = after;
    for (const event of log.slice(after, after + most)) {
      considered += 1;
      if (filter !== undefined && 'streamPrefixes' in filter)
        if (!filter.streamPrefixes.some((prefix) => event.stream.startsWith(prefix))) continue;
      if (considered === damaged) throw new Error(`damaged at ${considered}`);
      read += 1;
      events.push(event);
    }
    const atEnd = considered === log.length;
    return { events, considered, atEnd, last: log.length, bytes: events.length * bytesOfEvent };
  };
  return {
    grow: (category: string) => void log.push(eventAt(log.length + 1, category)),
    damage: (number: number) => void (damaged = number),
    read: () => read,
    length: () => log.length,
    reader: (filter: EventFilter | undefined, most = 5) => {
      const look = pages.reader(pageOf(most), pageOf(most, filter), filter);
      const seen: string[] = [];
      let reached = 0;
      return {
        seen,
        look: () => {
          const page = look(reached);
          expect(page.considered).to.be.at.least(reached);
          if (page.atEnd) expect(page.considered, 'at the end').to.equal(log.length);
          seen.push(...page.events.map(({ position }) => position));
          reached = page.considered;
          return page;
        },
        reached: () => reached,
      };
    },
    wanted: (category: string | undefined) =>
      log
        .filter(({ stream }) => category === undefined || stream === `${category}-x`)
        .map(({ position }) => position),
  };
};

const only = (category: string): EventFilter => ({ streamPrefixes: [`${category}-`] });

describe('pages of the end of the log, shared in one thread', () => {
  it('give each reader every event of its filter once and in order, whoever reads when', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('grow' as const), category: fc.constantFrom('a', 'b') }),
      fc.record({ kind: fc.constant('look' as const), reader: fc.nat(2) }),
    );
    // 400,000 bytes each: what is kept holds two events, so that readers fall behind it.
    const histories = fc.array(step, { maxLength: 80 });
    const holds = (
      steps: typeof histories extends fc.Arbitrary<infer Steps> ? Steps : never,
      bytes: number,
    ): void => {
      const log = createLog(bytes);
      const categories = ['a', 'b', undefined];
      const readers = categories.map((name) => log.reader(name === undefined ? undefined : only(name)));
      for (const each of steps)
        if (each.kind === 'grow') log.grow(each.category);
        else readers[each.reader]?.look();
      for (const [n, reader] of readers.entries()) {
        for (let looks = 0; reader.reached() < log.length() && looks < 200; looks += 1) reader.look();
        expect(reader.look()).to.include({ atEnd: true, last: log.length() });
        expect(reader.seen).to.deep.equal(log.wanted(categories[n]));
      }
    };
    check(fc.property(histories, fc.constantFrom(1, 400_000), holds));
  });

  it('are read once for all who have reached the end', () => {
    const log = createLog();
    const readers = [only('a'), only('b'), undefined].map((filter) => log.reader(filter));
    for (const reader of readers) reader.look();
    for (const category of ['a', 'b', 'a']) log.grow(category);
    for (const reader of readers) reader.look();
    expect(readers.map(({ seen }) => seen.length)).to.deep.equal([2, 1, 3]);
    expect(log.read()).to.equal(3);
  });

  it('leave those alone who do not want what is damaged', () => {
    const log = createLog();
    const [a, b] = [log.reader(only('a')), log.reader(only('b'))];
    for (const reader of [a, b]) reader.look();
    for (const category of ['a', 'b', 'a']) log.grow(category);
    log.damage(2);
    a.look();
    expect(a.seen).to.have.length(2);
    expect(() => b.look()).to.throw('damaged at 2');
  });
});
