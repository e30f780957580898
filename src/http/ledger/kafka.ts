import type { EventStore } from '../../app/event-store.ts';
import { KafkaFault, type KafkaFaultReason } from '../../app/publisher/ports.ts';
import { leaseHolder } from '../../app/ownership.ts';
import { PUBLISHER_LEASE, type Publisher, type PublisherStatus } from '../../app/publisher/publisher.ts';
import {
  REPLAY_NAME,
  ReplayTargetInUse,
  type ReplayRequest,
  type ReplayStep,
} from '../../app/publisher/replay.ts';
import type { TopicPlan } from '../../app/publisher/topic-check.ts';
import type { TopicStatus } from '../../app/publisher/topic-status.ts';
import { own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { ApiError, invalid } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/** The Kafka publisher: how far each topic is, the topics on the brokers, parked streams, replays (design §7, Kafka). */
export type KafkaServices = {
  /** Absent where no brokers are set. */
  readonly publisher?: Pick<Publisher, 'status' | 'plan' | 'createTopics' | 'retry' | 'replay'>;
  readonly positions: Positions;
  readonly store: Pick<EventStore, 'kind' | 'lastPosition' | 'readStream'>;
  /** Milliseconds that a caller waits for a parked stream. Default 20,000. */
  readonly retryMs?: number;
};

export const kafkaRoutes = (services: KafkaServices): readonly LedgerRoute[] => {
  const replays = { running: 0 };
  return [
    {
      verb: 'GET',
      path: 'kafka',
      handler: async ({ signal }) => ({ json: await statusOf(services, signal) }),
    },
    {
      verb: 'GET',
      path: 'kafka/topics',
      handler: async ({ signal }) => {
        const plan = await asked(configured(services).plan(signal));
        return { json: { items: plan.map(planned) } };
      },
    },
    {
      verb: 'POST',
      path: 'kafka/topics',
      handler: async ({ signal }) => {
        const created = await asked(configured(services).createTopics(signal));
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
      handler: (call) => ({ lines: replay(call, services, replays) }),
    },
  ];
};

const configured = ({ publisher }: KafkaServices): NonNullable<KafkaServices['publisher']> => {
  if (publisher === undefined)
    throw new ApiError('FAILED_PRECONDITION', 'no brokers are set: LEDGER_KAFKA_BROKERS is empty', {
      reason: 'KAFKA_NOT_CONFIGURED',
    });
  return publisher;
};

/** Reasons that somebody has to do something about; all others may pass. */
const LASTING: ReadonlySet<KafkaFaultReason> = new Set([
  'unauthorized',
  'topic-missing',
  'too-large',
  'invalid',
  'refused',
]);

const asked = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
  try {
    return await call;
  } catch (error) {
    throw error instanceof KafkaFault ? refusalOf(error) : error;
  }
};

const refusalOf = (fault: KafkaFault): ApiError => {
  const { reason, message } = fault;
  const code = `KAFKA_${reason.toUpperCase().replaceAll('-', '_')}`;
  return LASTING.has(reason)
    ? new ApiError('FAILED_PRECONDITION', `the brokers refuse it: ${message}`, { reason: code, cause: fault })
    : new ApiError('UNAVAILABLE', `the brokers do not answer: ${message}`, {
        reason: code,
        cause: fault,
        retryAfterSeconds: 5,
      });
};

const statusOf = async (services: KafkaServices, signal: AbortSignal): Promise<JsonObject> => {
  const { publisher, store } = services;
  if (publisher === undefined) return { configured: false, publishing: false, topics: [], problems: [] };
  const last = store.kind === 'eventstoredb' ? undefined : await store.lastPosition(signal);
  const { epoch, topics, problems }: PublisherStatus = publisher.status();
  const owner = epoch === undefined ? await leaseHolder(store, PUBLISHER_LEASE, signal) : undefined;
  return {
    configured: true,
    publishing: epoch !== undefined,
    ...(epoch === undefined ? {} : { epoch }),
    // How far the topics are only that one knows.
    ...(owner === undefined ? {} : { owner }),
    topics: topics.map((topic) => topicOf(topic, services.positions, last)),
    problems: problems.map((problem) => ({ ...problem })),
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
  lag_seconds: status.lagSeconds,
  sent_records: status.sent,
  ...(status.lastError === undefined ? {} : { last_error: { ...status.lastError } }),
  parked: status.parked.map(({ stream, revision, position, error, at }) => ({
    stream,
    revision,
    position: positions.format(position),
    error,
    at,
  })),
});

const planned = ({ topic, found, problems }: TopicPlan): JsonObject => ({
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

const retry = async ({ path }: LedgerCall, services: KafkaServices): Promise<JsonObject> => {
  const { retryMs = RETRY_MS } = services;
  const [topic, stream] = [path['topic'] ?? '', path['stream'] ?? ''];
  const publisher = configured(services);
  const { epoch, topics } = publisher.status();
  const status = topicNamed(topics, topic);
  if (epoch === undefined)
    throw new ApiError('FAILED_PRECONDITION', 'this instance does not publish at the moment', {
      reason: 'NOT_THE_OWNER',
    });
  if (!status.parked.some((parked) => parked.stream === stream))
    throw new ApiError('NOT_FOUND', `topic '${topic}' has not parked a stream '${stream}'`);
  const outcome = await within(retryMs, publisher.retry(topic, stream));
  switch (outcome?.outcome) {
    case 'published':
      return { stream, published: true, records: outcome.records };
    case 'parked':
      return { stream, published: false, revision: outcome.parked.revision, error: outcome.parked.error };
    case 'late':
      throw new ApiError(
        'UNAVAILABLE',
        'the brokers do not take it yet, it is tried on: ledgerctl kafka status',
        {
          reason: 'KAFKA_RETRY_PENDING',
          retryAfterSeconds: 30,
        },
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

/** Replays of one instance at one time: each reads the log and maps on the thread that answers. */
const REPLAYS = 1;

const replayRunning = (): ApiError =>
  new ApiError('FAILED_PRECONDITION', 'another replay runs on this instance; try again when it is over', {
    reason: 'REPLAY_RUNNING',
  });

/** `{"progress":…}` lines, then `{"report":…}`; ends with `{"error":…}` when it failed. */
const replay = (
  call: LedgerCall,
  services: KafkaServices,
  replays: { running: number },
): AsyncIterable<JsonValue> => {
  const publisher = configured(services);
  const request = replayRequest(call, services.positions);
  if (replays.running >= REPLAYS) throw replayRunning();
  const signal = call.ending === undefined ? call.signal : AbortSignal.any([call.signal, call.ending]);
  const steps = publisher.replay(request, signal);
  if (steps === undefined)
    throw new ApiError(
      'NOT_FOUND',
      `there is no topic '${request.topic}' that is made from the log; ledgerctl kafka status lists them`,
    );
  return linesOf(steps, services.positions, replays);
};

async function* linesOf(
  steps: AsyncIterable<ReplayStep>,
  positions: Positions,
  replays: { running: number },
): AsyncGenerator<JsonValue> {
  // Two may have been asked for at one moment.
  if (replays.running >= REPLAYS) throw replayRunning();
  replays.running += 1;
  try {
    for await (const step of steps) {
      if ('progress' in step) yield { progress: withPosition(step.progress, positions) };
      else {
        const { skipped, skippedEvents, target, ...progress } = step.report;
        yield {
          report: {
            topic: target,
            ...withPosition(progress, positions),
            skipped_events: skippedEvents,
            skipped: skipped.map((event) => ({ ...event })),
          },
        };
      }
    }
  } catch (error) {
    if (error instanceof ReplayTargetInUse)
      throw new ApiError('FAILED_PRECONDITION', error.message, { reason: 'REPLAY_TARGET_IN_USE' });
    throw error instanceof KafkaFault ? refusalOf(error) : error;
  } finally {
    replays.running -= 1;
  }
}

const withPosition = (
  { position, events, records }: { position: string | undefined; events: number; records: number },
  positions: Positions,
): JsonObject => ({
  events,
  records,
  ...(position === undefined ? {} : { position: positions.format(position) }),
});

const replayRequest = ({ path, body }: LedgerCall, positions: Positions): ReplayRequest => {
  const name = stringAt(body, 'name');
  if (!REPLAY_NAME.test(name))
    throw invalid("field 'name' must be 1 to 50 lower-case letters, digits or hyphens", 'name');
  for (const field of ['from', 'to'] as const)
    if (own(body, field) !== undefined && typeof own(body, field) !== 'string')
      throw invalid(`field '${field}' must be a position as X-Ledger-Position shows it`, field);
  const [from, to] = [stringAt(body, 'from'), stringAt(body, 'to')];
  return {
    topic: path['topic'] ?? '',
    name,
    ...(from === '' ? {} : { after: positions.parse(from, 'from') }),
    ...(to === '' ? {} : { until: positions.parse(to, 'to') }),
  };
};
