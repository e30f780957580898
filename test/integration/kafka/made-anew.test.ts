import { expect } from 'chai';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import type { PublisherFailpoint, PublisherSettings } from '../../../src/app/publisher/types.ts';
import { createRig, expectDelivered, recordOf, specOf, TOPIC, valuesOf, type Rig } from './publisher-rig.ts';

/** Several sends fill the topic, and none of them stores a position at once. */
const SMALL: Partial<PublisherSettings> = { batch: { records: 2, bytes: 100_000 } };

/** What a topic that was made anew lacks is the history: that it has to be filled must outlive whoever has seen it. */
for (const hasIds of [true, false])
  describe(`a topic that was made anew, of brokers ${hasIds ? 'that give ids to topics' : 'of before that'}`, () => {
    let rig: Rig;
    beforeEach(() => {
      rig = createRig();
      if (!hasIds) rig.kafka.faults.withoutTopicIds();
    });
    const makeAnew = (): void => {
      rig.kafka.deleteTopic(TOPIC);
      rig.kafka.createTopic(specOf(TOPIC));
    };
    const published = async (): Promise<void> => {
      const first = rig.start();
      await rig.append('thing-a', 'thing-b', 'thing-c', 'thing-d');
      await rig.time.pass(2_000);
      await first.stop();
    };
    const goOn = async (): Promise<void> => {
      const next = rig.start({ settings: SMALL });
      await rig.time.pass(5_000);
      await next.stop();
    };
    /** What was on its way when the topic was made comes once more with the history. */
    const expectHistoryAndFirst = (): void => {
      expect([...valuesOf(rig.kafka)].toSorted()).to.deep.equal([
        'thing-a@0',
        'thing-a@1',
        'thing-a@1',
        'thing-b@0',
        'thing-c@0',
        'thing-d@0',
      ]);
    };

    it('is filled by the next one when it was killed between seeing it and its first position', async () => {
      await published();
      makeAnew();
      await rig.append('thing-a');
      let sends = 0;
      const failpoint: PublisherFailpoint = (point) => {
        if (point === 'after-send') sends += 1;
        return point === 'after-send' ? new Promise<void>(() => undefined) : undefined;
      };
      rig.start({ settings: SMALL, failpoint });
      await rig.time.pass(5_000);
      expect(sends, 'killed behind the first send').to.equal(1);
      expect(rig.kafka.records(TOPIC).length).to.be.within(1, 2);
      await goOn();
      await expectDelivered(rig);
    });

    it('once more while it is filled is said to be filled until it has all that went to the first one', async () => {
      let sends = 0;
      let go = (): void => undefined;
      const failpoint: PublisherFailpoint = (point) => {
        if (point !== 'after-send') return undefined;
        sends += 1;
        // Behind the second batch that fills it; then stopped amid what fills the next one.
        if (sends === 2) makeAnew();
        return sends < 7 ? undefined : new Promise<void>((resolve) => (go = resolve));
      };
      const first = rig.start();
      await rig.append(...Array.from({ length: 12 }, () => 'thing-a'));
      await rig.time.pass(2_000);
      await first.stop();
      makeAnew();
      await rig.append('thing-a');
      const running = rig.start({ settings: SMALL, failpoint });
      await rig.time.pass(5_000);
      expect(sends).to.equal(7);
      expect(valuesOf(rig.kafka)).to.have.length.within(10, 13);
      expect(running.topic(TOPIC).fillingSince).to.be.a('string');
      sends = Number.NEGATIVE_INFINITY;
      go();
      await rig.time.pass(5_000);
      expect(running.topic(TOPIC)).to.include({ state: 'live', fillingSince: undefined });
      await running.stop();
      // What was on its way when it was made comes once more with the history.
      expect(new Set(valuesOf(rig.kafka))).to.have.property('size', 13);
    });

    it('is filled by the next one when it is seen while the publisher stops', async () => {
      const first = rig.start();
      await rig.append('thing-a', 'thing-b', 'thing-c', 'thing-d');
      await rig.time.pass(2_000);
      const release = rig.kafka.faults.hold(TOPIC);
      await rig.append('thing-a');
      await rig.time.pass(500);
      makeAnew();
      const ended = first.end();
      await rig.time.pass(500);
      release();
      await rig.time.pass(5_000);
      await ended;
      expect(rig.kafka.records(TOPIC), 'the send came through').to.have.length(1);
      await goOn();
      expectHistoryAndFirst();
    });

    it('is filled also when the log takes nothing at that moment', async () => {
      await published();
      makeAnew();
      await rig.append('thing-a');
      const filled: number[] = [];
      const store: EventStore = {
        ...rig.store,
        append: async (...args) => {
          if (filled.length >= 3 || !args[0].startsWith('sys-kafka-')) return rig.store.append(...args);
          filled.push(rig.kafka.records(TOPIC).length);
          throw new StoreUnavailable('the log is away');
        },
      };
      const second = rig.start({ store, settings: SMALL });
      await rig.time.pass(30_000);
      expect(filled, 'nothing is filled before it is stored').to.deep.equal([0, 0, 0]);
      await expectDelivered(rig);
      await second.stop();
    });

    it('is filled by the one that has taken over when a former owner sees it', async () => {
      const first = rig.start();
      await rig.append('thing-a', 'thing-b', 'thing-c', 'thing-d');
      await rig.time.pass(2_000);
      const release = rig.kafka.faults.hold(TOPIC);
      await rig.append('thing-a');
      await rig.time.pass(500);
      makeAnew();
      // Somebody else has stored a position meanwhile.
      const stream = `sys-kafka-${TOPIC}`;
      const [stored] = await Array.fromAsync(
        rig.store.readStream(stream, { direction: 'backward', limit: 1 }),
      );
      const { revision = -1, type = '', data = {} } = stored ?? {};
      const event = { id: 'another-owner', type, data: JSON.stringify(data), metadata: '{}' };
      await rig.store.append(stream, revision, [event]);
      release();
      await rig.time.pass(5_000);
      expectHistoryAndFirst();
      await first.stop();
    });

    /** Brokers have confirmed a record of a topic that is another one, and whoever has seen that dies before it is stored. */
    const killedBetween = async (): Promise<void> => {
      let isDead = false;
      const store: EventStore = {
        ...rig.store,
        append: (...args) =>
          isDead && args[0].startsWith('sys-kafka-')
            ? new Promise(() => undefined)
            : rig.store.append(...args),
      };
      rig.start({ store });
      await rig.append('thing-a', 'thing-b', 'thing-c', 'thing-d');
      await rig.time.pass(2_000);
      const release = rig.kafka.faults.hold(TOPIC);
      await rig.append('thing-a');
      await rig.time.pass(500);
      makeAnew();
      isDead = true;
      release();
      await rig.time.pass(5_000);
      expect(rig.kafka.records(TOPIC), 'the send came through').to.have.length(1);
    };

    it('is filled by the next one when it was killed between the confirmation that told it and storing it', async () => {
      await killedBetween();
      await goOn();
      expectHistoryAndFirst();
    });

    it('nor is it lost when the next one has something to send at once, or cannot look at first', async () => {
      await killedBetween();
      rig.kafka.faults.down(true);
      await rig.append('thing-b', 'thing-d');
      const next = rig.start({ settings: SMALL });
      await rig.time.pass(20_000);
      rig.kafka.faults.down(false);
      await rig.time.pass(60_000);
      const all = ['thing-a@0', 'thing-a@1', 'thing-b@0', 'thing-b@1', 'thing-c@0', 'thing-d@0', 'thing-d@1'];
      expect([...new Set(valuesOf(rig.kafka))].toSorted()).to.deep.equal(all);
      await next.stop();
    });

    it('is filled also when nothing new comes: after `create-topics` at once, else at the next look at all topics', async () => {
      const running = rig.start();
      await rig.append('thing-a', 'thing-b', 'thing-c', 'thing-d');
      await rig.time.pass(2_000);
      makeAnew();
      const release = rig.kafka.faults.hold(TOPIC);
      await rig.time.pass(300_000);
      expect(running.topic(TOPIC)).to.include({ fillingSince: '2026-01-01T00:05:00.000Z' });
      release();
      await rig.time.pass(3_000);
      await expectDelivered(rig);
      expect(rig.kafka.records(TOPIC), 'once').to.have.length(4);
      expect(running.topic(TOPIC)).to.include({ state: 'live', fillingSince: undefined });
      rig.kafka.deleteTopic(TOPIC);
      rig.kafka.createTopic(specOf(TOPIC));
      await running.publisher.createTopics(new AbortController().signal);
      await rig.time.pass(2_000);
      await expectDelivered(rig);
      await running.stop();
      makeAnew();
      const next = rig.start();
      await rig.time.pass(2_000);
      await expectDelivered(rig);
      await next.stop();
    });

    it('is filled soon although nobody led it at the look behind `create-topics`', async () => {
      const running = rig.start();
      await rig.append('thing-a', 'thing-b');
      await rig.time.pass(2_000);
      rig.kafka.deleteTopic(TOPIC);
      rig.kafka.faults.leaderless(TOPIC);
      await running.publisher.createTopics(new AbortController().signal);
      await rig.time.pass(2_500);
      expect(rig.kafka.records(TOPIC)).to.deep.equal([]);
      rig.kafka.faults.leaderless();
      await rig.time.pass(5_000);
      await expectDelivered(rig);
      const asked = rig.kafka.asked();
      await rig.time.pass(120_000);
      expect(rig.kafka.asked(), 'all is known then').to.equal(asked);
      await running.stop();
    });

    it('is not one that took its first record after the last look at all topics', async () => {
      let fails = false;
      const store: EventStore = {
        ...rig.store,
        append: async (...args) => {
          if (!fails || !args[0].startsWith('sys-kafka-')) return rig.store.append(...args);
          fails = false;
          throw new StoreUnavailable('the log is away');
        },
      };
      const running = rig.start({ store });
      // The look at the start finds it empty.
      await rig.time.pass(2_000);
      await rig.append('thing-a');
      await rig.time.pass(2_000);
      fails = true;
      await rig.append('thing-b');
      await rig.time.pass(5_000);
      expect(fails, 'another session has begun').to.equal(false);
      // Of the second one no position was stored.
      expect([...valuesOf(rig.kafka)].toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0', 'thing-b@0']);
      await running.stop();
    });
  });

describe('a topic that was made anew and holds as many records as the one before', () => {
  it('is filled also where they are our own, of which the confirmation was lost', async () => {
    const rig = createRig();
    const running = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(0);
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0']);
    rig.kafka.faults.loseAnswers(TOPIC, 1);
    const release = rig.kafka.faults.hold(TOPIC);
    await rig.append('thing-a');
    await rig.time.pass(0);
    rig.kafka.deleteTopic(TOPIC);
    rig.kafka.createTopic(specOf(TOPIC));
    release();
    await rig.time.pass(10_000);
    expect(valuesOf(rig.kafka)[0], 'the first send came through').to.equal('thing-a@1');
    await expectFilled(rig);
    await running.stop();
  });

  it('is filled by whoever comes after a restart, and goes on by the brokers with which it was stored', async () => {
    const rig = createRig();
    const first = rig.start();
    await rig.append('thing-a', 'thing-b', 'thing-c');
    await rig.time.pass(2_000);
    await first.stop();
    const again = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    await again.stop();
    expect(rig.kafka.records(TOPIC), 'nothing comes twice').to.have.length(4);
    const records = rig.kafka.records(TOPIC);
    rig.kafka.deleteTopic(TOPIC);
    rig.kafka.createTopic(specOf(TOPIC));
    const other = await rig.kafka.producers.open(new AbortController().signal);
    await other.send(
      records.map(({ key }) => ({ topic: TOPIC, key, value: 'of somebody else', headers: {} })),
    );
    await other.close();
    const next = rig.start();
    await rig.time.pass(2_000);
    await next.stop();
    await expectFilled(rig);
  });

  const expectFilled = async ({ kafka, store }: Rig): Promise<void> => {
    const all: string[] = [];
    for await (const { stream, revision } of store.readAll({ limit: 1_000 }))
      if (stream.startsWith('thing-')) all.push(`${stream}@${revision}`);
    expect(valuesOf(kafka)).to.include.members(all);
  };
});

describe('a topic to which nothing was sent yet', () => {
  const isQuiet = ({ stream }: { readonly stream: string }): boolean => stream === 'thing-quiet';
  const map = (topic: string) => async (event: Parameters<typeof recordOf>[1]) =>
    isQuiet(event) ? [] : [recordOf(topic, event)];
  const warned = ({ log }: Rig): boolean => log.lines.some(({ level }) => level === 'warn');

  it('is not taken for one that was made anew when its first event comes behind others', async () => {
    const rig = createRig();
    const running = rig.start({ map });
    await rig.append('thing-quiet', 'thing-quiet');
    await rig.time.pass(2_000);
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0']);
    expect(warned(rig)).to.equal(false);
    await running.stop();
  });

  it('nor when it comes after a restart behind a position that was stored in passing; afterwards it may be', async () => {
    const rig = createRig();
    const first = rig.start({ map });
    const many = Array.from({ length: 10_001 }, (_, i) => ({
      id: `quiet-${i}`,
      type: 'ThingHappened',
      data: '{}',
      metadata: '{}',
    }));
    await rig.store.append('thing-quiet', 'no_stream', many);
    await rig.time.pass(10_000);
    await first.stop();
    const stored = await Array.fromAsync(rig.store.readStream(`sys-kafka-${TOPIC}`));
    expect(stored.map(({ data }) => data['nothingSent'])).to.deep.equal([true]);
    const second = rig.start({ map });
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(valuesOf(rig.kafka)).to.deep.equal(['thing-a@0']);
    expect(warned(rig)).to.equal(false);
    await second.stop();
    rig.kafka.deleteTopic(TOPIC);
    rig.kafka.createTopic(specOf(TOPIC));
    await rig.append('thing-b');
    const third = rig.start({ map });
    await rig.time.pass(10_000);
    expect([...valuesOf(rig.kafka)].toSorted()).to.deep.equal(['thing-a@0', 'thing-b@0']);
    expect(warned(rig)).to.equal(true);
    await third.stop();
  });
});
