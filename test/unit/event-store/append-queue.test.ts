import { expect } from 'chai';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventToAppend,
} from '../../../src/app/log/event-store.ts';
import {
  createAppendQueue,
  type AppendQueue,
  type SentBatch,
} from '../../../src/adapters/event-store/sqlite/append-queue.ts';
import {
  CONFLICT,
  DUPLICATE,
  NO_APPEND,
  NO_STREAM,
  STORED,
  type BatchAnswer,
} from '../../../src/adapters/event-store/sqlite/writer-protocol.ts';

const event = (data = '{}'): EventToAppend => ({ id: 'an-id', type: 'Queued', data, metadata: '{}' });
const add = (queue: AppendQueue, stream: string, data?: string): Promise<Appended | Error> =>
  queue.add(stream, 'no_stream', [event(data)], { deadlineMs: 10_000 }).catch((error: Error) => error);

const tell = (batch: SentBatch | undefined, answer: BatchAnswer): void => {
  for (let i = 0; i < (batch?.size ?? 0); i += 1) batch?.answered(answer, i);
};

describe('sqlite event store: the queue of appends', () => {
  it('takes everything that waits as one flat batch', async () => {
    const queue = createAppendQueue();
    const one = queue.add('a', 'no_stream', [event()], { deadlineMs: 10_000 });
    const two = queue.add('b', 4, [event('1'), event('2')], { deadlineMs: 10_000 });
    const batch = queue.take();
    const first = ['a', NO_STREAM, NO_APPEND, 1, 'an-id', 'Queued', '{}', '{}'];
    const second = ['b', 4, NO_APPEND, 2, 'an-id', 'Queued', '1', '{}', 'an-id', 'Queued', '2', '{}'];
    expect(batch?.message).to.deep.equal([...first, ...second]);
    expect(queue.take()).to.equal(undefined);
    tell(batch, { kind: 'settled', answers: [STORED, 0, 7, DUPLICATE, 6, 3], last: 9 });
    expect(await one).to.deep.equal({ revision: 0, position: '0000000000000007', duplicate: false });
    expect(await two).to.deep.equal({ revision: 6, position: '0000000000000003', duplicate: true });
  });

  it('gives each append its own answer', async () => {
    const queue = createAppendQueue();
    const outcomes = Promise.all([add(queue, 'a'), add(queue, 'b'), add(queue, 'c')]);
    tell(queue.take(), {
      kind: 'settled',
      answers: [CONFLICT, 5, 0, STORED, 0, 1, CONFLICT, NO_STREAM, 0],
      last: 1,
    });
    const [a, b, c] = await outcomes;
    expect(a).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 5 });
    expect(b).to.include({ revision: 0 });
    expect(c).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 'no_stream' });
  });

  describe('an append that rests on another one', () => {
    const chained = () => {
      const queue = createAppendQueue();
      const first = queue.add('first', 'no_stream', [event()], { deadlineMs: 10_000 });
      const between = add(queue, 'between');
      const second = queue.add('second', 3, [event()], { deadlineMs: 10_000, after: first });
      const outcomes = Promise.all([
        first.catch((error: unknown) => error),
        second.catch((error: unknown) => error),
        between,
      ]);
      return { queue, first, outcomes };
    };
    const told = [STORED, 0, 5];

    it('is sent with it, right behind it, and names its place', async () => {
      const { queue, outcomes } = chained();
      const batch = queue.take();
      const places = [batch?.message[2], batch?.message[8 + 2], batch?.message[16 + 2]];
      const streams = [batch?.message[0], batch?.message[8], batch?.message[16]];
      expect([streams, places]).to.deep.equal([
        ['first', 'second', 'between'],
        [NO_APPEND, 0, NO_APPEND],
      ]);
      tell(batch, { kind: 'settled', answers: [...told, STORED, 4, 6, STORED, 0, 7], last: 7 });
      const [, second] = await outcomes;
      expect(second).to.include({ revision: 4, duplicate: false });
    });

    it('is told of the conflict of the one that it rests on', async () => {
      const { queue, outcomes } = chained();
      const answers = [CONFLICT, 2, 0, CONFLICT, NO_STREAM, 0, STORED, 0, 7];
      tell(queue.take(), { kind: 'settled', answers, last: 7 });
      const [first, second, between] = await outcomes;
      for (const error of [first, second])
        expect(error).to.be.instanceOf(WrongExpectedRevision).and.to.include({ stream: 'first', actual: 2 });
      expect(between).to.include({ revision: 0 });
    });

    it('is told of its own conflict where the other one is stored', async () => {
      const { queue, outcomes } = chained();
      tell(queue.take(), {
        kind: 'settled',
        answers: [...told, CONFLICT, 9, 0, STORED, 0, 7],
        last: 7,
      });
      const [, second] = await outcomes;
      expect(second).to.be.instanceOf(WrongExpectedRevision).and.to.include({ stream: 'second', actual: 9 });
    });

    it('is of unknown outcome by itself when the writer dies with both', async () => {
      const { queue, outcomes } = chained();
      queue.take()?.lost(undefined);
      const [first, second] = await outcomes;
      expect([first, second].map((error) => (error as OutcomeUnknown).stream)).to.deep.equal([
        'first',
        'second',
      ]);
    });

    it('is given up with the one that it rests on, while both wait', async () => {
      const { queue, first, outcomes } = chained();
      expect(queue.waits(first)).to.equal(true);
      const refusal = new StoreUnavailable('down');
      queue.refuseAll(refusal);
      expect(await outcomes).to.deep.equal([refusal, refusal, refusal]);
      expect([queue.waits(first), queue.take()]).to.deep.equal([false, undefined]);
    });

    it('cannot be queued behind one that was sent already, though others still wait', async () => {
      const queue = createAppendQueue();
      const large = event('x'.repeat(5 * 1024 * 1024));
      const [one, two] = ['one', 'two'].map((stream) =>
        queue.add(stream, 'no_stream', [large], { deadlineMs: 10_000 }),
      );
      const outcomes = Promise.allSettled([one, two]);
      const batch = queue.take();
      expect([one, two].map((appended) => appended !== undefined && queue.waits(appended))).to.deep.equal([
        false,
        true,
      ]);
      batch?.lost(undefined);
      queue.take()?.lost(undefined);
      await outcomes;
    });
  });

  it('bounds a batch in bytes, but always takes one', async () => {
    const queue = createAppendQueue();
    const large = 'x'.repeat(900 * 1024);
    const outcomes = Promise.all(Array.from({ length: 12 }, (_, n) => add(queue, String(n), large)));
    const sizes: number[] = [];
    for (let batch = queue.take(); batch !== undefined; batch = queue.take()) {
      sizes.push(batch.size);
      batch.lost(undefined);
    }
    expect(sizes).to.deep.equal([9, 3]);
    for (const outcome of await outcomes) expect(outcome).to.be.instanceOf(OutcomeUnknown);
  });

  it('refuses more than may wait, at once', async () => {
    const queue = createAppendQueue();
    const waiting = Array.from({ length: 10_000 }, () => add(queue, 'a'));
    const refused = await add(queue, 'a');
    expect(refused).to.be.instanceOf(StoreUnavailable);
    queue.refuseAll(new StoreUnavailable('down'));
    for (const outcome of await Promise.all(waiting)) expect(outcome).to.be.instanceOf(StoreUnavailable);
  });

  it('withdraws at its deadline what still waits, and sends the rest', async () => {
    const queue = createAppendQueue();
    const late = queue
      .add('late', 'no_stream', [event()], { deadlineMs: 5 })
      .catch((error: unknown) => error);
    expect(await late).to.be.instanceOf(StoreUnavailable);
    const rest = add(queue, 'rest');
    const batch = queue.take();
    expect(batch?.message[0]).to.equal('rest');
    batch?.lost(undefined);
    await rest;
  });

  it('does not know about what was sent when its deadline comes; a late answer changes nothing', async () => {
    const queue = createAppendQueue();
    const sent = queue
      .add('sent', 'no_stream', [event()], { deadlineMs: 5 })
      .catch((error: unknown) => error);
    const batch = queue.take();
    expect(await sent).to.be.instanceOf(OutcomeUnknown);
    tell(batch, { kind: 'settled', answers: [STORED, 0, 1], last: 1 });
    expect(await sent).to.be.instanceOf(OutcomeUnknown);
  });

  it('says why a batch was refused', async () => {
    const queue = createAppendQueue();
    const refused = add(queue, 'a');
    tell(queue.take(), { kind: 'refused', reason: 'full', message: 'database or disk is full' });
    expect(await refused)
      .to.be.instanceOf(StoreUnavailable)
      .and.to.include({ reason: 'full' });
  });
});
