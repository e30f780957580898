import type { Admin, DescribeConfigResponse } from 'kafkajs';
import type { Clock, Logger } from '../../app/ports.ts';
import {
  KafkaFault,
  type KafkaFaultReason,
  type TroubleAbout,
  REPLICAS,
  insyncOf,
  type KafkaAdmin,
  type KafkaCluster,
  type KafkaProducer,
  type KafkaRecord,
  type OnTrouble,
  type TopicOnBrokers,
  type TopicSpec,
} from '../../app/publisher/ports.ts';
import { faultOf } from './faults.ts';
import { type KafkaSettings, closed, createClients, type Client, type Listeners } from './kafkajs-client.ts';
import { CompressionTypes, connectionOf, createPartitioner } from './kafkajs-library.ts';
import { readLastRecords } from './last-records.ts';
import { whenLed } from './partition-leaders.ts';
import { readTopicEnds } from './topic-ends.ts';

/**
 * One piece of work at a time, which somebody else may break off. Nothing of a piece is kept once it has ended: a promise
 * that lives as long as the connection would keep a reaction for each piece that was ever raced against it.
 */
type Breakable = {
  /** What the work comes to, or what it is broken off with; the work itself goes on then, and nobody waits for it. */
  run<Result>(work: () => Promise<Result>): Promise<Result>;
  isRunning(): boolean;
  /** What runs fails with this, and so does all that is asked for later. */
  breakOff(error: Error): void;
};

export const createBreakable = (): Breakable => {
  let running: ((error: Error) => void) | undefined;
  let broken: Error | undefined;
  return {
    run: async <Result>(work: () => Promise<Result>): Promise<Result> => {
      if (running !== undefined) throw new TypeError('another piece of work runs');
      if (broken !== undefined) throw broken;
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      running = reject;
      try {
        work().then(resolve, reject);
        return await promise;
      } finally {
        running = undefined;
      }
    },
    isRunning: () => running !== undefined,
    breakOff: (error) => {
      broken ??= error;
      running?.(broken);
    },
  };
};

/** What became of each broker that was asked, so that whoever waits is told of all of them. */
export type Tried = {
  note(problem: string, about?: TroubleAbout): void;
  /** The fault, with every broker that was tried and what was wrong with it, where none could be reached or let us in. */
  explained(fault: unknown): unknown;
};

export const NO_ANSWER = 'no answer in time';
const OF_BROKERS: ReadonlySet<KafkaFaultReason> = new Set(['unreachable', 'unauthorized']);

export const createTried = (settings: Pick<KafkaSettings, 'brokers' | 'tlsCa' | 'sasl'>): Tried => {
  const problems = new Map<string, string>();
  return {
    note: (problem, { broker = '' } = {}) => {
      if (broker === '') return;
      const what = problem.replace(`${broker}: `, '').replace(/^Connection error: /, '');
      problems.set(broker, what.replace(`${broker} ended`, 'it ended').replace(` ${broker}`, ''));
    },
    explained: (fault) => {
      if (!(fault instanceof KafkaFault) || !OF_BROKERS.has(fault.reason)) return fault;
      const silent =
        fault.message === NO_ANSWER ? settings.brokers.filter((broker) => !problems.has(broker)) : [];
      const each = [...problems, ...silent.map((broker) => [broker, NO_ANSWER] as const)];
      if (each.length === 0) return fault.reason === 'unreachable' ? anyOf(settings.brokers, fault) : fault;
      const text = each.map(([broker, problem]) => `${broker}: ${problem}${hintOf(problem, settings)}`);
      return new KafkaFault(fault.reason, text.join('; '), { isAnswer: fault.isAnswer });
    },
  };
};

/** Nothing is known of any of them by itself. */
const anyOf = (brokers: readonly string[], { reason, message, isAnswer }: KafkaFault): KafkaFault =>
  new KafkaFault(reason, `${brokers.join(', ')}: ${message}`, { isAnswer });

/** What a setting may have to do with it, where the words do not say so. */
const hintOf = (problem: string, { tlsCa, sasl }: Pick<KafkaSettings, 'tlsCa' | 'sasl'>): string => {
  if (tlsCa !== undefined && /before secure TLS connection|wrong version number/.test(problem))
    return ' (does it speak TLS there? LEDGER_KAFKA_TLS_CA is set)';
  if (/certificate/i.test(problem)) return ' (see LEDGER_KAFKA_TLS_CA)';
  if (!/ended the connection|^Closed connection/.test(problem)) return '';
  const missing = [
    ...(tlsCa === undefined ? ['for TLS (LEDGER_KAFKA_TLS_CA)'] : []),
    ...(sasl === undefined ? ['for a password (LEDGER_KAFKA_SASL_MECHANISM)'] : []),
  ];
  return missing.length === 0 ? '' : ` (does it ask ${missing.join(' or ')}?)`;
};

/** Kafka by kafkajs: each producer and each administrative call has connections of its own. */
export const createKafkaCluster = (
  settings: KafkaSettings,
  { logger, clock }: { readonly logger: Logger; readonly clock: Clock },
): KafkaCluster => {
  const producing = createClients(settings, { logger, clock });
  // Somebody waits for what an administrator asks.
  const retries = Math.max(ADMIN_RETRY.retries, settings.brokers.length);
  const asking = createClients({ retry: { ...ADMIN_RETRY, retries }, ...settings }, { logger, clock });
  return {
    producers: {
      open: async (signal, mayWrite, onTrouble) => {
        const tried = createTried(settings);
        const listen: OnTrouble = (problem, about) => {
          tried.note(problem, about);
          onTrouble?.(problem, about);
        };
        const client = await producing({ mayWrite, onTrouble: listen });
        return openProducer(client, signal).catch((error: unknown) => {
          throw tried.explained(error);
        });
      },
    },
    admin: createAdmin(asking, settings),
  };
};

/** An offset that the brokers do not tell. */
const UNTOLD = '-1';
const ADMIN_RETRY = { retries: 3, maxRetryTime: 500 } as const;
/** Milliseconds that a goodbye may take; the connection is cut then. */
const GOODBYE_MS = 2_000;

const openProducer = async (client: Client, signal: AbortSignal): Promise<KafkaProducer> => {
  const producer = client.kafka.producer({
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    createPartitioner,
  });
  // Without a complete connect() it would send all the same, but without a producer id.
  await untilAborted(producer.connect(), client, signal);
  const sends = createBreakable();
  return {
    send: async (records) => {
      if (sends.isRunning()) throw new TypeError('a producer sends one batch at a time');
      try {
        const answers = await sends.run(() =>
          producer.sendBatch({
            acks: -1,
            compression: CompressionTypes.None,
            topicMessages: [...Map.groupBy(records, ({ topic }) => topic)].map(([topic, each]) => ({
              topic,
              messages: each.map(messageOf),
            })),
          }),
        );
        return answers.map(({ topicName, partition, baseOffset }) => ({
          topic: topicName,
          partition,
          offset: baseOffset ?? UNTOLD,
        }));
      } catch (error) {
        throw client.faultOf(error);
      }
    },
    close: async () => {
      const isSending = sends.isRunning();
      sends.breakOff(closed());
      if (!isSending) await goodbye(producer);
      client.cut();
    },
  };
};

/**
 * Without the event's time, so that it has the time of sending: brokers refuse what lies in the future, and retention
 * would remove what is old as soon as it is there.
 */
const messageOf = ({ key, value, headers }: KafkaRecord) => ({ key, value, headers: { ...headers } });

/** What the work comes to; cuts the client off and throws KafkaFault when it fails or the signal is aborted. */
const untilAborted = async <Result>(
  work: Promise<Result>,
  client: Client,
  signal: AbortSignal,
): Promise<Result> => {
  const abort = (): void => client.cut();
  const aborted = new Promise<never>((_, reject) => {
    const end = (): void => reject(isLate(signal) ? late() : closed());
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
    work.then(
      () => signal.removeEventListener('abort', end),
      () => signal.removeEventListener('abort', end),
    );
  });
  try {
    return await Promise.race([work, aborted]);
  } catch (error) {
    const fault = client.faultOf(error);
    abort();
    throw fault;
  }
};

/** Aborted by `AbortSignal.timeout`: whoever asks has no more time. */
const isLate = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError';
const late = (): KafkaFault => new KafkaFault('unreachable', NO_ANSWER);

type Connected = { connect(): Promise<void>; disconnect(): Promise<void> };

const goodbye = async (connected: Pick<Connected, 'disconnect'>): Promise<void> => {
  let late: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    late = setTimeout(resolve, GOODBYE_MS);
  });
  await Promise.race([connected.disconnect().catch(() => undefined), timeout]);
  clearTimeout(late);
};

const createAdmin = (
  clients: (listeners: Listeners) => Promise<Client>,
  settings: KafkaSettings,
): KafkaAdmin => {
  const over = async <Connection extends Connected, Result>(
    signal: AbortSignal,
    open: (kafka: Client['kafka']) => Connection,
    ask: (connection: Connection) => Promise<Result>,
  ): Promise<Result> => {
    const tried = createTried(settings);
    const client = await clients({ onTrouble: tried.note });
    const connection = open(client.kafka);
    try {
      const asked = connection.connect().then(() => ask(connection));
      const answer = await untilAborted(asked, client, signal);
      await goodbye(connection);
      return answer;
    } catch (error) {
      throw tried.explained(error);
    } finally {
      client.cut();
    }
  };
  const byAdmin = <Result>(signal: AbortSignal, ask: (admin: Admin) => Promise<Result>): Promise<Result> =>
    over(signal, (kafka) => kafka.admin(), ask);

  const create = async (admin: Admin, topics: readonly NewTopic[]): Promise<readonly string[]> => {
    const existing = new Set(await admin.listTopics());
    const missing = topics.filter(({ name }) => !existing.has(name));
    if (missing.length === 0) return [];
    const { brokers } = await admin.describeCluster();
    const replicas = Math.min(REPLICAS, brokers.length);
    await admin.createTopics({
      waitForLeaders: false,
      timeout: CREATE_MS,
      topics: missing.map(({ name, partitions, cleanup, retentionMs }) => ({
        topic: name,
        numPartitions: partitions,
        replicationFactor: replicas,
        configEntries: [
          { name: 'cleanup.policy', value: cleanup },
          // Retention goes by the brokers' clock, not by ours.
          { name: 'message.timestamp.type', value: 'LogAppendTime' },
          // One replica may be away without anything that was confirmed being lost (OSAC).
          { name: 'min.insync.replicas', value: String(insyncOf(replicas)) },
          ...(cleanup === 'delete' ? [{ name: 'retention.ms', value: String(retentionMs) }] : []),
        ],
      })),
    });
    const made = missing.map(({ name }) => name);
    await whenLed(admin, made, { withinMs: CREATE_MS });
    return made;
  };

  return {
    describe: (topics, signal) => byAdmin(signal, (admin) => describe(admin, topics)),
    endsOf: (topics, signal) => over(signal, connectionOf, (connection) => readTopicEnds(connection, topics)),
    lastRecords: async (topics, signal) => {
      try {
        return await over(signal, connectionOf, (connection) => readLastRecords(connection, topics));
      } catch (error) {
        if (faultOf(error).reason === 'unauthorized') return new Map();
        throw error;
      }
    },
    create: (topics, signal) => byAdmin(signal, (admin) => create(admin, topics)),
  };
};

type NewTopic = Pick<TopicSpec, 'name' | 'cleanup' | 'partitions' | 'retentionMs'>;

const CREATE_MS = 15_000;
/** `ConfigResourceTypes.TOPIC`: an enum of kafkajs that exists in its types only. */
const TOPIC_RESOURCE = 2;

const describe = async (
  admin: Admin,
  wanted: readonly string[],
): Promise<{ brokers: number; topics: ReadonlyMap<string, TopicOnBrokers> }> => {
  const existing = new Set(await admin.listTopics());
  const { brokers } = await admin.describeCluster();
  const names = wanted.filter((name) => existing.has(name));
  if (names.length === 0) return { brokers: brokers.length, topics: new Map() };
  const { topics } = await admin.fetchTopicMetadata({ topics: names });
  const settings = await settingsOf(admin, names);
  return {
    brokers: brokers.length,
    topics: new Map(
      topics.map(({ name, partitions }): [string, TopicOnBrokers] => [
        name,
        {
          partitions: partitions.length,
          replicas: Math.min(...partitions.map(({ replicas }) => replicas.length)),
          cleanup: settings.get(name)?.get('cleanup.policy') ?? '',
          retentionMs: Number(settings.get(name)?.get('retention.ms') ?? Number.NaN),
          minInsync: Number(settings.get(name)?.get('min.insync.replicas') ?? Number.NaN),
        },
      ]),
    ),
  };
};

/** Of a topic that is there; of one whose settings we may not see nothing. Publishing needs no right to see them. */
const settingsOf = async (
  admin: Admin,
  names: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> => {
  const resources = names.map((name) => ({
    type: TOPIC_RESOURCE,
    name,
    configNames: ['cleanup.policy', 'retention.ms', 'min.insync.replicas'],
  }));
  const answer: DescribeConfigResponse | undefined = await admin
    .describeConfigs({ includeSynonyms: false, resources })
    .catch((error: unknown) => {
      if (faultOf(error).reason === 'unauthorized') return undefined;
      throw error;
    });
  return new Map(
    (answer?.resources ?? []).map(({ resourceName, configEntries }) => [
      resourceName,
      new Map(configEntries.map(({ configName, configValue }) => [configName, configValue])),
    ]),
  );
};
