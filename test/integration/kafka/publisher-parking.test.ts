import { expect } from 'chai';
import { LogReplaced, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { MOST_PARKED } from '../../../src/app/publisher/parking.ts';
import { createRig, expectDelivered, recordOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

const many = (count: number, stream = 'thing-a'): readonly string[] =>
  Array.from({ length: count }, () => stream);

describe('the publisher', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('sends what comes where the end of the log was told to be: only what was read is stored as its position', async () => {
    let breakOff: (() => void) | undefined;
    const store: EventStore = {
      ...rig.store,
      subscribe: async function* (options) {
        if (breakOff !== undefined) return yield* rig.store.subscribe(options);
        const broken = new AbortController();
        breakOff = () => broken.abort();
        const signal = AbortSignal.any([options.signal, broken.signal]);
        for await (const item of rig.store.subscribe({ ...options, signal }))
          if (item.kind === 'event') yield { kind: 'caught-up', position: item.event.position };
        if (broken.signal.aborted) throw new LogReplaced('an event came below a position that was told');
      },
    };
    const running = rig.start({ store });
    await rig.time.pass(2_000);
    await rig.append(...many(10_001));
    await rig.time.pass(60_000);
    expect(valuesOf(rig.kafka)).to.deep.equal([]);
    breakOff?.();
    await rig.time.pass(60_000);
    expect(valuesOf(rig.kafka)).to.have.length(10_001);
    await running.stop();
  });

  describe('an event that cannot become a record', () => {
    let poison: ReadonlySet<string>;
    const map =
      (topic: string): RecordMapper =>
      (event) => {
        const record = recordOf(topic, event);
        if (poison.has(record.value ?? '')) throw new Error(`no record for ${record.value}`);
        return [record];
      };
    beforeEach(() => {
      poison = new Set(['thing-a@1']);
    });

    it('parks its stream from there on; the others go on, also after a restart', async () => {
      const running = rig.start({ map });
      await rig.append('thing-a', 'thing-a', 'thing-b', 'thing-a');
      await rig.time.pass(2_000);
      expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0']);
      const [parked, ...more] = running.topic(TOPIC).parked;
      expect(more).to.deep.equal([]);
      expect(parked).to.include({ stream: 'thing-a', revision: 1, error: 'no record for thing-a@1' });
      expect(rig.log.lines.filter(({ level }) => level === 'error')).to.have.length(1);
      await running.stop();
      const again = rig.start({ map });
      await rig.append('thing-b', 'thing-a');
      await rig.time.pass(2_000);
      expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0', 'thing-b@1']);
      expect(again.topic(TOPIC).parked).to.deep.equal([parked]);
      await again.stop();
    });

    it('is published in its order when it is tried again, with all that waited behind it', async () => {
      const running = rig.start({ map });
      await rig.append('thing-a', 'thing-a', 'thing-b', 'thing-a');
      await rig.time.pass(2_000);
      poison = new Set();
      const outcome = running.publisher.retry(TOPIC, 'thing-a');
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      expect(await outcome).to.deep.equal({ outcome: 'published', records: 2 });
      expect(running.topic(TOPIC).parked).to.deep.equal([]);
      await rig.append('thing-a');
      await rig.time.pass(2_000);
      await running.stop();
      await expectDelivered(rig);
      expect(rig.kafka.records(TOPIC)).to.have.length(7);
    });

    it('is published when it is tried again long after everything else', async () => {
      const running = rig.start({ map });
      await rig.append('thing-a', 'thing-a', 'thing-b');
      await rig.time.pass(10_000);
      poison = new Set();
      const outcome = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(10_000);
      expect(await outcome).to.deep.equal({ outcome: 'published', records: 1 });
      await running.stop();
      await expectDelivered(rig);
    });

    it('is parked again when it still cannot, where it stands then', async () => {
      const running = rig.start({ map });
      await rig.append('thing-a', 'thing-a', 'thing-a');
      await rig.time.pass(2_000);
      poison = new Set(['thing-a@2']);
      const outcome = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(2_000);
      const answer = await outcome;
      expect(answer).to.have.property('outcome', 'parked');
      expect(running.topic(TOPIC).parked[0]).to.include({ stream: 'thing-a', revision: 2 });
      poison = new Set();
      const second = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(2_000);
      expect(await second).to.deep.equal({ outcome: 'published', records: 1 });
      await running.stop();
      await expectDelivered(rig);
    });

    it('says so when nothing of that name is parked', async () => {
      const running = rig.start({ map });
      await rig.time.pass(100);
      const outcome = running.publisher.retry(TOPIC, 'thing-z');
      await rig.time.pass(100);
      expect(await outcome).to.deep.equal({ outcome: 'not-parked' });
      expect(await running.publisher.retry('no-such-topic', 'thing-a')).to.equal(undefined);
      await running.stop();
    });

    it('stays parked when the publisher stops while it is tried again', async () => {
      const running = rig.start({ map });
      await rig.append('thing-a', 'thing-a');
      await rig.time.pass(2_000);
      poison = new Set();
      rig.kafka.faults.hold(TOPIC);
      const outcome = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(100);
      await running.stop();
      expect(await outcome).to.deep.equal({ outcome: 'interrupted' });
      rig.kafka.faults.hold(TOPIC)();
      const again = rig.start({ map });
      await rig.time.pass(100);
      expect(again.topic(TOPIC).parked).to.have.length(1);
      const second = again.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(2_000);
      expect(await second).to.deep.equal({ outcome: 'published', records: 1 });
      await again.stop();
      await expectDelivered(rig);
    });

    it('is parked still when its stream cannot be read while it is tried again; the topic goes on', async () => {
      let isUnread = false;
      const store: EventStore = {
        ...rig.store,
        readStream: (stream, how) => {
          if (isUnread && stream.startsWith('thing-')) throw new StoreUnavailable('not now');
          return rig.store.readStream(stream, how);
        },
      };
      const running = rig.start({ map, store });
      await rig.append('thing-a', 'thing-a');
      await rig.time.pass(2_000);
      poison = new Set();
      isUnread = true;
      const outcome = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(2_000);
      expect(await outcome).to.deep.equal({ outcome: 'interrupted' });
      isUnread = false;
      await rig.append('thing-b');
      await rig.time.pass(2_000);
      expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 2 });
      expect(running.topic(TOPIC).parked).to.have.length(1);
      const second = running.publisher.retry(TOPIC, 'thing-a');
      await rig.time.pass(2_000);
      expect(await second).to.have.property('outcome', 'published');
      await running.stop();
      await expectDelivered(rig);
    });

    it('stops the topic when too many streams are parked: then it is not the events', async () => {
      const streams = Array.from({ length: MOST_PARKED + 1 }, (_, i) => `thing-${i}`);
      poison = new Set(streams.map((stream) => `${stream}@0`));
      const running = rig.start({ map });
      await rig.append(...streams);
      await rig.time.pass(5_000);
      expect(running.topic(TOPIC)).to.include({ state: 'failed' });
      expect(running.topic(TOPIC).parked).to.have.length(MOST_PARKED);
      poison = new Set();
      await rig.time.pass(60_000);
      expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 1 });
      await running.stop();
    });

    it('that stops the topic leaves no subscription of the log open behind it', async () => {
      const open = new Set<object>();
      const store: EventStore = {
        ...rig.store,
        async *subscribe(options) {
          const own = {};
          open.add(own);
          try {
            yield* rig.store.subscribe(options);
          } finally {
            open.delete(own);
          }
        },
      };
      const map = (): RecordMapper => (event) => {
        if (event.stream.startsWith('thing-p')) throw new Error('poison');
        return [recordOf(TOPIC, event)];
      };
      const running = rig.start({ store, map });
      await rig.append('thing-a');
      await rig.time.pass(2_000);
      expect(open.size).to.equal(1);
      await rig.append(...Array.from({ length: MOST_PARKED + 1 }, (_, i) => `thing-p${i}`));
      await rig.time.pass(1);
      expect(running.topic(TOPIC)).to.include({ state: 'failed' });
      expect(open.size).to.equal(0);
      await running.stop();
    });

    it('is not one whose stream could not be read for a moment', async () => {
      let tries = 0;
      const unread =
        (topic: string): RecordMapper =>
        (event) => {
          tries += 1;
          if (tries < 4) throw new StoreUnavailable('not now');
          return [recordOf(topic, event)];
        };
      const running = rig.start({ map: unread });
      await rig.append('thing-a');
      await rig.time.pass(5_000);
      expect(running.topic(TOPIC).parked).to.deep.equal([]);
      await running.stop();
      await expectDelivered(rig);
    });
  });

  it('sends the records of one event one by one when they are too large together, and parks nothing', async () => {
    const three =
      (topic: string): RecordMapper =>
      (event) =>
        ['1', '2', '3'].map((part) => {
          const record = recordOf(topic, event);
          return { ...record, value: `${record.value}/${part}${'x'.repeat(4_000)}` };
        });
    rig.kafka.faults.maxBytes(10_000);
    const running = rig.start({ map: three });
    await rig.append('thing-a', 'thing-a', 'thing-b');
    await rig.time.pass(10_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', sent: 9 });
    expect(running.topic(TOPIC).parked).to.deep.equal([]);
    await running.stop();
    const told = valuesOf(rig.kafka).map((value) => value.slice(0, 11));
    expect(told.filter((value) => value.startsWith('thing-a'))).to.deep.equal(
      ['0/1', '0/2', '0/3', '1/1', '1/2', '1/3'].map((part) => `thing-a@${part}`),
    );
  });

  it('parks the stream of an event of which the brokers find one record invalid; the others go on', async () => {
    await rig.append('thing-a', 'thing-b', 'thing-b');
    rig.kafka.faults.invalid('thing-b@0');
    const running = rig.start();
    await rig.time.pass(10_000);
    expect(running.topic(TOPIC).state).to.equal('live');
    expect(running.topic(TOPIC).parked.map(({ stream, revision }) => [stream, revision])).to.deep.equal([
      ['thing-b', 0],
    ]);
    await running.stop();
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0']);
  });

  it('parks the stream of a record that the brokers find too large; what came with it goes on', async () => {
    const large =
      (topic: string): RecordMapper =>
      (event) => {
        const record = recordOf(topic, event);
        return [record.value === 'thing-b@1' ? { ...record, value: 'x'.repeat(20_000) } : record];
      };
    rig.kafka.faults.maxBytes(10_000);
    await rig.append(...many(40), 'thing-b', 'thing-b', 'thing-b', ...many(40, 'thing-c'));
    const running = rig.start({ map: large });
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC).parked[0]).to.include({ stream: 'thing-b', revision: 1 });
    expect(running.topic(TOPIC).state).to.equal('live');
    await running.stop();
    const values = new Set(valuesOf(rig.kafka));
    expect(values.size).to.equal(81);
    expect(values).to.include('thing-b@0').and.not.include('thing-b@2');
  });
});
