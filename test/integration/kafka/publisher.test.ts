import { expect } from 'chai';
import { StoreUnavailable, type EventStore } from '../../../src/app/event-store.ts';
import type { TopicOnBrokers } from '../../../src/app/publisher/ports.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { MOST_PARKED } from '../../../src/app/publisher/parking.ts';
import { createRig, expectDelivered, recordOf, specOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

const many = (count: number, stream = 'thing-a'): readonly string[] =>
  Array.from({ length: count }, () => stream);

describe('the publisher', () => {
  let rig: Rig;
  beforeEach(() => {
    rig = createRig();
  });

  it('publishes every event once, in the order of its stream, and goes on where it was', async () => {
    await rig.append('thing-a', 'thing-b', 'other-c', 'thing-a');
    const first = rig.start();
    await rig.time.pass(2_000);
    expect(first.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, lagSeconds: 0, sent: 3 });
    await rig.append('thing-b', 'thing-a');
    await first.stop();
    await rig.append('thing-a');
    const second = rig.start();
    await rig.time.pass(100);
    await second.stop();
    expect(rig.kafka.records(TOPIC)).to.have.length(6);
    await expectDelivered(rig);
  });

  it('stores its position after a second and not after every batch', async () => {
    const running = rig.start();
    for (let i = 0; i < 10; i += 1) {
      await rig.append('thing-a');
      await rig.time.pass(50);
    }
    await rig.time.pass(2_000);
    const revision = await rig.store.currentRevision(`sys-kafka-${TOPIC}`);
    expect(revision).to.be.oneOf([0, 1]);
    await rig.time.pass(60_000);
    expect(await rig.store.currentRevision(`sys-kafka-${TOPIC}`)).to.equal(revision);
    await running.stop();
  });

  it('writes nothing to the log while there is nothing to publish', async () => {
    const running = rig.start();
    await rig.append('other-a', 'other-b');
    await rig.time.pass(120_000);
    await running.stop();
    expect(await rig.store.currentRevision(`sys-kafka-${TOPIC}`)).to.equal('no_stream');
  });

  it('gives its connection back when there is no news for a minute, and makes another with the next', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 1, made: 1 });
    await rig.time.pass(61_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 0, made: 1 });
    await rig.append('thing-a');
    await rig.time.pass(1_000);
    expect(rig.kafka.connections()).to.deep.equal({ open: 1, made: 2 });
    await running.stop();
    expect(rig.kafka.connections().open).to.equal(0);
    await expectDelivered(rig);
  });

  it('makes another producer after a rejected send, so that nothing is lost without a word', async () => {
    const running = rig.start({ settings: { batch: { records: 1, bytes: 1_000 } } });
    await rig.append('thing-a');
    await rig.time.pass(100);
    rig.kafka.faults.loseAnswers(TOPIC, 1);
    await rig.append('thing-a', 'thing-a', 'thing-a');
    await rig.time.pass(5_000);
    await running.stop();
    await expectDelivered(rig);
    expect(rig.kafka.connections().made).to.equal(2);
    // What was stored without an answer came twice.
    expect(rig.kafka.records(TOPIC)).to.have.length(5);
  });

  it('says what is wrong while the brokers are away, and that it is over', async () => {
    rig.kafka.faults.down(true);
    await rig.append('thing-a');
    const running = rig.start();
    await rig.time.pass(10_000);
    const status = running.topic(TOPIC);
    expect(status).to.include({ state: 'waiting', waitingEvents: 1, sent: 0 });
    expect(status.lagSeconds).to.be.within(9, 11);
    expect(status.lastError).to.include({ reason: 'unreachable', message: 'no broker answers' });
    rig.kafka.faults.down(false);
    await rig.time.pass(31_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, lagSeconds: 0, sent: 1 });
    await running.stop();
  });

  it('checks its topics at the start, also when there is nothing to publish, and again', async () => {
    rig.kafka.faults.down(true);
    rig.kafka.deleteTopic(TOPIC);
    const running = rig.start();
    await rig.time.pass(1_000);
    const told = (text: string) =>
      rig.log.lines.filter(({ fields }) => JSON.stringify(fields).includes(text)).length;
    expect(told('no broker answers')).to.equal(1);
    rig.kafka.faults.down(false);
    await rig.time.pass(31_000);
    expect(running.publisher.status().problems).to.deep.equal([
      { topic: TOPIC, code: 'missing', message: 'does not exist; ledgerctl kafka create-topics creates it' },
    ]);
    expect(told(JSON.stringify({ missing: [TOPIC] }))).to.equal(1);
    rig.kafka.createTopic({ ...specOf(TOPIC), retentionMs: 1_000 });
    await rig.time.pass(301_000);
    expect(running.publisher.status().problems.map(({ code }) => code)).to.deep.equal(['retention']);
    await running.stop();
  });

  it('says which topics a broker that is lost takes records with, and which have keys in two places', async () => {
    const spec = specOf('wide');
    rig = createRig({ topics: ['wide'] });
    const running = rig.start({ cleanup: 'compact' });
    const problems = async (change: Partial<TopicOnBrokers>) => {
      rig.kafka.alterTopic('wide', { cleanup: 'compact', retentionMs: -1, ...change });
      const [plan] = await running.publisher.plan(new AbortController().signal);
      return plan?.problems.map(({ code }) => code);
    };
    expect(await problems({})).to.deep.equal([]);
    rig.kafka.faults.brokers(3);
    expect(await problems({ replicas: 1 })).to.deep.equal(['replicas']);
    expect(await problems({ replicas: 3, minInsync: 1 })).to.deep.equal(['insync']);
    expect(await problems({ minInsync: Number.NaN })).to.deep.equal([]);
    expect(await problems({ minInsync: 2 })).to.deep.equal([]);
    rig.kafka.faults.brokers(2);
    expect(await problems({ replicas: 2 })).to.deep.equal([]);
    expect(await problems({ partitions: spec.partitions + 1 })).to.deep.equal(['partitions']);
    expect(await problems({ partitions: spec.partitions - 1 })).to.deep.equal([]);
    await running.stop();
  });

  it('says that it is behind again when the log runs away from it, and by how much', async () => {
    const held = Promise.withResolvers<void>();
    const slow =
      (topic: string): RecordMapper =>
      async (event) => {
        if (event.revision === 1) await held.promise;
        return [recordOf(topic, event)];
      };
    const running = rig.start({ map: slow });
    await rig.append('thing-a');
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', lagSeconds: 0 });
    await rig.append('thing-a', 'thing-a');
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'catching-up', lagSeconds: 60 });
    held.resolve();
    await rig.time.pass(2_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', lagSeconds: 0, sent: 3 });
    await running.stop();
  });

  it('says that it waits when a send takes long, before that fails', async () => {
    const running = rig.start();
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(20_000);
    expect(running.topic(TOPIC)).to.include({ state: 'waiting', waitingEvents: 1, lastError: undefined });
    release();
    await rig.time.pass(100);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0, sent: 1 });
    await running.stop();
  });

  it('says that the password is refused, and goes on with the right one', async () => {
    rig.kafka.faults.wrongPassword(true);
    await rig.append('thing-a');
    const running = rig.start();
    await rig.time.pass(3_000);
    expect(running.topic(TOPIC).lastError?.reason).to.equal('unauthorized');
    rig.kafka.faults.wrongPassword(false);
    await rig.time.pass(31_000);
    await running.stop();
    await expectDelivered(rig);
  });

  it('keeps a bounded part in memory while the brokers are away for long, and loses nothing', async () => {
    const settings = { outbox: { records: 200, bytes: 1024 * 1024 } };
    const running = rig.start({ settings });
    rig.kafka.faults.down(true);
    for (let i = 0; i < 30; i += 1) await rig.append(...many(100, `thing-${i % 7}`));
    await rig.time.pass(24 * 3_600_000);
    expect(running.topic(TOPIC)).to.include({ state: 'waiting', waitingEvents: 200 });
    expect(running.topic(TOPIC).lagSeconds).to.be.within(86_000, 87_000);
    rig.kafka.faults.down(false);
    await rig.time.pass(60_000);
    expect(running.topic(TOPIC)).to.include({ state: 'live', waitingEvents: 0 });
    await running.stop();
    expect(rig.kafka.records(TOPIC)).to.have.length(3_000);
    await expectDelivered(rig);
  });

  it('gives a send that is under way at the end its time, and stores how far it came', async () => {
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(100);
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    const stopped = running.end();
    await rig.time.pass(1_000);
    release();
    await rig.time.pass(100);
    await stopped;
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@1']);
    const again = rig.start();
    await rig.time.pass(100);
    await again.stop();
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0', 'thing-a@1']);
  });

  it('cuts a send off that does not end, and sends it again later', async () => {
    const running = rig.start();
    rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(100);
    await running.stop();
    expect(rig.kafka.connections().open).to.equal(0);
    rig.kafka.faults.hold(TOPIC)();
    const again = rig.start();
    await rig.time.pass(100);
    await again.stop();
    await expectDelivered(rig);
  });

  describe('with several topics', () => {
    const topics = ['one', 'two', 'three'];
    beforeEach(() => {
      rig = createRig({ topics });
    });

    const othersAre = async (what: string): Promise<void> => {
      const running = rig.start();
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      await rig.append('thing-a');
      await rig.time.pass(2_000);
      for (const topic of ['two', 'three']) {
        expect(running.topic(topic), what).to.include({ state: 'live', sent: 3 });
        await expectDelivered(rig, topic);
      }
      expect(running.topic('one').sent).to.equal(0);
      expect(running.topic('one').waitingEvents).to.equal(3);
      await running.stop();
    };

    it('one that is slow delays no other', async () => {
      rig.kafka.faults.hold('one');
      await othersAre('slow');
    });

    for (const reason of ['refused', 'full', 'unauthorized'] as const)
      it(`one that the brokers do not take (${reason}) delays no other`, async () => {
        rig.kafka.faults.refuse('one', reason);
        await othersAre(reason);
      });

    it('one that is missing delays no other, and fills at once when it is made', async () => {
      rig.kafka.deleteTopic('one');
      await othersAre('missing');
      expect(
        rig.log.lines.some(({ fields }) => JSON.stringify(fields).includes('ledgerctl kafka create-topics')),
      ).to.equal(true);
      const running = rig.start();
      // By now it is looked for only now and then.
      await rig.time.pass(300_000);
      expect(running.topic('one').lastError?.reason).to.equal('topic-missing');
      expect(await running.publisher.createTopics(new AbortController().signal)).to.deep.equal(['one']);
      await rig.time.pass(100);
      expect(running.topic('one')).to.include({ state: 'live', sent: 3 });
      await running.stop();
      await expectDelivered(rig, 'one');
    });

    it('one that is removed while it is published to fills again once it is made', async () => {
      const running = rig.start();
      await rig.append('thing-a');
      await rig.time.pass(1_000);
      rig.kafka.deleteTopic('one');
      await rig.append('thing-a');
      await rig.time.pass(1_000);
      expect(running.topic('one').lastError?.reason).to.equal('topic-missing');
      expect(running.topic('two').sent).to.equal(2);
      rig.kafka.createTopic(specOf('one'));
      await rig.time.pass(31_000);
      await running.stop();
      expect(valuesOf(rig.kafka, 'one'), 'from the beginning: what was sent is gone').to.deep.equal([
        'thing-a@0',
        'thing-a@1',
      ]);
      await expectDelivered(rig, 'two');
    });

    it('one that is made anew while a send is tried is filled from the beginning', async () => {
      for (const [streams, says] of [
        [['thing-a'], undefined],
        // A partition to which nothing was sent before tells nothing by itself.
        [['thing-other'], 'This server does not host this topic-partition'],
      ] as const) {
        rig = createRig({ topics: ['one'] });
        const running = rig.start({ topics: ['one'] });
        await rig.append('thing-a', 'thing-a', 'thing-a');
        await rig.time.pass(2_000);
        const release = rig.kafka.faults.hold('one');
        await rig.append(...streams);
        await rig.time.pass(1_000);
        rig.kafka.deleteTopic('one');
        if (says !== undefined) rig.kafka.faults.trouble(says);
        rig.kafka.createTopic(specOf('one'));
        release();
        await rig.time.pass(5_000);
        expect(running.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
        const values = new Set(valuesOf(rig.kafka, 'one'));
        expect([...values].toSorted()).to.deep.equal(
          [
            'thing-a@0',
            'thing-a@1',
            'thing-a@2',
            says === undefined ? 'thing-a@3' : 'thing-other@0',
          ].toSorted(),
        );
        await running.stop();
      }
    });

    it('one that is made anew while it has nothing to tell is filled from the beginning', async () => {
      rig = createRig({ topics: ['one'] });
      const running = rig.start({ topics: ['one'] });
      await rig.append('thing-a', 'thing-a');
      // The connection was given back.
      await rig.time.pass(62_000);
      rig.kafka.deleteTopic('one');
      rig.kafka.createTopic(specOf('one'));
      await rig.append('thing-other');
      await rig.time.pass(5_000);
      await expectDelivered(rig, 'one');
      expect(running.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
      await running.stop();
    });

    it('one that is found empty, since it was made anew or these are other brokers, is filled from the beginning', async () => {
      const first = rig.start();
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      await first.stop();
      rig.kafka.deleteTopic('one');
      rig.kafka.createTopic(specOf('one'));
      await rig.append('thing-a');
      const second = rig.start();
      await rig.time.pass(5_000);
      expect(second.topic('one')).to.include({ state: 'live', waitingEvents: 0 });
      await expectDelivered(rig, 'one');
      expect(second.topic('two').sent, 'the others go on where they were').to.equal(1);
      await second.stop();
      // And the next one goes on there, too.
      await rig.append('thing-b');
      const third = rig.start();
      await rig.time.pass(2_000);
      expect(third.topic('one').sent).to.equal(1);
      await third.stop();
    });
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
