import { z } from 'zod';
import type { Descriptions } from '../openapi/description.ts';
import {
  COUNT,
  FLAG,
  itemsOf,
  listOf,
  maybe,
  NO_BODY,
  OPEN,
  SECONDS,
  shortText,
  TEXT,
  TIME,
} from './forms.ts';

const RECORDED = { position: TEXT, stream: TEXT, revision: COUNT, id: TEXT, type: TEXT, recordedAt: TIME };
const LISTED_EVENT = z.strictObject({
  ...RECORDED,
  tenant: TEXT,
  command: TEXT,
  commandId: TEXT,
  correlationId: TEXT,
  actor: TEXT,
  data: OPEN,
  internal: FLAG.optional(),
});
export type ListedEvent = z.infer<typeof LISTED_EVENT>;
const UNREADABLE_EVENT = z.strictObject({ ...RECORDED, unreadable: TEXT });
export type UnreadableLine = z.infer<typeof UNREADABLE_EVENT>;
const LOG_EVENT = z
  .union([LISTED_EVENT, UNREADABLE_EVENT, z.strictObject({ error: TEXT })])
  .meta({ id: 'LogEvent' });

export const EVENTS_QUERY = z.object({
  ...maybe({
    from: TEXT.describe('Goes on behind this position.'),
    stream: TEXT.describe('Only this stream; streams `sys-*` are shown only so.'),
    type: TEXT.describe('Only events of this type.'),
    tenant: TEXT.describe('Only events on behalf of this tenant.'),
  }),
  limit: COUNT.max(100_000).default(100).describe('How many lines; not with `follow`.'),
  follow: FLAG.default(false).describe('Goes on until you close the connection.'),
});
export type EventsQuery = z.infer<typeof EVENTS_QUERY>;

const FAILED = { order: TEXT, reason: TEXT, message: TEXT };
export const LANE = z
  .strictObject({
    lane: TEXT,
    breaker: z.enum(['closed', 'open', 'half-open']),
    paused: FLAG,
    ...maybe({
      in_flight: COUNT,
      waiting: COUNT,
      pause: z.strictObject({ by: TEXT, at: TEXT, reason: TEXT }),
      consecutive_failures: COUNT,
      failing_orders: COUNT.describe('Orders whose last attempt failed.'),
      failing: listOf(z.strictObject({ ...FAILED, failures: COUNT, set_aside: FLAG })),
      opened_by: z.strictObject(FAILED),
      last_reason: TEXT,
    }),
  })
  .meta({ id: 'Lane' });
export type Lane = z.infer<typeof LANE>;
export const PAUSE_BODY = z.object({
  reason: shortText(200).default('').describe('Why; shown to everybody who lists lanes.'),
});

const AT = maybe({ position: TEXT });
const PARKED = z.strictObject({ stream: TEXT, revision: COUNT, error: TEXT, ...AT });
const DAMAGED = z.object({ at: z.strictObject({ event: TEXT, position: TEXT }).optional() });
const PROJECTION = z
  .strictObject({
    name: TEXT,
    version: COUNT,
    position: TEXT.optional(),
    caughtUp: FLAG,
    lagSeconds: SECONDS,
    parkedStreams: listOf(PARKED),
    state: z.enum(['live', 'rebuilding', 'stopped', 'failed']),
    damaged: DAMAGED.describe('It has met something in the log that is not what was recorded.').optional(),
    rebuild: z.strictObject({ events: COUNT, position: TEXT.optional(), target: TEXT.optional() }).optional(),
    error: TEXT.optional(),
  })
  .meta({ id: 'Projection' });
export type Projection = z.infer<typeof PROJECTION>;

const REBUILD_REPORT = z.object({
  view: TEXT,
  events: COUNT,
  seconds: SECONDS,
  position: TEXT.optional(),
  outcome: z.enum(['switched', 'cancelled', 'differs']),
  differences: listOf(TEXT).describe('The first rows that differ.'),
});
export type RebuildReport = z.infer<typeof REBUILD_REPORT>;
const REBUILD_LINE = z
  .union([
    z.strictObject({ events: COUNT }),
    z.strictObject({ report: REBUILD_REPORT }),
    z.strictObject({ error: TEXT }),
  ])
  .meta({ id: 'RebuildLine' });
export type RebuildLine = z.infer<typeof REBUILD_LINE>;
export const REBUILD_BODY = z.object({
  force: FLAG.default(false).describe('Switch even when rows differ.'),
});

const DIGEST = z.strictObject({
  position: TEXT.optional(),
  digest: TEXT.regex(/^[0-9a-f]{64}$/),
  rows: COUNT,
});
export type Digest = z.infer<typeof DIGEST>;

const STORE = z.object({
  kind: TEXT,
  store_id: TEXT,
  single_writer: FLAG,
  ...maybe({ last_position: TEXT, pragmas: OPEN }),
});
export type StoreAnswer = z.infer<typeof STORE>;
const BACKUP = z.strictObject({ file: TEXT, bytes: COUNT });
export type Backup = z.infer<typeof BACKUP>;
const NO_PATH = 'must be an absolute path on the machine of the service';
export const BACKUP_BODY = z.object({
  file: z
    .string({ error: NO_PATH })
    .regex(/^\/\P{Cc}*$/u, { error: NO_PATH })
    .describe('Absolute path; the file must not exist yet.'),
});

/** What operators look after: the log, lanes, read models, the store. */
export const UPKEEP_DESCRIPTIONS: Descriptions = {
  'GET events': {
    summary: 'The log, oldest first, redacted as for the provider',
    description:
      'With `follow` the answer goes on as events happen. A line `{"error":…}` ends an answer that broke off.',
    query: EVENTS_QUERY,
    lines: LOG_EVENT,
  },
  'GET lanes': {
    summary: 'Queues of work towards hubs, of the instance that runs the processes',
    answer: itemsOf(LANE),
    errors: ['FAILED_PRECONDITION'],
  },
  'POST lanes/{lane}/pause': {
    summary: 'Holds back the work of one lane until it is resumed, also over restarts',
    body: PAUSE_BODY,
    answer: LANE,
    errors: ['FAILED_PRECONDITION'],
  },
  'POST lanes/{lane}/resume': {
    summary: 'Ends a pause',
    body: NO_BODY,
    answer: LANE,
    errors: ['FAILED_PRECONDITION'],
  },
  'GET projections': { summary: 'Read models of this instance', answer: itemsOf(PROJECTION) },
  'GET projections/{name}': { summary: 'One read model', answer: PROJECTION },
  'GET projections/{name}/digest': {
    summary: 'SHA-256 over all rows of a read model, at a stated position',
    answer: DIGEST,
  },
  'POST projections/{name}/rebuild': {
    summary: 'Builds a read model again beside the live one, compares and switches',
    description:
      'Progress lines, then the report; a line `{"error":…}` when it failed. Closing the connection stops it.',
    body: REBUILD_BODY,
    lines: REBUILD_LINE,
  },
  'POST projections/{name}/parked/{stream}/retry': {
    summary: 'Applies again what a parked stream missed',
    body: NO_BODY,
    answer: z.strictObject({ stream: TEXT, applied: FLAG }),
  },
  'GET store': { summary: 'The event store: kind, identity, last position', answer: STORE },
  'POST store/backup': {
    summary: "Copies the running log to a file on the service's machine",
    body: BACKUP_BODY,
    answer: BACKUP,
    errors: ['FAILED_PRECONDITION', 'UNIMPLEMENTED'],
  },
  'POST store/check': {
    summary: 'Reads the whole log and says what is wrong with it',
    body: NO_BODY,
    answer: z.strictObject({ events: COUNT, findings: listOf(TEXT) }),
    errors: ['UNIMPLEMENTED'],
  },
};
