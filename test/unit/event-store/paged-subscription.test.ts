import { expect } from 'chai';
import {
  createGrowth,
  pagedSubscription,
  type Page,
  type PageSource,
} from '../../../src/adapters/event-store/shared/paged-subscription.ts';
import { formatPosition } from '../../../src/adapters/event-store/shared/position.ts';
import { reachedBy, StoreUnavailable, type RecordedEvent } from '../../../src/app/log/event-store.ts';

const eventAt = (n: number): RecordedEvent => ({
  position: formatPosition(n),
  stream: 'a',
  revision: n - 1,
  id: String(n),
  type: 'Paged',
  data: {},
  metadata: {},
  recordedAt: '2026-01-01T00:00:00.000Z',
});
const page = (numbers: number[], considered: number, last: number): Page => ({
  events: numbers.map(eventAt),
  considered,
  atEnd: considered === last,
  last,
});

/** Plays looks one after the other and ends the subscription when a further one is waited for. */
const played = async (
  looks: (Page | Error)[],
  after = 0,
): Promise<{ items: string[]; asked: number[]; recovered: number }> => {
  const controller = new AbortController();
  const asked: number[] = [];
  let recovered = 0;
  const source: PageSource = {
    readPage: (from) => {
      asked.push(from);
      const next = looks.shift();
      if (next instanceof Error) throw next;
      if (next === undefined) throw new Error('looked once too often');
      return next;
    },
    changed: async () => {
      if (looks.length === 0) controller.abort();
    },
    isClosed: () => false,
    recover: async () => {
      recovered += 1;
    },
    breathe: () => Promise.resolve(),
  };
  const items: string[] = [];
  for await (const item of pagedSubscription(source, after, controller.signal))
    items.push(
      item.kind === 'event' ? `event ${item.event.id}` : `${item.kind} ${Number(reachedBy(item) ?? 0)}`,
    );
  return { items, asked, recovered };
};

describe('event store: a subscription made of looks into the log', () => {
  it('yields a checkpoint only behind a look that ended on events that did not match', async () => {
    const { items, asked } = await played([
      page([1, 2], 2, 9),
      page([], 5, 9),
      page([6], 9, 9),
      page([], 9, 9),
    ]);
    expect(items).to.deep.equal([
      'event 1',
      'event 2',
      'checkpoint 5',
      'event 6',
      'checkpoint 9',
      'caught-up 9',
    ]);
    expect(asked).to.deep.equal([0, 2, 5, 9]);
  });

  it('looks again after it said caught-up: the consumer may have taken its time', async () => {
    const { items } = await played([page([1], 1, 1), page([2], 2, 2)]);
    expect(items).to.deep.equal(['event 1', 'caught-up 1', 'event 2']);
  });

  it('says caught-up on an empty log, without a position', async () => {
    expect((await played([page([], 0, 0), page([], 0, 0)])).items).to.deep.equal(['caught-up 0']);
  });

  it('outlives a log that cannot be read for a while, goes on where it was, and catches up again', async () => {
    const unreadable = new StoreUnavailable('disk I/O error');
    const { items, asked, recovered } = await played([
      page([1], 1, 1),
      unreadable,
      unreadable,
      page([2], 2, 2),
      page([], 2, 2),
    ]);
    expect(items).to.deep.equal(['event 1', 'caught-up 1', 'event 2', 'caught-up 2']);
    expect(asked).to.deep.equal([0, 1, 1, 1, 2]);
    expect(recovered).to.equal(2);
  });

  it('passes every other error on', async () => {
    const looks = played([page([1], 1, 1), new Error('damaged')]);
    const error: unknown = await looks.catch((caught: unknown) => caught);
    expect(error).to.have.property('message', 'damaged');
  });
});

describe('event store: waiting for growth', () => {
  const never = new AbortController().signal;
  const settled = async (promise: Promise<void>): Promise<boolean> => {
    let done = false;
    void promise.then(() => {
      done = true;
    });
    await new Promise(setImmediate);
    return done;
  };

  it('ends when the log has grown beyond, not for what is known already', async () => {
    const growth = createGrowth();
    growth.grew(5);
    expect(await settled(growth.changed(4, never))).to.equal(true);
    const waiting = growth.changed(5, never);
    growth.grew(5);
    expect(await settled(waiting)).to.equal(false);
    growth.grew(6);
    expect(await settled(waiting)).to.equal(true);
  });

  it('ends on the signal, on wakeAll, and after the poll', async () => {
    const controller = new AbortController();
    const growth = createGrowth();
    const onSignal = growth.changed(0, controller.signal);
    const onWake = growth.changed(0, never);
    controller.abort();
    expect(await settled(onSignal)).to.equal(true);
    expect(await settled(onWake)).to.equal(false);
    growth.wakeAll();
    expect(await settled(onWake)).to.equal(true);
    // The poll does not keep a process alive by itself; this test does.
    const alive = setTimeout(() => undefined, 5000);
    await createGrowth({ pollMs: 5 }).changed(0, never);
    clearTimeout(alive);
  });
});
