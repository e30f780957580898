import {
  KafkaFault,
  sizeOf,
  type Ends,
  type KafkaCluster,
  type KafkaFaultReason,
  type KafkaProducer,
  type KafkaRecord,
  type LastRecord,
  type Stored,
  type TopicOnBrokers,
  type TopicSpec,
} from '../../../app/publisher/ports.ts';
import { fnv1a32 } from '../../../domain/hash.ts';

export type StoredRecord = KafkaRecord & { readonly partition: number; readonly offset: number };

/**
 * Brokers in memory, for specs and simulations. They number the batches of a producer as real ones do, so that a
 * producer that goes on after a rejected send loses what it should not.
 */
export type MemoryKafka = KafkaCluster & {
  /** What a consumer of the topic sees, each partition in its order; nothing when there is no such topic. */
  records(topic: string): readonly StoredRecord[];
  createTopic(topic: NewTopic): void;
  /** Creates every topic of the list. */
  createTopics(topics: readonly NewTopic[]): void;
  deleteTopic(name: string): void;
  /** Takes the records away that a topic holds now, as its retention does; offsets go on behind them. */
  expire(name: string): void;
  alterTopic(name: string, change: Partial<TopicOnBrokers>): void;
  readonly faults: MemoryFaults;
  /** Producers that are open now, and that ever were. */
  connections(): { readonly open: number; readonly made: number };
  /** How often they were asked for anything but to take records. */
  asked(): number;
};

export type MemoryFaults = {
  /** How many there are. Default: 1. */
  brokers(count: number): void;
  /** They are older than topics have ids. */
  withoutTopicIds(): void;
  /** Nobody answers, until it is ended. */
  down(isDown: boolean): void;
  /** Credentials are refused, until it is ended. */
  wrongPassword(isWrong: boolean): void;
  /** Nobody has the right to read these topics; without names, none of them. */
  unreadable(...topics: readonly string[]): void;
  /** Nobody leads the partitions of these topics; without names, of none. */
  leaderless(...topics: readonly string[]): void;
  /** Whoever asks for newest records is refused, until it is ended. */
  looksFail(isFailing: boolean): void;
  /** Something goes wrong on the way, and is tried again: every open producer tells it. */
  trouble(problem: string): void;
  /** Every send of the topic is refused with this reason and nothing stored; undefined ends it. */
  refuse(topic: string, reason: KafkaFaultReason | undefined): void;
  /** The next sends of the topic are stored, and their answers lost. */
  loseAnswers(topic: string, times: number): void;
  /** Sends of the topic wait until the returned function is called. */
  hold(topic: string): () => void;
  /** The next send of the topic arrives when the returned function is called, whatever became of its producer. */
  delay(topic: string): () => void;
  /** Batches with a record of this value are refused, from now on. */
  invalid(value: string): void;
  /** Bytes of a batch that are taken. Default: 1 MiB. */
  maxBytes(bytes: number): void;
};

type NewTopic = Pick<TopicSpec, 'name' | 'cleanup' | 'partitions' | 'retentionMs'>;
type Sequence = { readonly first: number; readonly count: number };
type Topic = { readonly id: string; about: TopicOnBrokers; readonly partitions: Partition[] };
/** `end`: offset of the next record. */
type Partition = { records: StoredRecord[]; end: number };

const MAX_BYTES = 1024 * 1024;

export const createMemoryKafka = (): MemoryKafka => {
  const topics = new Map<string, Topic>();
  /** Last batch of each producer by partition. */
  const sequences = new Map<string, Sequence>();
  const refused = new Map<string, KafkaFaultReason>();
  const answersToLose = new Map<string, number>();
  const held = new Map<string, Promise<void>>();
  const invalid = new Set<string>();
  const onTheirWay = new Map<string, Promise<void>>();
  let brokers = 1;
  let isDown = false;
  let isWrongPassword = false;
  let unreadable: readonly string[] = [];
  let isLookFailing = false;
  let leaderless: readonly string[] = [];
  let maxBytes = MAX_BYTES;
  let made = 0;
  let madeTopics = 0;
  let hasIds = true;
  let open = 0;
  let asked = 0;
  const listeners = new Set<(problem: string) => void>();

  const ask = async (signal: AbortSignal): Promise<void> => {
    asked += 1;
    await Promise.resolve();
    if (signal.aborted) throw closed();
    assertReachable();
  };
  const assertReachable = (): void => {
    if (isDown) throw new KafkaFault('unreachable', 'no broker answers');
    if (isWrongPassword) throw new KafkaFault('unauthorized', 'the brokers refuse the password');
  };
  const createTopic = ({ name, partitions, cleanup, retentionMs }: NewTopic): void => {
    const about = { partitions, replicas: 1, minInsync: 1, cleanup, retentionMs };
    madeTopics += 1;
    topics.set(name, {
      id: `topic-${madeTopics}`,
      about,
      partitions: Array.from({ length: partitions }, () => ({ records: [], end: 0 })),
    });
  };

  /** Stores what one send brings to one partition. Throws KafkaFault. */
  const store = (
    producer: number,
    name: string,
    partition: number,
    first: number,
    records: readonly KafkaRecord[],
  ): Stored => {
    const log = topics.get(name)?.partitions[partition] ?? { records: [], end: 0 };
    const key = `${producer} ${name} ${partition}`;
    const last = sequences.get(key);
    const expected = last === undefined ? 0 : last.first + last.count;
    if (first !== expected) {
      // Taken for a repetition of the last one, whatever it holds.
      if (last !== undefined && first === last.first && records.length === last.count)
        return { topic: name, partition, offset: String(log.end - records.length) };
      throw new KafkaFault('refused', 'the broker received an out of order sequence number');
    }
    const offset = String(log.end);
    for (const record of records) {
      log.records.push({ ...record, partition, offset: log.end });
      log.end += 1;
    }
    sequences.set(key, { first, count: records.length });
    return { topic: name, partition, offset };
  };

  const openProducer = (mayWrite: () => boolean, onTrouble: (problem: string) => void): KafkaProducer => {
    listeners.add(onTrouble);
    made += 1;
    open += 1;
    const id = made;
    const next = new Map<string, number>();
    let isClosed = false;
    let isSending = false;
    const ended = Promise.withResolvers<void>();

    const deliver = async (name: string, records: readonly KafkaRecord[]): Promise<readonly Stored[]> => {
      await Promise.race([held.get(name), ended.promise]);
      if (isClosed) throw closed();
      assertReachable();
      const topic = topics.get(name);
      if (topic === undefined) throw new KafkaFault('topic-missing', `the brokers do not host topic ${name}`);
      const reason = refused.get(name);
      if (reason !== undefined) throw new KafkaFault(reason, `the brokers refuse records of topic ${name}`);
      if (records.reduce((sum, record) => sum + sizeOf(record), 0) > maxBytes)
        throw new KafkaFault('too-large', 'the request included a message larger than the brokers take');
      if (records.some(({ value }) => invalid.has(value ?? '')))
        throw new KafkaFault('invalid', 'the record has failed the validation on the broker');
      const batches = byPartition(records, topic.about.partitions);
      let stored: readonly Stored[] = [];
      const arrive = (): void => {
        stored = [...batches].map(([partition, batch]) =>
          store(id, name, partition, next.get(`${name} ${partition}`) ?? 0, batch),
        );
      };
      const late = onTheirWay.get(name);
      onTheirWay.delete(name);
      if (late === undefined) arrive();
      else await Promise.race([late.then(arrive), ended.promise]);
      if (isClosed) throw closed();
      const toLose = answersToLose.get(name) ?? 0;
      if (toLose > 0) {
        answersToLose.set(name, toLose - 1);
        throw new KafkaFault('unreachable', 'the answer of the broker was lost');
      }
      for (const [partition, batch] of batches) {
        const key = `${name} ${partition}`;
        next.set(key, (next.get(key) ?? 0) + batch.length);
      }
      return stored;
    };

    return {
      send: async (records) => {
        if (isSending) throw new TypeError('a producer sends one batch at a time');
        if (isClosed || !mayWrite()) throw closed();
        isSending = true;
        try {
          await Promise.resolve();
          const batches = Map.groupBy(records, ({ topic }) => topic);
          const stored: Stored[] = [];
          for (const [name, batch] of batches) stored.push(...(await deliver(name, batch)));
          return stored;
        } finally {
          isSending = false;
        }
      },
      close: async () => {
        if (isClosed) return;
        isClosed = true;
        listeners.delete(onTrouble);
        open -= 1;
        ended.resolve();
      },
    };
  };

  return {
    producers: {
      open: async (signal, mayWrite = () => true, onTrouble = () => undefined) => {
        await Promise.resolve();
        if (signal.aborted) throw closed();
        assertReachable();
        return openProducer(mayWrite, onTrouble);
      },
    },
    connections: () => ({ open, made }),
    asked: () => asked,
    admin: {
      describe: async (names, signal) => {
        await ask(signal);
        const found = names.flatMap((name): [string, TopicOnBrokers][] => {
          const topic = topics.get(name);
          return topic === undefined ? [] : [[name, topic.about]];
        });
        return { brokers, topics: new Map(found) };
      },
      endsOf: async (names, signal) => {
        await ask(signal);
        const endsOf = (name: string): Ends => {
          if (leaderless.includes(name))
            throw new KafkaFault('unreachable', 'the partition has no leader', { isAnswer: true });
          const topic = topics.get(name);
          if (topic === undefined)
            throw new KafkaFault('topic-missing', `the brokers do not host topic ${name}`);
          return {
            offsets: new Map(topic.partitions.map(({ end }, partition) => [partition, BigInt(end)])),
            topicId: hasIds ? topic.id : undefined,
          };
        };
        return new Map(names.map((name) => [name, endsOf(name)]));
      },
      lastRecords: async (names, signal) => {
        await ask(signal);
        if (isLookFailing) throw new KafkaFault('refused', 'the brokers refuse to be read');
        const readable = names.filter((name) => !unreadable.includes(name));
        const newest = readable.map((name): [string, LastRecord[]] => {
          const { partitions } = topics.get(name) ?? { partitions: [] };
          return [name, partitions.flatMap(({ records }) => records.slice(-1)).map(lastRecordOf)];
        });
        return new Map(newest);
      },
      create: async (wanted, signal) => {
        await ask(signal);
        const missing = wanted.filter(({ name }) => !topics.has(name));
        missing.forEach(createTopic);
        return missing.map(({ name }) => name);
      },
    },
    records: (name) => topics.get(name)?.partitions.flatMap(({ records }) => records) ?? [],
    createTopic,
    createTopics: (wanted) => wanted.forEach(createTopic),
    deleteTopic: (name) => void topics.delete(name),
    expire: (name) => {
      for (const partition of topics.get(name)?.partitions ?? []) partition.records = [];
    },
    alterTopic: (name, change) => {
      const topic = topics.get(name);
      if (topic !== undefined) topic.about = { ...topic.about, ...change };
    },
    faults: {
      withoutTopicIds: () => {
        hasIds = false;
      },
      brokers: (count) => {
        brokers = count;
      },
      down: (on) => {
        isDown = on;
      },
      wrongPassword: (on) => {
        isWrongPassword = on;
      },
      trouble: (problem) => {
        for (const tell of listeners) tell(problem);
      },
      unreadable: (...names) => {
        unreadable = names;
      },
      leaderless: (...names) => {
        leaderless = names;
      },
      looksFail: (on) => {
        isLookFailing = on;
      },
      refuse: (name, reason) => {
        if (reason === undefined) refused.delete(name);
        else refused.set(name, reason);
      },
      loseAnswers: (name, times) => void answersToLose.set(name, times),
      hold: (name) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        held.set(name, promise);
        return () => {
          if (held.get(name) === promise) held.delete(name);
          resolve();
        };
      },
      delay: (name) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        onTheirWay.set(name, promise);
        return resolve;
      },
      invalid: (value) => void invalid.add(value),
      maxBytes: (bytes) => {
        maxBytes = bytes;
      },
    },
  };
};

const closed = (): KafkaFault => new KafkaFault('closed', 'the connection to the brokers was closed');

const lastRecordOf = ({ partition, value, headers }: StoredRecord): LastRecord => ({
  partition,
  value,
  headers,
});

const byPartition = (
  records: readonly KafkaRecord[],
  partitions: number,
): ReadonlyMap<number, readonly KafkaRecord[]> =>
  Map.groupBy(records, ({ key }) => fnv1a32(key) % partitions);
