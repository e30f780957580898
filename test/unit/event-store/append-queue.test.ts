import { expect } from 'chai';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventToAppend,
} from '../../../src/app/event-store.ts';
import {
  createAppendQueue,
  type AppendQueue,
} from '../../../src/adapters/event-store/sqlite/append-queue.ts';
import {
  CONFLICT,
  DUPLICATE,
  NO_STREAM,
  STORED,
} from '../../../src/adapters/event-store/sqlite/writer-protocol.ts';

const event = (data = '{}'): EventToAppend => ({ id: 'an-id', type: 'Queued', data, metadata: '{}' });
const add = (queue: AppendQueue, stream: string, data?: string): Promise<Appended | Error> =>
  queue.add(stream, 'no_stream', [event(data)], { deadlineMs: 10_000 }).catch((error: Error) => error);

describe('sqlite event store: the queue of appends', () => {
  it('takes everything that waits as one flat batch', async () => {
    const queue = createAppendQueue();
    const one = queue.add('a', 'no_stream', [event()], { deadlineMs: 10_000 });
    const two = queue.add('b', 4, [event('1'), event('2')], { deadlineMs: 10_000 });
    const batch = queue.take();
    const first = ['a', NO_STREAM, 1, 'an-id', 'Queued', '{}', '{}'];
    const second = ['b', 4, 2, 'an-id', 'Queued', '1', '{}', 'an-id', 'Queued', '2', '{}'];
    expect(batch?.message).to.deep.equal([...first, ...second]);
    expect(queue.take()).to.equal(undefined);
    batch?.answered({ kind: 'settled', answers: [STORED, 0, 7, DUPLICATE, 6, 3], last: 9 });
    expect(await one).to.deep.equal({ revision: 0, position: '0000000000000007', duplicate: false });
    expect(await two).to.deep.equal({ revision: 6, position: '0000000000000003', duplicate: true });
  });

  it('tells a large batch in parts, so that the thread is free between them', async () => {
    const queue = createAppendQueue();
    const positions: string[] = [];
    for (let i = 0; i < 20; i += 1)
      void add(queue, `s${i}`).then((outcome) => positions.push((outcome as Appended).position));
    const batch = queue.take();
    const answers = Array.from({ length: 20 }, (_, i) => [STORED, 0, i + 1]).flat();
    const parts: number[] = [];
    for (let next = 0; next < 20; ) {
      next = batch?.answered({ kind: 'settled', answers, last: 20 }, next) ?? 20;
      await new Promise((resolve) => setImmediate(resolve));
      parts.push(positions.length);
    }
    expect(parts.length).to.be.greaterThan(1);
    expect(parts.at(-1)).to.equal(20);
    expect(positions.map(Number)).to.deep.equal(Array.from({ length: 20 }, (_, i) => i + 1));
  });

  it('gives each append its own answer', async () => {
    const queue = createAppendQueue();
    const outcomes = Promise.all([add(queue, 'a'), add(queue, 'b'), add(queue, 'c')]);
    queue.take()?.answered({
      kind: 'settled',
      answers: [CONFLICT, 5, 0, STORED, 0, 1, CONFLICT, NO_STREAM, 0],
      last: 1,
    });
    const [a, b, c] = await outcomes;
    expect(a).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 5 });
    expect(b).to.include({ revision: 0 });
    expect(c).to.be.instanceOf(WrongExpectedRevision).and.to.include({ actual: 'no_stream' });
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
    batch?.answered({ kind: 'settled', answers: [STORED, 0, 1], last: 1 });
    expect(await sent).to.be.instanceOf(OutcomeUnknown);
  });

  it('says why a batch was refused', async () => {
    const queue = createAppendQueue();
    const refused = add(queue, 'a');
    queue.take()?.answered({ kind: 'refused', reason: 'full', message: 'database or disk is full' });
    expect(await refused)
      .to.be.instanceOf(StoreUnavailable)
      .and.to.include({ reason: 'full' });
  });
});
