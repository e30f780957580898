import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMemoryKafka, type MemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Heartbeats } from '../../../src/app/publisher/heartbeat-publisher.ts';
import { createPublisher, type Publisher } from '../../../src/app/publisher/publisher.ts';
import type { TopicStatus } from '../../../src/app/publisher/topic-status.ts';
import type { PublisherFailpoint, PublisherSettings } from '../../../src/app/publisher/types.ts';
import type { KafkaRecord, RecordMapper, TopicSpec, TopicStream } from '../../../src/app/streams/stream.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import { manualTime, type ManualTime } from '../../support/manual-time.ts';
import { recordingLogger } from '../../support/loggers.ts';

/** A publisher over a log and brokers in memory, and time that passes when it is told to. */
export type Rig = {
  readonly store: EventStore;
  readonly kafka: MemoryKafka;
  readonly time: ManualTime;
  readonly log: ReturnType<typeof recordingLogger>;
  /** Appends one event to each of the streams. */
  append(...streams: readonly string[]): Promise<void>;
  start(options?: StartOptions): Running;
};

export type StartOptions = {
  readonly topics?: readonly string[];
  readonly cleanup?: TopicSpec['cleanup'];
  /** Instead of the plain mapper, for the topics that it wants. */
  readonly map?: (topic: string) => RecordMapper | undefined;
  readonly settings?: Partial<PublisherSettings>;
  readonly failpoint?: PublisherFailpoint;
  readonly ownership?: Ownership;
  readonly heartbeats?: Heartbeats;
  /** Instead of the rig's own. */
  readonly store?: EventStore;
};

export type Running = {
  readonly publisher: Publisher;
  topic(name: string): TopicStatus;
  /** A clean end, for which it has time. */
  stop(): Promise<void>;
  /** Tells it to end, and waits for that only. */
  end(): Promise<void>;
};

export const TOPIC = 'things';

/** Everybody owns it: two at once are what a lease cannot rule out. */
const shared: Ownership = {
  hold: async (signal, whileOwner) => {
    // One that was overtaken gives it back, and has it again.
    while (!signal.aborted) await whileOwner({ epoch: 1, signal });
  },
};

export const specOf = (name: string): TopicSpec => ({
  name,
  kind: 'events',
  cleanup: 'delete',
  partitions: 2,
  retentionMs: 86_400_000,
  filter: { streamPrefixes: ['thing-'] },
});

/** One record an event; its text says which event it is. */
export const recordOf = (topic: string, { stream, revision }: RecordedEvent): KafkaRecord => ({
  topic,
  key: stream,
  value: `${stream}@${revision}`,
  headers: { osacrevision: String(revision) },
});

export const createRig = (options: { readonly topics?: readonly string[] } = {}): Rig => {
  const time = manualTime();
  const store = createMemoryEventStore({ now: time.clock.now, singleWriter: false });
  const kafka = createMemoryKafka();
  kafka.createTopics((options.topics ?? [TOPIC]).map(specOf));
  const log = recordingLogger();
  const ids = systemIds();
  let instances = 0;
  return {
    store,
    kafka,
    time,
    log,
    append: async (...streams) => {
      for (const stream of streams) {
        const event = { id: ids.uuidv7(), type: 'ThingHappened', data: '{}', metadata: '{}' };
        await store.append(stream, await store.currentRevision(stream), [event]);
      }
    },
    start: ({
      topics = options.topics ?? [TOPIC],
      map,
      settings,
      failpoint,
      ownership = shared,
      heartbeats,
      store: given,
      cleanup = 'delete',
    } = {}) => {
      const stop = new AbortController();
      instances += 1;
      const streams = (): readonly TopicStream[] =>
        topics.map((name) => ({
          topic: { ...specOf(name), cleanup },
          map: map?.(name) ?? ((event) => [recordOf(name, event)]),
        }));
      const publisher = createPublisher({
        streams,
        topics: [...topics, ...(heartbeats === undefined ? [] : [heartbeats.topic])].map((name) => ({
          ...specOf(name),
          cleanup,
        })),
        ...(heartbeats === undefined ? {} : { heartbeats }),
        cluster: kafka,
        store: given ?? store,
        ownership,
        clock: time.clock,
        timers: time.timers,
        ids,
        instance: `instance-${instances}`,
        logger: log,
        ...(settings === undefined ? {} : { settings }),
        ...(failpoint === undefined ? {} : { failpoint }),
      });
      const ended = publisher.run(stop.signal);
      return {
        publisher,
        topic: (name) => {
          const found = publisher.status().topics.find(({ topic }) => topic === name);
          if (found === undefined) throw new Error(`no topic ${name}`);
          return found;
        },
        end: () => {
          stop.abort();
          return ended;
        },
        stop: async () => {
          stop.abort();
          await time.pass(5_000);
          await ended;
        },
      };
    },
  };
};

/** Values of a topic as a consumer sees them. */
export const valuesOf = (kafka: MemoryKafka, topic = TOPIC): readonly string[] =>
  kafka.records(topic).map(({ value }) => value ?? '');

/**
 * At least once, and in order for whoever keeps the consumer contract: every event is there, what comes twice is equal,
 * and no event comes for the first time after a later one of its stream.
 */
export const expectDelivered = async (
  { store, kafka }: Pick<Rig, 'store' | 'kafka'>,
  topic = TOPIC,
): Promise<void> => {
  const expected: string[] = [];
  for await (const event of store.readAll({ limit: 1_000_000 }))
    if (event.stream.startsWith('thing-')) expected.push(`${event.stream}@${event.revision}`);
  const records = kafka.records(topic);
  const contents = new Map<string, string>();
  const newest = new Map<string, number>();
  for (const { key, value, headers } of records) {
    const id = value ?? '';
    const content = JSON.stringify([key, value, headers]);
    expect(contents.get(id) ?? content).to.equal(content);
    const revision = Number(headers['osacrevision']);
    if (!contents.has(id)) {
      expect(revision, `first time of ${id}`).to.equal((newest.get(key) ?? -1) + 1);
      newest.set(key, revision);
    }
    contents.set(id, content);
  }
  expect([...contents.keys()].toSorted()).to.deep.equal(expected.toSorted());
};
