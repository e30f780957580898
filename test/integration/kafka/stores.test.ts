import { expect } from 'chai';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createMemoryKafka, type MemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { createPublisher, type Publisher } from '../../../src/app/publisher/publisher.ts';
import type { TopicSpec } from '../../../src/app/streams/stream.ts';
import { TREE_HEADS_STREAM } from '../../../src/app/streams/topics.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';
import { expectDelivered, recordOf, specOf, TOPIC } from './publisher-rig.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

const HEADS: TopicSpec = { ...specOf('heads'), filter: { streamPrefixes: [TREE_HEADS_STREAM] } };

/** What the event stores do differently: positions, `$maxCount`, filters, several writers. Time is the machine's own. */
describe('the publisher on the stores of production', function () {
  this.timeout(60_000);
  const folders = temporaryFolders();
  const bench = createBench();
  const endings: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of endings.splice(0).toReversed()) await end();
    await bench.clean();
    folders.clean();
  });
  const ids = systemIds();

  const append = async (store: EventStore, ...streams: readonly string[]): Promise<void> => {
    for (const stream of streams) {
      const event = { id: ids.uuidv7(), type: 'ThingHappened', data: '{}', metadata: '{}' };
      await store.append(stream, await store.currentRevision(stream), [event]);
    }
  };
  const brokers = (): MemoryKafka => {
    const kafka = createMemoryKafka();
    kafka.createTopics([specOf(TOPIC), HEADS]);
    return kafka;
  };
  /** One instance, and how to end it. */
  const start = (store: EventStore, kafka: MemoryKafka, instance: string, poison = new Set<string>()) => {
    const stop = new AbortController();
    const ports = { store, clock: systemClock(), timers: systemTimers(), logger: silentLogger, instance };
    const publisher = createPublisher({
      ...ports,
      streams: () =>
        [specOf(TOPIC), HEADS].map((topic) => ({
          topic,
          map: (event) => {
            if (poison.has(event.stream)) throw new Error('no record of it');
            return [recordOf(topic.name, event)];
          },
        })),
      topics: [specOf(TOPIC), HEADS],
      cluster: kafka,
      ownership: createLeases({ ...ports, directory: instance, ttlMs: 300 })('publisher'),
      ids,
      settings: { checkpointMs: 100, retryMs: 20, longestRetryMs: 100 },
    });
    const ended = publisher.run(stop.signal);
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    endings.push(end);
    return { publisher, end };
  };
  const parkedOf = (publisher: Publisher): readonly string[] =>
    publisher.status().topics.flatMap(({ parked }) => parked.map(({ stream }) => stream));

  /** `other`: a second instance of a store that can have one; it stands by from the beginning. */
  const publishes = async (store: EventStore, other?: EventStore): Promise<void> => {
    const kafka = brokers();
    const poison = new Set(['thing-p']);
    await append(store, 'thing-a', 'thing-p', 'other-x', 'thing-a', TREE_HEADS_STREAM);
    const first = start(store, kafka, 'one', poison);
    await eventually('what was there is published', () => kafka.records(TOPIC).length === 2);
    await eventually('heads of the tree are seen', () => kafka.records(HEADS.name).length === 1);
    await eventually('the poison is parked', () => parkedOf(first.publisher).length === 1);
    const standby = other === undefined ? undefined : start(other, kafka, 'two', poison);
    await append(other ?? store, 'thing-b', 'thing-a');
    await eventually('what comes is published', () => kafka.records(TOPIC).length === 4);
    await first.end();
    const second = standby ?? start(store, kafka, 'two', poison);
    await append(store, 'thing-b', 'thing-p', TREE_HEADS_STREAM);
    await eventually('the other one takes over', () => second.publisher.status().epoch === 2);
    await eventually('and publishes', () => kafka.records(TOPIC).some(({ value }) => value === 'thing-b@1'));
    expect(parkedOf(second.publisher)).to.deep.equal(['thing-p']);
    poison.clear();
    // What the topic has not read yet comes by itself afterwards.
    expect(await second.publisher.retry(TOPIC, 'thing-p')).to.have.property('outcome', 'published');
    await eventually('all of the stream', () =>
      kafka.records(TOPIC).some(({ value }) => value === 'thing-p@1'),
    );
    await eventually('heads again', () =>
      kafka.records(HEADS.name).some(({ value }) => value?.endsWith('@1') === true),
    );
    await second.end();
    await expectDelivered({ store, kafka });
    // Only the newest position is kept.
    let kept = 0;
    for await (const _ of store.readStream(`sys-kafka-${TOPIC}`)) kept += 1;
    expect(kept).to.equal(1);
  };

  it('embedded: publishes, parks, hands over and goes on', async () => {
    const store = await openSqliteEventStore({ dataDir: folders.make() });
    endings.push(() => store.close());
    await publishes(store);
  });

  it('EventStoreDB: publishes, parks, hands over and goes on', async () => {
    const peer = await bench.peer();
    await publishes(await bench.store(peer), await bench.store(peer, { instance: 'two' }));
  });
});
