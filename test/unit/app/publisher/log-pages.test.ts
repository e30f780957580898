import { expect } from 'chai';
import fc from 'fast-check';
import {
  StoreUnavailable,
  type EventStore,
  type RecordedEvent,
} from '../../../../src/app/log/event-store.ts';
import { createLogPages, type Follower, type LogPages } from '../../../../src/app/publisher/log-pages.ts';
import { checkAsync } from '../../../support/property.ts';

const PAGE = 500;
const KEPT = 16;
const positionOf = (n: number): string => String(n).padStart(20, '0');
const eventAt = (n: number): RecordedEvent => ({
  position: positionOf(n),
  stream: `thing-${n % 7}`,
  revision: n,
  id: `id-${n}`,
  type: 'ThingHappened',
  data: {},
  metadata: {},
  recordedAt: '2026-01-01T00:00:00.000Z',
});
const turns = async (count = 20): Promise<void> => {
  for (let i = 0; i < count; i += 1) await new Promise<void>((resolve) => setImmediate(resolve));
};

const pagesOf = (store: Pick<EventStore, 'readAll'>): LogPages =>
  createLogPages(store, new AbortController().signal);

/** A log of so many events, which may grow, and how often it was read from where. */
const logOf = (count: number) => {
  const log = { count, reads: [] as number[], failures: [] as Error[] };
  const readAll: EventStore['readAll'] = async function* ({ after, limit }) {
    const start = after === undefined ? 0 : Number(after);
    log.reads.push(start);
    await Promise.resolve();
    const failure = log.failures.shift();
    if (failure !== undefined) throw failure;
    for (let n = start + 1; n <= Math.min(log.count, start + limit); n += 1) yield eventAt(n);
  };
  return { log, pages: pagesOf({ readAll }) };
};

/** What one topic is given up to the end, which `rest` may hold up between two pages. */
const readToEnd = async (
  follower: Follower,
  from: number,
  rest: () => Promise<void> | undefined = () => undefined,
): Promise<readonly number[]> => {
  const seen: number[] = [];
  let at = from;
  for (;;) {
    const page = await follower.next(at === 0 ? undefined : positionOf(at));
    if (page === undefined) break;
    for (const { position } of page.events) if (Number(position) > at) seen.push(Number(position));
    at = Number(page.upTo);
    await rest();
  }
  follower.end();
  return seen;
};
const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: Math.max(0, to - from) }, (_, i) => from + 1 + i);

describe('pages of the log for topics that are behind', () => {
  const idle = new AbortController().signal;

  it('are read once for all that are near each other, wherever each begins', async () => {
    const { log, pages } = logOf(10 * PAGE);
    const starts = [0, 0, 0, 3, 250, 499, 500, 900];
    const seen = await Promise.all(starts.map((from) => readToEnd(pages.follow(idle), from)));
    seen.forEach((events, i) => {
      expect(events).to.deep.equal(numbers(starts[i] ?? 0, 10 * PAGE));
    });
    const whole = log.reads.filter((start) => start < 10 * PAGE);
    expect(whole.length).to.be.lessThan(15);
  });

  it('give everyone every event behind its position, in order and once, whatever their paces are', () =>
    checkAsync(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 12_000 }),
        fc.array(
          fc.record({ from: fc.nat(12_000), pace: fc.integer({ min: 0, max: 3 }), waits: fc.boolean() }),
          {
            minLength: 1,
            maxLength: 5,
          },
        ),
        async (count, topics) => {
          const { pages } = logOf(count);
          const seen = await Promise.all(
            topics.map(({ from, pace, waits }) => {
              const follower = pages.follow(idle);
              return readToEnd(follower, from, () => (waits ? follower.waits(turns(pace)) : turns(pace)));
            }),
          );
          seen.forEach((events, i) => {
            expect(events).to.deep.equal(numbers(topics[i]?.from ?? 0, count));
          });
        },
      ),
      { numRuns: 25 },
    ));

  it('end where nothing lies behind them, and say so', async () => {
    const { log, pages } = logOf(PAGE + 1);
    const follower = pages.follow(idle);
    expect(await follower.next(undefined)).to.include({ isLast: false, upTo: positionOf(PAGE) });
    expect(await follower.next(positionOf(PAGE))).to.include({ isLast: true, upTo: positionOf(PAGE + 1) });
    expect(await follower.next(positionOf(PAGE + 1))).to.equal(undefined);
    log.count += 1;
    expect((await follower.next(positionOf(PAGE + 1)))?.events).to.have.length(1);
  });

  it('are bounded in size: large events come in smaller pages, and one is taken however large it is', async () => {
    const large = (n: number): RecordedEvent => ({ ...eventAt(n), data: { text: 'x'.repeat(n * 200_000) } });
    const pages = pagesOf({
      async *readAll({ after }) {
        for (let n = Number(after ?? 0) + 1; n <= 6; n += 1) yield large(n);
      },
    });
    const follower = pages.follow(idle);
    const counts: number[] = [];
    for (let at: string | undefined; ; ) {
      const page = await follower.next(at);
      if (page === undefined) break;
      counts.push(page.events.length);
      at = page.upTo;
    }
    expect(counts).to.deep.equal([3, 1, 1, 1]);
  });

  it('are not read on while somebody works on what is read, but while all wait for something else', async () => {
    const { log, pages } = logOf(5 * PAGE);
    const [fast, slow] = [pages.follow(idle), pages.follow(idle)];
    await fast.next(undefined);
    await slow.next(undefined);
    let isGiven = false;
    const second = fast.next(positionOf(PAGE)).then(() => {
      isGiven = true;
    });
    await turns();
    expect(isGiven).to.equal(false);
    let go = (): void => undefined;
    const room = slow.waits(
      new Promise<void>((resolve) => {
        go = resolve;
      }),
    );
    await second;
    go();
    await room;
    expect(log.reads).to.deep.equal([0, PAGE]);
    // What came meanwhile is kept.
    await slow.next(positionOf(PAGE));
    expect(log.reads).to.deep.equal([0, PAGE]);
  });

  it('are read again by whom others have left behind, who holds up nobody any more', async () => {
    const { log, pages } = logOf(40 * PAGE);
    const [fast, slow] = [pages.follow(idle), pages.follow(idle)];
    await slow.next(undefined);
    await slow.waits(
      (async () => {
        for (let n = 0; n <= KEPT + 1; n += 1) await fast.next(n === 0 ? undefined : positionOf(n * PAGE));
      })(),
    );
    const before = log.reads.length;
    // It works on a page of its own, and says nothing.
    expect((await slow.next(positionOf(PAGE)))?.after).to.equal(positionOf(PAGE));
    expect(log.reads.slice(before)).to.deep.equal([PAGE]);
    expect((await fast.next(positionOf((KEPT + 2) * PAGE)))?.after).to.equal(positionOf((KEPT + 2) * PAGE));
  });

  it('are found by the category of their streams, each event in one', async () => {
    const streams = ['a-1', 'b-1', 'a-2', 'a', '-x', 'ab-1', 'a-1-2'];
    const pages = pagesOf({
      async *readAll() {
        for (const [n, stream] of streams.entries()) yield { ...eventAt(n + 1), stream };
      },
    });
    const page = await pages.follow(idle).next(undefined);
    const of = (category: string | undefined) => page?.of(category).map(({ stream }) => stream);
    expect(of(undefined)).to.deep.equal(streams);
    expect(of('a')).to.deep.equal(['a-1', 'a-2', 'a-1-2']);
    expect(of('ab')).to.deep.equal(['ab-1']);
    expect(of('c')).to.deep.equal([]);
  });

  it('leave the thread to others before each of them, though nothing is waited for', async () => {
    const { log, pages } = logOf(20 * PAGE);
    let turnsTaken = 0;
    let isOver = false;
    const others = (): void => {
      turnsTaken += 1;
      if (!isOver) setImmediate(others);
    };
    setImmediate(others);
    await readToEnd(pages.follow(idle), 0);
    isOver = true;
    expect(log.reads.length).to.equal(21);
    expect(turnsTaken).to.be.at.least(20);
  });

  it('are kept no longer than somebody reads them', async () => {
    const { log, pages } = logOf(PAGE);
    await readToEnd(pages.follow(idle), 0);
    const reads = log.reads.length;
    await pages.follow(idle).next(undefined);
    expect(log.reads.length).to.equal(reads + 1);
  });

  it('that cannot be read fail for who asked for them, and are read again for the next', async () => {
    const { log, pages } = logOf(PAGE);
    log.failures.push(new StoreUnavailable('away'));
    const [first, second] = [pages.follow(idle), pages.follow(idle)];
    const outcomes = await Promise.allSettled([first.next(undefined), second.next(undefined)]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'fulfilled']);
    expect((await first.next(undefined))?.events).to.have.length(PAGE);
  });

  it('are waited for only until the topic ends, which holds up nobody then', async () => {
    const { pages } = logOf(5 * PAGE);
    const over = new AbortController();
    const [working, ending, other] = [pages.follow(idle), pages.follow(over.signal), pages.follow(idle)];
    await working.next(undefined);
    const asked = ending.next(positionOf(PAGE)).catch((error: unknown) => error);
    await turns();
    over.abort(new Error('over'));
    expect(await asked)
      .to.be.instanceOf(Error)
      .with.property('message', 'over');
    ending.end();
    const next = other.next(positionOf(PAGE));
    working.end();
    expect((await next)?.after).to.equal(positionOf(PAGE));
  });
});
