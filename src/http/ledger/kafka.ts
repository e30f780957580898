import type { EventStore } from '../../app/log/event-store.ts';
import { KafkaFault, PUBLISHER_LEASE } from '../../app/publisher/ports.ts';
import { leaseHolder } from '../../app/deployment/ownership.ts';
import type { Publisher, PublisherStatus } from '../../app/publisher/publisher.ts';
import type { TopicPlan } from '../../app/publisher/topic-check.ts';
import type { TopicStatus } from '../../app/publisher/topic-status.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { ApiError, unavailable, unfit } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { ActServices } from './acts.ts';
import { refusalOf } from './kafka-faults.ts';
import { createReplays, type ReplayServices } from './kafka-replays.ts';
import { fieldsOf, readQuery, rendered, type InOurWords } from './forms.ts';
import {
  BROKERS_QUERY,
  KAFKA_STATUS,
  REPLAY_BODY,
  TOPIC_PLAN,
  type KafkaStatus,
  type KafkaTopicPlan,
  type RetriedStream,
  type TopicLine,
} from './kafka-operations.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/** The Kafka publisher: how far each topic is, the topics on the brokers, parked streams, replays. */
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
      fields: fieldsOf(REPLAY_BODY),
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

/** Ends when the caller goes, or after the time that it gives the brokers. Throws ApiError 400. */
const bounded = ({ query, signal }: LedgerCall): AbortSignal => {
  const { timeout_seconds: seconds } = readQuery(query, BROKERS_QUERY);
  return AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]);
};

const asked = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
  try {
    return await call;
  } catch (error) {
    throw error instanceof KafkaFault ? refusalOf(error) : error;
  }
};

const statusOf = async (services: KafkaServices, signal: AbortSignal): Promise<KafkaStatus> => {
  const { publisher, store } = services;
  if (publisher === undefined) return { configured: false, publishing: false, topics: [], problems: [] };
  const last = store.kind === 'eventstoredb' ? undefined : await store.lastPosition(signal);
  const status: PublisherStatus = publisher.status();
  const { epoch, notCompared } = status;
  return rendered(KAFKA_STATUS, {
    ...status,
    configured: true,
    publishing: epoch !== undefined,
    // How far the topics are only that one knows.
    owner: epoch === undefined ? await leaseHolder(store, PUBLISHER_LEASE, signal) : undefined,
    topics: status.topics.map((topic) => topicOf(topic, services.positions, last)),
    notCompared: notCompared.length === 0 ? undefined : notCompared,
  });
};

/** Positions of an EventStoreDB count bytes; there `last` is undefined, and how many events are behind is not known. */
const topicOf = (
  status: TopicStatus,
  positions: Positions,
  last: string | undefined,
): InOurWords<TopicLine> => {
  const { topic, state, position } = status;
  if (state === 'standby') return { topic, state };
  return {
    ...status,
    position: position === undefined ? undefined : positions.format(position),
    behindEvents:
      position === undefined || last === undefined ? undefined : Math.max(0, Number(last) - Number(position)),
    moreWaiting: status.isMoreWaiting || undefined,
    sentRecords: status.sent,
    parked: status.parked.map((each) => ({ ...each, position: positions.format(each.position) })),
  };
};

const planned = ({ topic, found, ...plan }: TopicPlan): KafkaTopicPlan =>
  rendered(TOPIC_PLAN, {
    ...topic,
    ...plan,
    topic: topic.name,
    exists: found !== undefined,
    found: found && {
      ...found,
      cleanup: found.cleanup || undefined,
      minInsync: finite(found.minInsync),
      retentionMs: finite(found.retentionMs),
    },
  });

const finite = (value: number): number | undefined => (Number.isFinite(value) ? value : undefined);

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

const retry = async (call: LedgerCall, services: KafkaServices): Promise<RetriedStream> => {
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
        'the brokers do not take the stream yet; the service retries: ledgerctl kafka status',
        'KAFKA_RETRY_PENDING',
        30,
      );
    case 'not-parked':
      throw new ApiError('NOT_FOUND', `topic '${topic}' has not parked a stream '${stream}' any more`);
    default:
      throw new ApiError('UNAVAILABLE', 'the publisher stopped; the stream is still parked', {
        retryAfterSeconds: 5,
      });
  }
};

const topicNamed = (topics: readonly TopicStatus[], name: string): TopicStatus => {
  const found = topics.find(({ topic }) => topic === name);
  if (found === undefined)
    throw new ApiError('NOT_FOUND', `topic '${name}' not found; ledgerctl kafka status lists them`);
  return found;
};
