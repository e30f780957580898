import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createMemoryKafka, type MemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createPublisher, type Publisher } from '../../../src/app/publisher/publisher.ts';
import type { TopicStatus } from '../../../src/app/publisher/topic-status.ts';
import {
  eventIdOf,
  extensionsOf,
  recordOf,
  structured,
  timeOf,
} from '../../../src/app/streams/cloud-event.ts';
import type { TopicSpec } from '../../../src/app/streams/stream.ts';
import { originOf } from '../../../src/app/streams/streams.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';
import { specOf } from './publisher-rig.ts';
import { eventually } from '../../support/eventually.ts';
import { recordingLogger } from '../../support/loggers.ts';

const STATE: TopicSpec = { ...specOf('state'), kind: 'state', cleanup: 'compact', partitions: 3 };
const BILLS: TopicSpec = { ...specOf('bills'), kind: 'metering' };
const TOPICS = [STATE, BILLS];

/** A consumer that keeps the contract (docs/streams.md): it applies what is newer than it has seen of a stream. */
const applied = (kafka: MemoryKafka, before: readonly string[] = []): readonly string[] => {
  const seen = new Map<string, number>();
  const values: string[] = [...before];
  for (const { headers, value } of kafka.records(STATE.name)) {
    const [stream = '', revision] = [headers['osacstream'], Number(headers['osacrevision'])];
    if (revision <= (seen.get(stream) ?? -1)) continue;
    seen.set(stream, revision);
    values.push((JSON.parse(value ?? '{}') as { data: { says: string } }).data.says);
  }
  return values;
};

/** A log that goes back behind what was published, and on in another way. */
describe('the publisher after an older backup was restored', function () {
  this.timeout(30_000);
  const folders = temporaryFolders();
  const ids = systemIds();
  const endings: (() => Promise<unknown>)[] = [];
  let kafka: MemoryKafka;
  let log: ReturnType<typeof recordingLogger>;
  beforeEach(() => {
    kafka = createMemoryKafka();
    kafka.createTopics(TOPICS);
    log = recordingLogger();
  });
  afterEach(async () => {
    for (const end of endings.splice(0).toReversed()) await end();
    folders.clean();
  });

  const open = async (dataDir = folders.make()): Promise<SqliteEventStore> => {
    const store = await openSqliteEventStore({ dataDir });
    endings.push(() => store.close());
    return store;
  };
  const append = async (store: SqliteEventStore, stream: string, says: string): Promise<void> => {
    const data = JSON.stringify({ says });
    const event = { id: ids.uuidv7(), type: 'ThingHappened', data, metadata: '{}' };
    await store.append(stream, await store.currentRevision(stream), [event]);
  };
  const start = (store: SqliteEventStore, topics: readonly TopicSpec[] = TOPICS) => {
    const stop = new AbortController();
    const publisher = createPublisher({
      streams: () =>
        topics.map((topic) => ({
          topic,
          map: (event) => {
            const value = structured({
              id: eventIdOf(event),
              source: topic === BILLS ? 'osac-metering' : `${originOf(store.storeId)}/state`,
              type: 'thing',
              time: timeOf(event),
              extensions: extensionsOf(event),
              data: event.data,
            });
            return [recordOf(topic.name, event, value)];
          },
        })),
      topics,
      cluster: kafka,
      store,
      ownership: { hold: (signal, whileOwner) => whileOwner({ epoch: 1, signal }) },
      clock: systemClock(),
      timers: systemTimers(),
      ids,
      instance: 'one',
      logger: log,
      settings: { checkpointMs: 50, retryMs: 20, longestRetryMs: 100 },
    });
    const ended = publisher.run(stop.signal);
    const end = async (): Promise<void> => {
      stop.abort();
      await ended;
    };
    endings.push(end);
    return { publisher, end };
  };
  const topicOf = (publisher: Publisher, { name }: TopicSpec): TopicStatus | undefined =>
    publisher.status().topics.find(({ topic }) => topic === name);
  const published = (publisher: Publisher, topic: TopicSpec, count: number): Promise<unknown> =>
    eventually(`${count} records on ${topic.name}`, () => {
      const status = topicOf(publisher, topic);
      return kafka.records(topic.name).length === count && status?.waitingEvents === 0;
    });

  /** Two events are in the backup, two come after it and are published; then the log goes back to the backup. */
  const restored = async (): Promise<SqliteEventStore> => {
    const store = await open();
    await append(store, 'thing-a', 'a begins');
    await append(store, 'thing-b', 'b begins');
    const first = start(store);
    await published(first.publisher, STATE, 2);
    await published(first.publisher, BILLS, 2);
    await first.end();
    const backup = join(folders.make(), 'backup.db');
    await store.backup(backup);
    await append(store, 'thing-a', 'a was lost');
    await append(store, 'thing-c', 'c was lost');
    const second = start(store);
    await published(second.publisher, STATE, 4);
    await published(second.publisher, BILLS, 4);
    await second.end();
    await store.close();
    const dataDir = join(folders.make(), 'data');
    mkdirSync(dataDir);
    copyFileSync(backup, logFile(dataDir));
    return open(dataDir);
  };

  it('sends nothing to topics that hold what the log has lost, and says so and what to do', async () => {
    const store = await restored();
    await append(store, 'thing-a', 'a goes on otherwise');
    const { publisher } = start(store);
    await eventually('it is seen', () => topicOf(publisher, STATE)?.lastError?.reason === 'other-history');
    expect(kafka.records(STATE.name)).to.have.length(4);
    // What would have come of it: a consumer passes over what is new.
    expect(applied(kafka)).to.deep.equal(['a begins', 'b begins', 'a was lost', 'c was lost']);
    const state = topicOf(publisher, STATE);
    expect(state?.state).to.equal('failed');
    expect(state?.lastError?.message).to.match(
      /topic state holds thing-[ac]@[01].*restored from an older backup.*create-topics.*docs\/streams\.md/,
    );
    expect(publisher.status().problems.map(({ topic, code }) => [topic, code])).to.deep.include([
      'state',
      'history',
    ]);
    const told = JSON.stringify(log.lines.filter(({ level }) => level === 'warn'));
    expect(told).to.include('restored from an older backup');
    // Bills may have been made of what is there: new ones follow.
    await published(publisher, BILLS, 5);
    await eventually('bills go on', () => topicOf(publisher, BILLS)?.state === 'live');

    // As the message says: the topic is deleted and made anew, and gets all of the log.
    kafka.deleteTopic(STATE.name);
    await publisher.createTopics(new AbortController().signal);
    await published(publisher, STATE, 3);
    expect(applied(kafka).toSorted()).to.deep.equal(['a begins', 'a goes on otherwise', 'b begins']);
    await eventually('it is well', () => topicOf(publisher, STATE)?.state === 'live');
    expect(publisher.status().problems).to.deep.equal([]);
  });

  it('sees it also before there is anything to send, and after the instance was started again', async () => {
    const store = await restored();
    for (let i = 0; i < 2; i += 1) {
      const { publisher, end } = start(store);
      await eventually('it is seen', () =>
        publisher.status().problems.some(({ topic, code }) => topic === 'state' && code === 'history'),
      );
      await end();
    }
    expect(kafka.records(STATE.name)).to.have.length(4);
  });

  it('sees that what a topic holds is of another log', async () => {
    const first = await open();
    await append(first, 'thing-a', 'of the first log');
    const one = start(first);
    await published(one.publisher, STATE, 1);
    await one.end();
    const other = await open();
    await append(other, 'thing-a', 'of the other log');
    const { publisher } = start(other, [STATE]);
    await eventually('it is seen', () => topicOf(publisher, STATE)?.state === 'failed');
    expect(topicOf(publisher, STATE)?.lastError?.message).to.match(
      new RegExp(`holds records of another log, ${originOf(first.storeId)}: .*who else publishes.*before`),
    );
    expect(kafka.records(STATE.name)).to.have.length(1);
  });

  it('says once in its log what is the same of several topics', async () => {
    const states = [STATE, { ...specOf('sites'), kind: 'state' as const }];
    kafka.createTopics(states);
    const first = await open();
    await append(first, 'thing-a', 'of the first log');
    const one = start(first, states);
    for (const topic of states) await published(one.publisher, topic, 1);
    await one.end();
    const { publisher } = start(await open(), states);
    await eventually('both are seen', () => publisher.status().problems.length === 2);
    const told = log.lines.flatMap(({ fields }) => ('problems' in fields ? [fields.problems] : []));
    expect(told).to.deep.equal([[`state, sites ${publisher.status().problems[0]?.message}`]]);
  });

  it('goes on after a crash in which positions were not stored any more', async () => {
    const store = await open();
    await append(store, 'thing-a', 'a begins');
    const first = start(store);
    await published(first.publisher, STATE, 1);
    await first.end();
    const second = start(store);
    await append(store, 'thing-a', 'a goes on');
    await append(store, 'thing-b', 'b begins');
    await published(second.publisher, STATE, 3);
    expect(second.publisher.status().problems).to.deep.equal([]);
  });

  it('goes on where it may not read a topic, and says that it was not compared; the others are', async () => {
    const store = await restored();
    await append(store, 'thing-b', 'b goes on');
    kafka.faults.unreadable(BILLS.name);
    const { publisher } = start(store);
    await published(publisher, BILLS, 5);
    expect(publisher.status().notCompared).to.deep.equal([
      { topic: 'bills', reason: 'unauthorized', message: 'we have no right to read it (`Read`)' },
    ]);
    await eventually('the other is seen', () => topicOf(publisher, STATE)?.state === 'failed');
    expect(publisher.status().problems.map(({ topic }) => topic)).to.deep.equal(['state']);
  });

  it('goes on where it may read nothing, as before', async () => {
    kafka.faults.unreadable(STATE.name, BILLS.name);
    const store = await restored();
    await append(store, 'thing-b', 'b goes on');
    const { publisher } = start(store);
    await published(publisher, STATE, 5);
    expect(publisher.status().problems).to.deep.equal([]);
  });

  it('publishes also when the comparison fails, warns that nothing was compared, and says so', async () => {
    kafka.faults.looksFail(true);
    const store = await open();
    await append(store, 'thing-a', 'a begins');
    const { publisher } = start(store);
    await published(publisher, STATE, 1);
    await published(publisher, BILLS, 1);
    expect(publisher.status().problems).to.deep.equal([]);
    expect(publisher.status().notCompared).to.deep.equal(
      TOPICS.map(({ name }) => ({
        topic: name,
        reason: 'failed',
        message: 'the look at its newest records failed: the brokers refuse to be read',
      })),
    );
    const told = JSON.stringify(log.lines.filter(({ level }) => level === 'warn'));
    expect(told).to.include('the look at its newest records failed: the brokers refuse to be read');
    // And the plan of an operator is not refused either.
    const plan = await publisher.plan(new AbortController().signal);
    expect(plan.map(({ notCompared }) => notCompared?.reason)).to.deep.equal(['failed', 'failed']);
    kafka.faults.looksFail(false);
    await publisher.plan(new AbortController().signal);
    expect(publisher.status().notCompared).to.deep.equal([]);
  });

  it('goes on with a topic whose records have all expired', async () => {
    const store = await open();
    await append(store, 'thing-a', 'a begins');
    const first = start(store);
    await published(first.publisher, STATE, 1);
    await published(first.publisher, BILLS, 1);
    await first.end();
    kafka.expire(BILLS.name);
    await append(store, 'thing-a', 'a goes on');
    const { publisher } = start(store);
    await published(publisher, STATE, 2);
    await published(publisher, BILLS, 1);
    expect(publisher.status()).to.deep.include({ problems: [], notCompared: [] });
  });

  it('sends nothing still to what it has seen before when a later comparison fails', async () => {
    const store = await restored();
    await append(store, 'thing-a', 'a goes on otherwise');
    const { publisher } = start(store);
    await eventually('it is seen', () => topicOf(publisher, STATE)?.state === 'failed');
    kafka.faults.looksFail(true);
    await publisher.plan(new AbortController().signal);
    expect(publisher.status().problems.map(({ code }) => code)).to.include('history');
    expect(kafka.records(STATE.name)).to.have.length(4);
  });
});
