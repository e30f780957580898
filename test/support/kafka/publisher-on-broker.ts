import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import type { KafkaSettings } from '../../../src/adapters/kafka/kafkajs-client.ts';
import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { EventStore, EventToAppend } from '../../../src/app/log/event-store.ts';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { KafkaCluster } from '../../../src/app/publisher/ports.ts';
import { createPublisher, type Publisher } from '../../../src/app/publisher/publisher.ts';
import type { TopicStatus } from '../../../src/app/publisher/topic-status.ts';
import type { PublisherFailpoint, PublisherSettings } from '../../../src/app/publisher/types.ts';
import type { RecordMapper, TopicSpec } from '../../../src/app/streams/stream.ts';
import { recordOf, specOf } from '../../integration/kafka/publisher-rig.ts';
import type { ReadRecord } from '../../integration/kafka/contract.ts';
import { readTopic } from '../../integration/kafka/real-cluster.ts';
import { until } from '../service/stack.ts';
import { recordingLogger } from '../loggers.ts';

/** The publisher over the embedded event log and a real broker, in this process. */
export type BrokerRig = {
  readonly store: EventStore;
  readonly dataDir: string;
  readonly log: ReturnType<typeof recordingLogger>;
  /** Appends `count` events to each of the streams. */
  append(streams: readonly string[], count?: number): Promise<void>;
  start(options?: RigStart): RunningPublisher;
  /** Ends what still runs, and removes the log. */
  dispose(): Promise<void>;
};

export type RigStart = {
  readonly topics?: readonly (string | TopicSpec)[];
  readonly settings?: Partial<PublisherSettings>;
  readonly failpoint?: PublisherFailpoint;
  readonly ownership?: Ownership;
  readonly cluster?: KafkaCluster;
  /** Mapper of a topic, instead of the plain one. */
  readonly map?: (topic: string) => RecordMapper;
};

export type RunningPublisher = {
  readonly publisher: Publisher;
  topic(name?: string): TopicStatus;
  /** Waits until everything in the log is with the brokers. */
  caughtUp(name?: string, boundMs?: number): Promise<void>;
  stop(): Promise<void>;
};

export const TOPIC = 'things';
/** Milliseconds: a suite cannot wait for half a minute to see that nobody answers. */
export const REQUEST_MS = 1_500;
/** Waits that a suite can see the end of, and positions stored soon. */
export const SOON: Partial<PublisherSettings> = { retryMs: 100, longestRetryMs: 500, checkpointMs: 200 };

const shared: Ownership = {
  hold: async (signal, whileOwner) => {
    while (!signal.aborted) await whileOwner({ epoch: 1, signal });
  },
};

export const clusterOf = (
  brokers: readonly string[],
  logger: ReturnType<typeof recordingLogger>,
  more: Partial<KafkaSettings> = {},
): KafkaCluster =>
  createKafkaCluster(
    { brokers, clientId: 'publisher', requestMs: REQUEST_MS, ...more },
    { logger, clock: systemClock() },
  );

const specOfTopic = (topic: string | TopicSpec): TopicSpec =>
  typeof topic === 'string' ? specOf(topic) : topic;

/** Opens a log of its own. The topics must be made with `createTopics` of a publisher, or `makeTopics`. */
export const createBrokerRig = async (brokers: readonly string[]): Promise<BrokerRig> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'ledger-kafka-rig-'));
  const store = await openSqliteEventStore({ dataDir });
  const log = recordingLogger();
  const ids = systemIds();
  const running = new Set<RunningPublisher>();
  return {
    store,
    dataDir,
    log,
    append: (streams, count = 1) => appendThings(store, streams, count),
    start: ({ topics = [TOPIC], settings, failpoint, ownership = shared, cluster, map } = {}) => {
      const stop = new AbortController();
      const publisher = createPublisher({
        streams: () =>
          topics.map(specOfTopic).map((topic) => ({
            topic,
            map: map?.(topic.name) ?? ((event) => [recordOf(topic.name, event)]),
          })),
        topics: topics.map(specOfTopic),
        cluster: cluster ?? clusterOf(brokers, log),
        store,
        ownership,
        clock: systemClock(),
        timers: systemTimers(),
        ids,
        instance: `instance-${running.size + 1}`,
        logger: log,
        settings: { ...SOON, ...settings },
        ...(failpoint === undefined ? {} : { failpoint }),
      });
      const ended = publisher.run(stop.signal);
      const topic = (name = TOPIC): TopicStatus => {
        const found = publisher.status().topics.find((each) => each.topic === name);
        if (found === undefined) throw new Error(`no topic ${name}`);
        return found;
      };
      const self: RunningPublisher = {
        publisher,
        topic,
        caughtUp: (name = TOPIC, boundMs = 20_000) => untilCaughtUp(() => topic(name), store, boundMs),
        stop: async () => {
          stop.abort();
          await ended;
          running.delete(self);
        },
      };
      running.add(self);
      return self;
    },
    dispose: async () => {
      await Promise.all([...running].map((each) => each.stop()));
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};

const untilCaughtUp = async (
  status: () => TopicStatus,
  store: EventStore,
  boundMs: number,
): Promise<void> => {
  const end = await lastThing(store);
  const isThere = (): boolean => {
    const { state, waitingEvents, position } = status();
    return state === 'live' && waitingEvents === 0 && (end === undefined || (position ?? '') >= end);
  };
  await until('the topic is at the end of the log', isThere, boundMs).catch((error: unknown) => {
    throw new Error(`${String(error)}; last seen: ${JSON.stringify(status())}`, { cause: error });
  });
};

const lastThing = async (store: EventStore): Promise<string | undefined> => {
  let last: string | undefined;
  for await (const { stream, position } of store.readAll({ limit: 10_000_000 }))
    if (stream.startsWith('thing-')) last = position;
  return last;
};

/** `count` events at the end of each stream, in one append each. */
export const appendThings = async (
  store: EventStore,
  streams: readonly string[],
  count: number,
): Promise<void> => {
  const ids = systemIds();
  await Promise.all(
    streams.map(async (stream) => {
      const events = Array.from({ length: count }, (): EventToAppend => {
        return { id: ids.uuidv7(), type: 'ThingHappened', data: '{}', metadata: '{}' };
      });
      await store.append(stream, await store.currentRevision(stream), events);
    }),
  );
};

export const streamsOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, n) => `thing-${n}`);

/** Makes topics as the service would. */
export const makeTopics = async (
  brokers: readonly string[],
  ...topics: readonly (string | TopicSpec)[]
): Promise<void> => {
  const { admin } = clusterOf(brokers, recordingLogger());
  await admin.create(topics.map(specOfTopic), new AbortController().signal);
};

export type Delivered = { readonly records: readonly ReadRecord[]; readonly repeated: number };

/**
 * What a consumer that begins now finds: every event of the log's `thing-` streams is there, each key on one partition,
 * what came twice is equal, and for whoever keeps the consumer contract the order of each key is that of the log.
 */
export const expectDelivered = async (
  store: EventStore,
  brokers: readonly string[],
  topic = TOPIC,
): Promise<Delivered> => {
  const expected: string[] = [];
  for await (const { stream, revision } of store.readAll({ limit: 10_000_000 }))
    if (stream.startsWith('thing-')) expected.push(`${stream}@${revision}`);
  const records = await readTopic(brokers, topic);
  const contents = new Map<string, string>();
  const newest = new Map<string, number>();
  const partitions = new Map<string, number>();
  for (const { key, value, headers, partition } of records) {
    const id = value ?? '';
    const content = JSON.stringify([key, value, headers]);
    expect(contents.get(id) ?? content, `content of ${id}`).to.equal(content);
    expect(partitions.get(key) ?? partition, `partition of ${key}`).to.equal(partition);
    partitions.set(key, partition);
    const revision = Number(headers['osacrevision']);
    if (!contents.has(id)) {
      expect(revision, `first time of ${id}`).to.equal((newest.get(key) ?? -1) + 1);
      newest.set(key, revision);
    }
    contents.set(id, content);
  }
  expect(contents.size, 'events on the topic').to.equal(expected.length);
  expect([...contents.keys()].toSorted()).to.deep.equal(expected.toSorted());
  return { records, repeated: records.length - contents.size };
};
