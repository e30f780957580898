import type { JsonObject } from '../../domain/json.ts';
import { MAX_IDEMPOTENCY_KEY } from '../../app/commands/command.ts';
import { componentRef } from './message-schemas.ts';

/** Parameters and answer headers that many operations share: components of the document, named once here. */
const query = (name: string, schema: JsonObject, description: string): JsonObject => ({
  name,
  in: 'query',
  schema,
  description,
});
const header = (name: string, schema: JsonObject, description: string): JsonObject => ({
  name,
  in: 'header',
  schema,
  description,
});

const INT32: JsonObject = { type: 'integer', format: 'int32', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 };
const TEXT: JsonObject = { type: 'string' };
const FILLED: JsonObject = { type: 'string', minLength: 1 };
const FLAG: JsonObject = { type: 'boolean', default: false };
const ETAG: JsonObject = { type: 'string', pattern: '^("[A-Za-z]+-[0-9]{1,15}"|\\*)$' };
const UUID: JsonObject = { type: 'string', format: 'uuid' };

export const PARAMETERS = {
  id: { ...query('id', FILLED, 'Id of the object.'), in: 'path', required: true },
  offset: query('offset', INT32, 'How many matches to skip; a negative number counts as 0.'),
  limit: query(
    'limit',
    { ...INT32, minimum: 0, default: 100 },
    'How many objects to answer: at most 1,000, more is taken as 1,000. 0 answers the total only.',
  ),
  filter: query(
    'filter',
    TEXT,
    'Filter, as a CEL expression over `this` (the object) and `now`: comparisons, `&&`, `||`, `!`, `in`, ' +
      '`has()`, `contains`, `startsWith`, `endsWith`, labels by key, enums by name or number.',
  ),
  order: query(
    'order',
    TEXT,
    'Comma list of fields, each with an optional `asc` or `desc`, for example `metadata.name desc`. Default: in the order of creation.',
  ),
  as_of: query(
    'as_of',
    FILLED,
    'The past: a time of RFC 3339, or a position as X-Ledger-Position shows it. Later changes do not show. ' +
      'Lists reach back as far as watches do (90 days), everything else as far as the log.',
  ),
  update_mask: query(
    'update_mask',
    TEXT,
    'Comma list of the paths that change, into maps and lists too. Without it the fields that the body names change: ' +
      'lists and maps as a whole, null and {} clear.',
  ),
  lock: query(
    'lock',
    FLAG,
    'True: refused with 409 unless `metadata.version` of the body is the stored one (0 when absent).',
  ),
  after: query('after', TEXT, 'Goes on behind this position: the one of the last entry that you have.'),
  page_limit: query(
    'limit',
    { ...INT32, minimum: 0, default: 1000 },
    'How many entries to answer: at most 1,000.',
  ),
  from: query('from', TEXT, 'Goes on behind this event id: first what was missed, then what happens.'),
  watch_filter: query(
    'filter',
    TEXT,
    'Which events, as a CEL expression over `event`: what filters of lists can, `has(event.cluster)`, ' +
      '`event.type == EVENT_TYPE_OBJECT_CREATED`.',
  ),
  Idempotency_Key: header(
    'Idempotency-Key',
    { type: 'string', minLength: 1, maxLength: MAX_IDEMPOTENCY_KEY + 2 },
    'Makes repeating safe: the same key and request answer the same. A quoted string, or a bare token.',
  ),
  X_Ledger_Command_Id: header(
    'X-Ledger-Command-Id',
    UUID,
    'From a 504: repeats exactly that write, where it had no key. Not of version 5, and not together with ' +
      'Idempotency-Key.',
  ),
  If_Match: header('If-Match', ETAG, 'The ETag that the change is meant for; another one now is 412.'),
  If_None_Match: header('If-None-Match', TEXT, 'The ETag that you have; the same one now is 304.'),
  X_Dry_Run: header(
    'X-Dry-Run',
    { type: 'string', enum: ['true', 'false'] },
    'True: every check and default, no effect at all; answers the object as it would be.',
  ),
  X_Ledger_Ticket: header(
    'X-Ledger-Ticket',
    { type: 'string', maxLength: 128 },
    'Your ticket or change number; kept in the history in clear, out of the reach of an erasure: no personal data.',
  ),
  X_Ledger_Min_Position: header(
    'X-Ledger-Min-Position',
    TEXT,
    'Waits until this instance shows that position (an X-Ledger-Position); too late is 503.',
  ),
  X_Request_Id: header(
    'X-Request-Id',
    TEXT,
    'Your name for the call: in its answer, the log, the history and Kafka, in clear: no personal data. One of another form ' +
      'than letters, digits and ._:/+=- is replaced.',
  ),
  traceparent: header('traceparent', TEXT, 'W3C trace context; kept in the history.'),
  Last_Event_ID: header(
    'Last-Event-ID',
    TEXT,
    'As `from`, sent by browsers that connect again to an event stream.',
  ),
} satisfies { readonly [name: string]: JsonObject };

export type ParameterName = keyof typeof PARAMETERS;

export const parameterRef = (name: ParameterName): JsonObject => ({
  $ref: `#/components/parameters/${name}`,
});

/** Of every call that runs under a request id. */
export const ALWAYS: readonly ParameterName[] = ['X_Request_Id', 'traceparent'];

const answerHeader = (schema: JsonObject, description: string): JsonObject => ({ schema, description });

export const HEADERS = {
  X_Request_Id: answerHeader(TEXT, 'The id of this call, yours or made here.'),
  ETag: answerHeader(TEXT, 'Kind and revision of the object, for If-Match and If-None-Match.'),
  X_Ledger_Position: answerHeader(
    TEXT,
    'Position of the last event that this write stored; absent when nothing changed.',
  ),
  X_Ledger_Deleted_At: answerHeader(
    TEXT,
    'The object was deleted at this time, after the write that is repeated here.',
  ),
  X_Ledger_Reason: answerHeader(TEXT, 'Stable name of what is wrong, in CONSTANT_CASE.'),
  X_Ledger_Command_Id: answerHeader(
    UUID,
    'Id of a write without a key: send it back to repeat exactly this write.',
  ),
  Retry_After: answerHeader({ type: 'integer', minimum: 1 }, 'Seconds after which trying again makes sense.'),
  X_Ledger_Watch_Id: answerHeader(TEXT, 'Begin of the watch: give it as `from` to miss nothing.'),
  RateLimit: answerHeader(TEXT, 'Rest of your rate, as the draft of the RateLimit fields says.'),
  RateLimit_Policy: answerHeader(TEXT, 'The rate that holds for you.'),
  WWW_Authenticate: answerHeader(TEXT, 'How to authenticate and what was wrong.'),
  Allow: answerHeader(TEXT, 'Verbs that may be used.'),
} satisfies { readonly [name: string]: JsonObject };

export type HeaderName = keyof typeof HEADERS;

/** `X_Request_Id` → its place in an answer, under the name on the wire. */
export const headerRefs = (...names: readonly HeaderName[]): JsonObject =>
  Object.fromEntries(
    ['X_Request_Id' as const, ...names].map((name): [string, JsonObject] => [
      name.replaceAll('_', '-'),
      { $ref: `#/components/headers/${name}` },
    ]),
  );

export const jsonContent = (schema: JsonObject | string, examples: JsonObject = {}): JsonObject => ({
  'application/json': {
    schema: typeof schema === 'string' ? componentRef(schema) : schema,
    ...(Object.keys(examples).length === 0 ? {} : { examples }),
  },
});
