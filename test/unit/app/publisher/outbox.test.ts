import { expect } from 'chai';
import { isFarBehind } from '../../../../src/app/publisher/courier.ts';
import { createOutbox } from '../../../../src/app/publisher/outbox.ts';

const parcel = (position: string, stream = 'a', value = 'x') => ({
  position,
  stream,
  revision: 0,
  recordedAt: '2026-01-01T00:00:00.000Z',
  records: [{ topic: 't', key: stream, value, headers: {}, timestamp: '0' }],
});
const idle = new AbortController().signal;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the outbox of a topic', () => {
  it('has reached what was passed only when all in front of it is sent', async () => {
    const outbox = createOutbox({ records: 10, bytes: 10_000 });
    expect(outbox.reached()).to.equal(undefined);
    outbox.pass('1');
    expect(outbox.reached()).to.equal('1');
    await outbox.put(parcel('2'), idle);
    await outbox.put(parcel('4'), idle);
    outbox.pass('5');
    expect(outbox.reached()).to.equal(undefined);
    outbox.sent(1);
    expect(outbox.reached()).to.equal('2');
    outbox.sent(1);
    expect(outbox.reached()).to.equal('5');
  });

  it('makes the reader wait while it is full, in records and in bytes', async () => {
    for (const limits of [
      { records: 2, bytes: 10_000 },
      { records: 100, bytes: 300 },
    ]) {
      const outbox = createOutbox(limits);
      const value = 'v'.repeat(90);
      await outbox.put(parcel('1', 'a', value), idle);
      await outbox.put(parcel('2', 'a', value), idle);
      let isIn = false;
      const third = outbox.put(parcel('3', 'a', value), idle).then(() => {
        isIn = true;
      });
      await turn();
      expect(isIn).to.equal(false);
      outbox.sent(1);
      await third;
      expect(outbox.size().parcels).to.equal(2);
    }
  });

  it('takes one parcel however large it is', async () => {
    const outbox = createOutbox({ records: 1, bytes: 10 });
    await outbox.put(parcel('1', 'a', 'v'.repeat(5_000)), idle);
    expect(outbox.head({ records: 1, bytes: 1 })).to.have.length(1);
  });

  it('leaves out what is not wanted any more, or comes when it is over', async () => {
    const outbox = createOutbox({ records: 10, bytes: 10_000 });
    await outbox.put(parcel('1'), idle, () => false);
    await outbox.put(parcel('2'), AbortSignal.abort());
    expect(outbox.size()).to.deep.equal({ parcels: 0, records: 0, bytes: 0 });
    expect(outbox.reached()).to.equal('1');
  });

  it('gives its oldest parcels within the limits, and forgets a stream that is parked', async () => {
    const outbox = createOutbox({ records: 10, bytes: 10_000 });
    for (const [position, stream] of [
      ['1', 'a'],
      ['2', 'b'],
      ['3', 'a'],
    ] as const)
      await outbox.put(parcel(position, stream), idle);
    const positions = (records: number) =>
      outbox.head({ records, bytes: 10_000 }).map(({ position }) => position);
    expect(positions(2)).to.deep.equal(['1', '2']);
    outbox.drop('a');
    expect(positions(5)).to.deep.equal(['2']);
    outbox.sent(1);
    expect(outbox.reached()).to.equal('3');
  });
});

describe('how far apart two positions are', () => {
  const events = (count: number): string => String(count).padStart(16, '0');
  const bytes = (count: number): string => `${String(count).padStart(20, '0')}${'9'.repeat(20)}`;
  it('is counted in events, or in bytes where positions count those', () => {
    expect(isFarBehind(undefined, undefined)).to.equal(false);
    expect(isFarBehind(undefined, events(9_999))).to.equal(false);
    expect(isFarBehind(events(5), events(10_005))).to.equal(true);
    expect(isFarBehind(bytes(0), bytes(9_999_999))).to.equal(false);
    expect(isFarBehind(bytes(1), bytes(10_000_001))).to.equal(true);
  });
});
