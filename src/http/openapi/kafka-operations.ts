import type { JsonObject } from '../../domain/json.ts';
import {
  COUNT,
  FLAG,
  listOf,
  NO_BODY,
  query,
  record,
  TEXT,
  TIME,
  type Description,
} from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';

const WITHIN = query(
  'timeout_seconds',
  { type: 'integer', minimum: 1, maximum: 120, default: 10 },
  'How long the brokers may take to answer.',
);

export const KAFKA_DESCRIPTIONS: { readonly [route: string]: Description } = {
  'GET kafka': {
    summary: 'How far each Kafka topic is, on the instance that answers',
    description: 'Of several instances one publishes; the topics of the others are `standby`.',
    answer: 'KafkaStatus',
  },
  'GET kafka/topics': {
    summary: 'Kafka topics as they should be and as the brokers have them',
    ownParameters: [WITHIN],
    answer: record({ items: listOf(componentRef('KafkaTopicPlan')) }),
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics': {
    summary: 'Makes the Kafka topics that are missing',
    description: 'Topics that exist are left as they are.',
    ownParameters: [WITHIN],
    body: NO_BODY,
    answer: record({ created: listOf(TEXT) }),
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics/{topic}/parked/{stream}/retry': {
    summary: 'Publishes again what a topic left out of a parked stream',
    description: 'Answered when the brokers have it, or the stream is parked again.',
    body: NO_BODY,
    answer: record({ stream: TEXT, published: FLAG, 'records?': COUNT, 'revision?': COUNT, 'error?': TEXT }),
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
  'POST kafka/topics/{topic}/replays': {
    summary: 'Publishes a part of the log again, to a topic of its own',
    description:
      'The records go to `<topic>.replay.<name>`, which is made. Lines of progress, then the report; a line `{"error":…,"code":…}` when it failed: `EVENT_CHANGED` in front of an event that is not the one that was recorded. Closing the connection stops it; it goes on with `from` the position of the last line.',
    body: {
      type: 'object',
      properties: {
        name: { ...TEXT, description: 'Lower-case letters, digits, hyphens; at most 50.' },
        from: {
          ...TEXT,
          description:
            'Begins behind this position, as records have it (`osacposition`) or as `X-Ledger-Position` shows it; or with what was recorded at this RFC 3339 time. Absent: at the beginning of the log.',
        },
        to: {
          ...TEXT,
          description:
            'Ends with this position, or in front of what was recorded at this time. Absent: at the end of the log.',
        },
      },
      required: ['name'],
    },
    lines: 'KafkaReplayLine',
    errors: ['FAILED_PRECONDITION', 'UNAVAILABLE'],
  },
};

const SECONDS: JsonObject = { type: 'number', minimum: 0 };
const CLEANUP: JsonObject = { type: 'string', enum: ['delete', 'compact'] };
const PROBLEM = {
  code: {
    type: 'string',
    enum: ['missing', 'cleanup', 'retention', 'partitions', 'replicas', 'insync', 'history'],
    description:
      '`history`: the topic holds what this log does not have, as after an older backup was restored.',
  },
  message: TEXT,
};

const NOT_COMPARED = {
  reason: {
    type: 'string',
    enum: ['unauthorized', 'failed'],
    description:
      'Why the newest records of the topic were not compared with the log: there is no right to read them, or the look failed and is repeated.',
  },
  message: TEXT,
};

const PROGRESS: JsonObject = { events: COUNT, records: COUNT, 'position?': TEXT };

export const KAFKA_COMPONENTS: { readonly [name: string]: JsonObject } = {
  KafkaStatus: record({
    configured: FLAG,
    publishing: FLAG,
    'epoch?': COUNT,
    'owner?': { ...TEXT, description: 'Of an instance that stands by: the one that publishes.' },
    'brokers?': record({
      'last_answer_at?': { ...TIME, description: 'When the brokers answered this instance last.' },
      'trouble?': record({
        message: TEXT,
        since: TIME,
        reason: { type: 'string', enum: ['unreachable', 'unauthorized'] },
      }),
    }),
    topics: listOf(
      record({
        topic: TEXT,
        state: { type: 'string', enum: ['standby', 'catching-up', 'live', 'waiting', 'failed'] },
        'position?': TEXT,
        'behind_events?': {
          ...COUNT,
          description:
            'Events of the log behind the position, of all kinds. Not with an EventStoreDB, whose positions count bytes.',
        },
        waiting_events: { ...COUNT, description: 'Events that were read and are not with the brokers yet.' },
        waiting_records: { ...COUNT, description: 'Records that these became.' },
        'more_waiting?': {
          ...FLAG,
          description: 'The log was not read to its end: more may wait than is counted.',
        },
        'waiting_since?': {
          ...TIME,
          description: 'When the oldest event was recorded that is not with the brokers yet.',
        },
        lag_seconds: SECONDS,
        sent_records: {
          ...COUNT,
          description: 'Records that the brokers have confirmed since this instance was started.',
        },
        'confirmed_at?': { ...TIME, description: 'When the brokers confirmed records last.' },
        'published?': {
          ...FLAG,
          description: 'Records were sent to it, by this instance or one before. Not on `standby`.',
        },
        'filling_since?': {
          ...TIME,
          description: 'Found empty although published to, it is filled from the beginning of the log.',
        },
        'trying?': record({
          records: COUNT,
          since: { ...TIME, description: 'When the first try of these records began.' },
          attempt: { ...COUNT, description: 'Which send of them it is; one may be tried for minutes.' },
          failed: { ...COUNT, description: 'Tries in vain, also those within one send.' },
          'problem?': TEXT,
        }),
        'last_error?': record({ reason: TEXT, message: TEXT, at: TIME }),
        parked: listOf(record({ stream: TEXT, revision: COUNT, position: TEXT, error: TEXT, at: TIME })),
      }),
    ),
    problems: listOf(record({ topic: TEXT, ...PROBLEM })),
    'not_compared?': listOf(record({ topic: TEXT, ...NOT_COMPARED })),
  }),
  KafkaTopicPlan: record({
    topic: TEXT,
    kind: { type: 'string', enum: ['events', 'state', 'checkpoints', 'metering'] },
    cleanup: CLEANUP,
    partitions: COUNT,
    retention_ms: { type: 'integer', minimum: -1 },
    exists: FLAG,
    'found?': record({
      partitions: COUNT,
      replicas: COUNT,
      'cleanup?': TEXT,
      'retention_ms?': { type: 'integer', minimum: -1 },
    }),
    problems: listOf(record(PROBLEM)),
    'not_compared?': record(NOT_COMPARED),
  }),
  KafkaReplayLine: {
    anyOf: [
      record({ progress: record(PROGRESS) }),
      record({
        report: record({
          topic: TEXT,
          ...PROGRESS,
          skipped_events: COUNT,
          skipped: listOf(record({ stream: TEXT, revision: COUNT, error: TEXT })),
        }),
      }),
      record({ error: TEXT, 'code?': TEXT }),
    ],
  },
};
