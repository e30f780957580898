import { z } from 'zod';
import { REPLAY_NAME } from '../../app/publisher/ports.ts';
import type { Descriptions } from '../openapi/description.ts';
import { COUNT, FLAG, itemsOf, listOf, maybe, NO_BODY, SECONDS, TEXT, TIME } from './forms.ts';

const PROBLEM = {
  code: z
    .enum(['missing', 'cleanup', 'retention', 'partitions', 'replicas', 'insync', 'history'])
    .describe(
      '`history`: the topic holds what this log does not have, as after an older backup was restored.',
    ),
  message: TEXT,
};
const NOT_COMPARED = {
  reason: z
    .enum(['unauthorized', 'failed'])
    .describe(
      'Why the newest records of the topic were not compared with the log: the service has no right to read them, or the look failed and is repeated.',
    ),
  message: TEXT,
};

const PARKED = z.strictObject({ stream: TEXT, revision: COUNT, position: TEXT, error: TEXT, at: TIME });
export type ParkedLine = z.infer<typeof PARKED>;

const TRYING = z.strictObject({
  records: COUNT,
  since: TIME.describe('When the first try of these records began.'),
  attempt: COUNT.describe('Number of this send of them; one may be tried for minutes.'),
  failed: COUNT.describe('Failed attempts, also those within one send.'),
  problem: TEXT.optional(),
});
/** Of a topic on an instance that stands by only name and state are known. */
const TOPIC = z.strictObject({
  topic: TEXT,
  state: z.enum(['standby', 'catching-up', 'live', 'waiting', 'failed']),
  ...maybe({
    position: TEXT,
    behind_events: COUNT.describe(
      'Events of the log behind the position, of all kinds. Not with an EventStoreDB, whose positions count bytes.',
    ),
    waiting_events: COUNT.describe('Events that were read and are not with the brokers yet.'),
    waiting_records: COUNT.describe('Records that these became.'),
    more_waiting: FLAG.describe('The log was not read to its end: more may wait than is counted.'),
    waiting_since: TIME.describe('When the oldest event was recorded that is not with the brokers yet.'),
    lag_seconds: SECONDS,
    sent_records: COUNT.describe('Records that the brokers have confirmed since this instance was started.'),
    confirmed_at: TIME.describe('When the brokers confirmed records last.'),
    published: FLAG.describe('Records were sent to it, by this instance or one before. Not on `standby`.'),
    filling_since: TIME.describe(
      'Found empty although published to, it is filled from the beginning of the log.',
    ),
    trying: TRYING,
    last_error: z.strictObject({ reason: TEXT, message: TEXT, at: TIME }),
    parked: listOf(PARKED),
  }),
});
export type TopicLine = z.infer<typeof TOPIC>;

const TOPIC_PROBLEM = z.strictObject({ topic: TEXT, ...PROBLEM });
export type TopicProblem = z.infer<typeof TOPIC_PROBLEM>;

const BROKERS = z.strictObject({
  last_answer_at: TIME.describe('When the brokers answered this instance last.').optional(),
  trouble: z
    .strictObject({ message: TEXT, since: TIME, reason: z.enum(['unreachable', 'unauthorized']) })
    .optional(),
});
export const KAFKA_STATUS = z
  .strictObject({
    configured: FLAG,
    publishing: FLAG,
    epoch: COUNT.optional(),
    owner: TEXT.describe('The instance that publishes, while this one stands by.').optional(),
    brokers: BROKERS.optional(),
    topics: listOf(TOPIC),
    problems: listOf(TOPIC_PROBLEM),
    not_compared: listOf(z.strictObject({ topic: TEXT, ...NOT_COMPARED })).optional(),
  })
  .meta({ id: 'KafkaStatus' });
export type KafkaStatus = z.infer<typeof KAFKA_STATUS>;

const RETENTION_MS = z.int().min(-1);
export const TOPIC_PLAN = z
  .strictObject({
    topic: TEXT,
    kind: z.enum(['events', 'state', 'checkpoints', 'metering']),
    cleanup: z.enum(['delete', 'compact']),
    partitions: COUNT,
    retention_ms: RETENTION_MS,
    exists: FLAG,
    found: z
      .strictObject({
        partitions: COUNT,
        replicas: COUNT,
        ...maybe({ cleanup: TEXT, min_insync: COUNT, retention_ms: RETENTION_MS }),
      })
      .optional(),
    problems: listOf(z.strictObject(PROBLEM)),
    not_compared: z.strictObject(NOT_COMPARED).optional(),
  })
  .meta({ id: 'KafkaTopicPlan' });
export type KafkaTopicPlan = z.infer<typeof TOPIC_PLAN>;

const RETRIED = z.strictObject({
  stream: TEXT,
  published: FLAG,
  ...maybe({ records: COUNT, revision: COUNT, error: TEXT }),
});
export type RetriedStream = z.infer<typeof RETRIED>;

const PROGRESS = { events: COUNT, records: COUNT, position: TEXT.optional() };
const REPLAY_LINE = z
  .union([
    z.strictObject({ progress: z.strictObject(PROGRESS) }),
    z.strictObject({
      report: z.strictObject({
        topic: TEXT,
        ...PROGRESS,
        skipped_events: COUNT,
        skipped: listOf(z.strictObject({ stream: TEXT, revision: COUNT, error: TEXT })),
      }),
    }),
    z.strictObject({ error: TEXT, code: TEXT.optional() }),
  ])
  .meta({ id: 'KafkaReplayLine' });
export type KafkaReplayLine = z.infer<typeof REPLAY_LINE>;

export const BROKERS_QUERY = z.object({
  timeout_seconds: z.int().min(1).max(120).default(10).describe('How long the brokers may take to answer.'),
});
const NO_NAME = 'must be 1 to 50 lower-case letters, digits or hyphens';
export const REPLAY_BODY = z.object({
  name: z
    .string({ error: NO_NAME })
    .regex(REPLAY_NAME, { error: NO_NAME })
    .describe('Lower-case letters, digits, hyphens; at most 50.'),
  from: TEXT.describe(
    'Begins behind this position, as records have it (`osacposition`) or as `X-Ledger-Position` shows it; or with what was recorded at this RFC 3339 time. Absent: at the beginning of the log.',
  ).optional(),
  to: TEXT.describe(
    'Ends with this position, or in front of what was recorded at this time. Absent: at the end of the log.',
  ).optional(),
});

export const KAFKA_DESCRIPTIONS: Descriptions = {
  'GET kafka': {
    summary: 'How far each Kafka topic is, on the instance that answers',
    description: 'One of several instances publishes; the topics of the others are `standby`.',
    answer: KAFKA_STATUS,
  },
  'GET kafka/topics': {
    summary: 'Kafka topics as they should be and as the brokers have them',
    query: BROKERS_QUERY,
    answer: itemsOf(TOPIC_PLAN),
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics': {
    summary: 'Makes the Kafka topics that are missing',
    description: 'Topics that exist are left as they are.',
    query: BROKERS_QUERY,
    body: NO_BODY,
    answer: z.strictObject({ created: listOf(TEXT) }),
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics/{topic}/parked/{stream}/retry': {
    summary: 'Publishes again what a topic left out of a parked stream',
    description: 'Answered when the brokers have it, or the stream is parked again.',
    body: NO_BODY,
    answer: RETRIED,
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics/{topic}/replays': {
    summary: 'Publishes a part of the log again, to a topic of its own',
    description:
      'The records go to `<topic>.replay.<name>`, which is made. Lines of progress, then the report; a line `{"error":…,"code":…}` when it failed: `EVENT_CHANGED` in front of an event that is not the one that was recorded. Closing the connection stops it; it goes on with `from` the position of the last line.',
    body: REPLAY_BODY,
    lines: REPLAY_LINE,
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
};
