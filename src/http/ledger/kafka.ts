import type { EventStore } from '../../app/event-store.ts';
import { KafkaFault } from '../../app/publisher/ports.ts';
import { leaseHolder } from '../../app/ownership.ts';
import { PUBLISHER_LEASE, type Publisher, type PublisherStatus } from '../../app/publisher/publisher.ts';
import type { TopicPlan } from '../../app/publisher/topic-check.ts';
import type { TopicStatus, Trying } from '../../app/publisher/topic-status.ts';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, invalid, unavailable, unfit } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { ActServices } from './acts.ts';
import { refusalOf } from './kafka-faults.ts';
import { createReplays, type ReplayServices } from './kafka-replays.ts';
import { wholeNumber } from './query.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/** The Kafka publisher: how far each topic is, the topics on the brokers, parked streams, replays (design §7, Kafka). */
export type KafkaServices = ReplayServices &
  ActServices & {
    /** Absent where no brokers are set. */
    readonly publisher?: Pick<Publisher, 'status' | 'plan' | 'createTopics' | 'retry' | 'replay'>;
    readonly positions: Positions;
    readonly store: Pick<EventStore, 'kind' | 'lastPosition' | 'readStream'>;
    /** Milliseconds that a caller waits for a parked stream. Default 20,000. */
    readonly retryMs?: number;
  };

export const kafkaRoutes = (services: KafkaServices): readonly LedgerRoute[] => {
  const replays = createReplays(services);
  return [
    {
      verb: 'GET',
      path: 'kafka',
      handler: async ({ signal }) => ({ json: await statusOf(services, signal) }),
    },
    {
      verb: 'GET',
      path: 'kafka/topics',
      handler: async (call) => {
        const plan = await asked(configured(services).plan(bounded(call)));
        return { json: { items: plan.map(planned) } };
      },
    },
    {
      verb: 'POST',
      path: 'kafka/topics',
      handler: async (call) => {
        const publisher = configured(services);
        const signal = bounded(call);
        await services.recordAct(call, { act: 'kafka/topics' });
        const created = await asked(publisher.createTopics(signal));
        return { json: { created: [...created] } };
      },
    },
    {
      verb: 'POST',
      path: 'kafka/topics/{topic}/parked/{stream}/retry',
      handler: async (call) => ({ json: await retry(call, services) }),
    },
    {
      verb: 'POST',
      path: 'kafka/topics/{topic}/replays',
      fields: ['name', 'from', 'to'],
      handler: async (call) => {
        // Nothing is read until somebody takes the first line.
        const lines = await replays.lines(configured(services), call);
        const typed = stringAt(call.body, 'name');
        await services.recordAct(call, { act: 'kafka/replays', on: call.path['topic'] ?? '', typed });
        return { lines };
      },
    },
  ];
};

const configured = ({ publisher }: KafkaServices): NonNullable<KafkaServices['publisher']> => {
  if (publisher === undefined)
    throw unfit('no brokers are set: LEDGER_KAFKA_BROKERS is empty', 'KAFKA_NOT_CONFIGURED');
  return publisher;
};

/** Seconds that the brokers may take, unless the caller says otherwise; and at most. */
const ANSWER_SECONDS = 10;
const MOST_SECONDS = 120;

/** Ends when the caller goes, or after the time that it gives the brokers. Throws ApiError 400. */
const bounded = ({ query, signal }: LedgerCall): AbortSignal => {
  const seconds = wholeNumber(query, 'timeout_seconds', ANSWER_SECONDS, MOST_SECONDS);
  if (seconds === 0)
    throw invalid(
      `query parameter 'timeout_seconds' must be a whole number from 1 to ${MOST_SECONDS}`,
      'timeout_seconds',
    );
  return AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
};

const asked = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
  try {
    return await call;
  } catch (error) {
    throw error instanceof KafkaFault ? refusalOf(error) : error;
  }
};

const statusOf = async (services: KafkaServices, signal: AbortSignal): Promise<JsonObject> => {
  const { publisher, store } = services;
  if (publisher === undefined) return { configured: false, publishing: false, topics: [], problems: [] };
  const last = store.kind === 'eventstoredb' ? undefined : await store.lastPosition(signal);
  const { epoch, brokers, topics, problems, notCompared }: PublisherStatus = publisher.status();
  const owner = epoch === undefined ? await leaseHolder(store, PUBLISHER_LEASE, signal) : undefined;
  return {
    configured: true,
    publishing: epoch !== undefined,
    ...(epoch === undefined ? {} : { epoch }),
    // How far the topics are only that one knows.
    ...(owner === undefined ? {} : { owner }),
    brokers: {
      ...(brokers.lastAnswerAt === undefined ? {} : { last_answer_at: brokers.lastAnswerAt }),
      ...(brokers.trouble === undefined ? {} : { trouble: { ...brokers.trouble } }),
    },
    topics: topics.map((topic) => topicOf(topic, services.positions, last)),
    problems: problems.map((problem) => ({ ...problem })),
    ...(notCompared.length === 0 ? {} : { not_compared: notCompared.map((each) => ({ ...each })) }),
  };
};

/** Positions of an EventStoreDB count bytes; there `last` is undefined, and how many events are behind is not known. */
const topicOf = (status: TopicStatus, positions: Positions, last: string | undefined): JsonObject => ({
  topic: status.topic,
  state: status.state,
  ...(status.state === 'standby' ? {} : progressOf(status, positions, last)),
});

const progressOf = (status: TopicStatus, positions: Positions, last: string | undefined): JsonObject => ({
  ...(status.position === undefined ? {} : { position: positions.format(status.position) }),
  ...(status.position === undefined || last === undefined
    ? {}
    : { behind_events: Math.max(0, Number(last) - Number(status.position)) }),
  waiting_events: status.waitingEvents,
  waiting_records: status.waitingRecords,
  ...(status.isMoreWaiting ? { more_waiting: true } : {}),
  ...(status.waitingSince === undefined ? {} : { waiting_since: status.waitingSince }),
  lag_seconds: status.lagSeconds,
  sent_records: status.sent,
  ...(status.confirmedAt === undefined ? {} : { confirmed_at: status.confirmedAt }),
  published: status.published,
  ...(status.fillingSince === undefined ? {} : { filling_since: status.fillingSince }),
  ...(status.trying === undefined ? {} : { trying: tryingOf(status.trying) }),
  ...(status.lastError === undefined ? {} : { last_error: { ...status.lastError } }),
  parked: status.parked.map(({ stream, revision, position, error, at }) => ({
    stream,
    revision,
    position: positions.format(position),
    error,
    at,
  })),
});

const tryingOf = ({ records, since, attempt, failed, problem }: Trying): JsonObject => ({
  records,
  since,
  attempt,
  failed,
  ...(problem === undefined ? {} : { problem }),
});

const planned = ({ topic, found, problems, notCompared }: TopicPlan): JsonObject => ({
  topic: topic.name,
  kind: topic.kind,
  cleanup: topic.cleanup,
  partitions: topic.partitions,
  retention_ms: topic.retentionMs,
  exists: found !== undefined,
  ...(found === undefined
    ? {}
    : {
        found: {
          partitions: found.partitions,
          replicas: found.replicas,
          ...(found.cleanup === '' ? {} : { cleanup: found.cleanup }),
          ...(Number.isFinite(found.minInsync) ? { min_insync: found.minInsync } : {}),
          ...(Number.isFinite(found.retentionMs) ? { retention_ms: found.retentionMs } : {}),
        },
      }),
  problems: problems.map((problem) => ({ ...problem })),
  ...(notCompared === undefined ? {} : { not_compared: { ...notCompared } }),
});

/** Milliseconds that a caller waits for a stream that is published again. */
const RETRY_MS = 20_000;

/** What the work comes to, or `late`; it goes on then. */
const within = async <Outcome>(
  ms: number,
  work: Promise<Outcome>,
): Promise<Outcome | { readonly outcome: 'late' }> => {
  const late = Promise.withResolvers<{ readonly outcome: 'late' }>();
  const timer = setTimeout(() => late.resolve({ outcome: 'late' }), ms);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
};

const retry = async (call: LedgerCall, services: KafkaServices): Promise<JsonObject> => {
  const { path } = call;
  const { retryMs = RETRY_MS } = services;
  const [topic, stream] = [path['topic'] ?? '', path['stream'] ?? ''];
  const publisher = configured(services);
  const { epoch, topics } = publisher.status();
  const status = topicNamed(topics, topic);
  if (epoch === undefined) throw unfit('this instance does not publish at the moment', 'NOT_THE_OWNER');
  if (!status.parked.some((parked) => parked.stream === stream))
    throw new ApiError('NOT_FOUND', `topic '${topic}' has not parked a stream '${stream}'`);
  await services.recordAct(call, { act: 'kafka/retry', on: `${topic} ${stream}` });
  const outcome = await within(retryMs, publisher.retry(topic, stream));
  switch (outcome?.outcome) {
    case 'published':
      return { stream, published: true, records: outcome.records };
    case 'parked':
      return { stream, published: false, revision: outcome.parked.revision, error: outcome.parked.error };
    case 'late':
      throw unavailable(
        'the brokers do not take it yet, it is tried on: ledgerctl kafka status',
        'KAFKA_RETRY_PENDING',
        30,
      );
    case 'not-parked':
      throw new ApiError('NOT_FOUND', `topic '${topic}' has not parked a stream '${stream}' any more`);
    default:
      throw new ApiError('UNAVAILABLE', 'the publisher stopped meanwhile; the stream is parked still', {
        retryAfterSeconds: 5,
      });
  }
};

const topicNamed = (topics: readonly TopicStatus[], name: string): TopicStatus => {
  const found = topics.find(({ topic }) => topic === name);
  if (found === undefined)
    throw new ApiError('NOT_FOUND', `there is no topic '${name}'; ledgerctl kafka status lists them`);
  return found;
};
