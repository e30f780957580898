import { actingKinds } from '../../domain/acting-kinds.ts';
import type { JsonObject } from '../../domain/json.ts';
import { own } from '../../domain/json-tools.ts';
import type { ErrorName } from '../errors.ts';
import { decisionSchema, type DecisionName } from '../ledger/order-decisions.ts';
import { ORDER_STATES } from '../ledger/orders.ts';
import type { LedgerRoute } from '../ledger/serve.ts';
import { componentRef } from './message-schemas.ts';
import type { Operation, Verb } from './operation.ts';
import { AUDIT_DESCRIPTIONS } from './audit-operations.ts';
import { AUDIT_COMPONENTS } from './audit-schemas.ts';
import { AUDIT_TREE_COMPONENTS, AUDIT_TREE_DESCRIPTIONS } from './audit-tree-operations.ts';
import { HUB_COMPONENTS, HUB_DESCRIPTIONS } from './hub-operations.ts';
import { KAFKA_COMPONENTS, KAFKA_DESCRIPTIONS } from './kafka-operations.ts';
import {
  COUNT,
  FLAG,
  listOf,
  NO_BODY,
  OPEN,
  query,
  record,
  TEXT,
  TIME,
  type Description,
} from './ledger-schemas.ts';
import { headerRefs, jsonContent } from './parameters.ts';
import { ANY_BODY, ANY_CALL, ANY_WRITE, OF_ONE_OBJECT } from './refusals.ts';
import { USAGE_COMPONENTS, USAGE_DESCRIPTIONS } from './usage-operations.ts';

const KIND = query(
  'kind',
  { type: 'string', enum: ['', ...actingKinds.map(({ kind }) => kind)] },
  'Only orders of this kind. Needed where objects of several kinds have the same id.',
);
const ORDER = { id: 'Id of the order, which is the id of its object.' };
const PARKED = { stream: 'Name of the parked stream.' };
/** What the names in a path are, by its first part. */
const PATH_NAMES: { readonly [part: string]: { readonly [name: string]: string } | undefined } = {
  orders: ORDER,
  ...Object.fromEntries(actingKinds.map(({ collection }) => [collection, ORDER])),
  hubs: { id: 'Id of the hub.' },
  lanes: { lane: '`scheduler`, `hub:<id>`, `automation:eda:<id>` or `automation:aap:<id>`.' },
  projections: { name: 'Name of the read model, for example `resources`.', ...PARKED },
  kafka: { topic: 'Name of the topic, for example `osac.events.clusters.v1`.', ...PARKED },
  events: { id: 'Id of the event, or `<stream>@<revision>`.' },
  resources: {
    kind: 'Kind of the object: `cluster`, `clusters`, `host_type`, `host_types`.',
    id: 'Id of the object.',
  },
  exports: { id: 'Id of the export.' },
  holds: { id: 'Id of the hold.' },
  erasures: { id: 'Id of the erasure.' },
  grants: { id: 'Id of the grant.' },
  tile: { path: 'Level and number as tlog-tiles writes them; its slashes stay.' },
};
const ACT_ON_ORDER = {
  ownParameters: [KIND],
  parameters: ['Idempotency_Key', 'X_Ledger_Command_Id', 'If_Match', 'X_Ledger_Ticket'],
  body: NO_BODY,
  answer: record({ id: TEXT, revision: COUNT, 'resumed?': FLAG }),
  headers: ['X_Ledger_Position'],
  errors: [...ANY_WRITE, 'STALE_ETAG'],
} as const;
const DECISION = { at: TIME, by: TEXT, reason: TEXT };
const DECISIONS = record({
  id: TEXT,
  skipped: listOf(record({ step: TEXT, ...DECISION })),
  'aborted?': record(DECISION),
});
const decision = (name: DecisionName, summary: string): Description => ({
  ...ACT_ON_ORDER,
  summary,
  description: 'Where the decision holds already nothing happens, and the answer is the same.',
  body: decisionSchema(name),
  answer: DECISIONS,
});
/** What operators do here cannot be tried. */
const NO_DRY_RUN: ErrorName = 'UNIMPLEMENTED';

const DESCRIPTIONS: { readonly [route: string]: Description | undefined } = {
  'GET events': {
    summary: 'The log, oldest first, redacted as for the provider',
    description:
      'With `follow` the answer goes on as events happen. A line `{"error":…}` ends an answer that broke off.',
    ownParameters: [
      query('from', TEXT, 'Goes on behind this position.'),
      query('stream', TEXT, 'Only this stream; streams `sys-*` are shown only so.'),
      query('type', TEXT, 'Only events of this type.'),
      query('tenant', TEXT, 'Only events on behalf of this tenant.'),
      query('limit', { ...COUNT, maximum: 100_000, default: 100 }, 'How many lines; not with `follow`.'),
      query('follow', { type: 'string', enum: ['true', 'false'] }, 'Goes on until you close the connection.'),
    ],
    lines: 'LogEvent',
  },
  'GET orders': {
    summary: 'Orders of all kinds and tenants, newest first',
    ownParameters: [
      query('limit', { ...COUNT, minimum: 1, maximum: 1_000, default: 100 }, 'How many orders.'),
      query(
        'cursor',
        TEXT,
        'Where to go on: `next_cursor` of the page before. No order is passed over or told twice, whatever is ordered meanwhile.',
      ),
      KIND,
      query('tenant', TEXT, 'Only orders of this tenant.'),
      query('state', { type: 'string', enum: ['', ...ORDER_STATES] }, 'Only orders in this state.'),
    ],
    answer: record({ items: listOf(componentRef('OrderSummary')), total: COUNT, 'next_cursor?': TEXT }),
  },
  'GET orders/{id}': {
    summary: 'One order: why it waits or failed, what is outstanding, its timeline',
    ownParameters: [KIND],
    answer: 'Order',
  },
  'POST orders/{id}/retry': { summary: 'Tries a failed order again', ...ACT_ON_ORDER },
  'POST orders/{id}/cancel': {
    summary: 'Cancels an order that no hub has been asked for yet',
    ...ACT_ON_ORDER,
  },
  'POST orders/{id}/skip': decision('skip', 'Skips a step of an order: what comes after it goes on'),
  'POST orders/{id}/resume': decision('resume', 'Takes a skipped step of an order up again'),
  'POST orders/{id}/abort': decision('abort', 'Aborts an order: what was begun is undone in reverse order'),
  ...Object.fromEntries(
    actingKinds.map(({ collection, words }) => [
      `GET ${collection}/{id}`,
      {
        summary: `What was observed of one ${words}, beyond the states of the OSAC surfaces`,
        answer: 'OrderConditions',
      },
    ]),
  ),
  ...HUB_DESCRIPTIONS,
  ...KAFKA_DESCRIPTIONS,
  ...AUDIT_TREE_DESCRIPTIONS,
  'GET lanes': {
    summary: 'Queues of work towards hubs, of the instance that runs the processes',
    answer: record({ items: listOf(componentRef('Lane')) }),
    errors: ['FAILED_PRECONDITION'],
  },
  'POST lanes/{lane}/pause': {
    summary: 'Holds back the work of one lane until it is resumed, also over restarts',
    body: record({
      'reason?': { ...TEXT, maxLength: 200, description: 'Why; shown to everybody who lists lanes.' },
    }),
    answer: 'Lane',
    errors: ['FAILED_PRECONDITION'],
  },
  'POST lanes/{lane}/resume': {
    summary: 'Ends a pause',
    body: NO_BODY,
    answer: 'Lane',
    errors: ['FAILED_PRECONDITION'],
  },
  'GET projections': {
    summary: 'Read models of this instance',
    answer: record({ items: listOf(componentRef('Projection')) }),
  },
  'GET projections/{name}': {
    summary: 'One read model',
    answer: 'Projection',
  },
  'GET projections/{name}/digest': {
    summary: 'SHA-256 over all rows of a read model, at a stated position',
    answer: record({ 'position?': TEXT, digest: { type: 'string', pattern: '^[0-9a-f]{64}$' }, rows: COUNT }),
  },
  'POST projections/{name}/rebuild': {
    summary: 'Builds a read model again beside the live one, compares and switches',
    description:
      'Progress lines, then the report; a line `{"error":…}` when it failed. Closing the connection stops it.',
    body: {
      type: 'object',
      properties: { force: { type: 'boolean', description: 'Switch even when rows differ.' } },
    },
    lines: 'RebuildLine',
  },
  'POST projections/{name}/parked/{stream}/retry': {
    summary: 'Applies again what a parked stream missed',
    body: NO_BODY,
    answer: record({ stream: TEXT, applied: FLAG }),
  },
  'GET store': {
    summary: 'The event store: kind, identity, last position',
    answer: {
      type: 'object',
      properties: { kind: TEXT, store_id: TEXT, single_writer: FLAG, last_position: TEXT, pragmas: OPEN },
      required: ['kind', 'store_id', 'single_writer'],
    },
  },
  'POST store/backup': {
    summary: "Copies the running log to a file on the service's machine",
    body: {
      ...record({ file: { type: 'string', description: 'Absolute path; the file must not exist yet.' } }),
      additionalProperties: true,
    },
    answer: record({ file: TEXT, bytes: COUNT }),
    errors: ['FAILED_PRECONDITION', 'UNIMPLEMENTED'],
  },
  ...USAGE_DESCRIPTIONS,
  'POST store/check': {
    summary: 'Reads the whole log and says what is wrong with it',
    body: NO_BODY,
    answer: record({ events: COUNT, findings: listOf(TEXT) }),
    errors: ['UNIMPLEMENTED'],
  },
};

/** What all routes of a surface have; where the role `auditor` is off every route of audit says so. */
type Common = Required<Pick<Description, 'parameters' | 'headers' | 'errors'>>;
const NOTHING: Common = { parameters: [], headers: [], errors: [] };
const AUDIT_LOOK: Common = {
  parameters: ['X_Ledger_Min_Position'],
  headers: [],
  errors: ['FAILED_PRECONDITION'],
};
const AUDIT_WRITE: Common = {
  parameters: ['Idempotency_Key', 'X_Ledger_Command_Id', 'X_Ledger_Ticket'],
  headers: ['X_Ledger_Position'],
  errors: ANY_WRITE,
};

type LedgerSurface = {
  readonly descriptions: { readonly [route: string]: Description | undefined };
  readonly look: Common;
  readonly write: Common;
};

const SURFACES: { readonly [Name in 'ledger' | 'audit']: LedgerSurface } = {
  ledger: { descriptions: DESCRIPTIONS, look: NOTHING, write: NOTHING },
  audit: { descriptions: AUDIT_DESCRIPTIONS, look: AUDIT_LOOK, write: AUDIT_WRITE },
};

/** True when a route has a description: what a test asks of every route. */
export const isDescribed = (
  { verb, path }: Pick<LedgerRoute, 'verb' | 'path'>,
  surface: 'ledger' | 'audit' = 'ledger',
): boolean => own(SURFACES[surface].descriptions, `${verb} ${path}`) !== undefined;

export const ledgerOperations = (
  prefix: string,
  routes: readonly LedgerRoute[],
  surface: 'ledger' | 'audit' = 'ledger',
): readonly Operation[] =>
  routes.map(({ verb, path }) => ({
    verb: verb.toLowerCase() as Verb,
    path: `${prefix}/${path.replace('*}', '}')}`,
    operationId: `${surface}_${nameOf(verb, path)}`,
    tag: `${surface}.${path.split('/')[0] ?? ''}`,
    style: 'problem',
    ...shapeOf(verb, path, SURFACES[surface]),
  }));

/** `GET orders/{id}` → `GetOrdersId`. */
const nameOf = (verb: string, path: string): string =>
  [verb.toLowerCase(), ...path.split('/')]
    .map((part) => part.replaceAll(/\W/g, ''))
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

const shapeOf = (verb: string, path: string, { descriptions, look, write }: LedgerSurface) => {
  const found: Description = own(descriptions, `${verb} ${path}`) ?? { summary: path };
  const common = verb === 'GET' ? look : write;
  const { summary, description, ownParameters, body, lines, status = 200 } = found;
  const { parameters = common.parameters, headers: shown = common.headers, errors = [] } = found;
  const headers = headerRefs(...shown);
  const typed = (types: { readonly [type: string]: JsonObject }): JsonObject =>
    Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema }]));
  const content =
    found.content !== undefined
      ? typed(found.content)
      : lines === undefined
        ? jsonContent(found.answer ?? {})
        : typed({ 'application/x-ndjson': componentRef(lines) });
  const done = status === 202 ? 'Accepted.' : lines === undefined ? 'Done.' : 'One JSON value per line.';
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    parameters,
    ...(ownParameters === undefined ? {} : { ownParameters }),
    pathNames: namesIn(path),
    ...(body === undefined ? {} : { body: { schema: body, required: Array.isArray(body['required']) } }),
    answers: {
      [status]: { description: done, headers, content: { ...content, ...typed(found.alternatives ?? {}) } },
      ...(found.partial === true
        ? {
            206: { description: 'The part that was asked for.', headers, content },
            304: { description: 'You have it already.', headers },
          }
        : {}),
    },
    errors: [
      ...ANY_CALL,
      ...common.errors,
      ...errors,
      ...(path.includes('{') ? OF_ONE_OBJECT : []),
      ...(verb === 'POST' ? ANY_BODY : []),
      ...(verb === 'GET' ? [] : [NO_DRY_RUN]),
    ],
  };
};

const namesIn = (path: string): { readonly [name: string]: string } => {
  const known = PATH_NAMES[path.split('/')[0] ?? ''];
  return Object.fromEntries(
    [...path.matchAll(/\{(\w+)\*?\}/g)].map(([, name = '']) => [name, known?.[name] ?? `The ${name}.`]),
  );
};

const RECORDED: JsonObject = {
  position: TEXT,
  stream: TEXT,
  revision: COUNT,
  id: TEXT,
  type: TEXT,
  recordedAt: TIME,
};
const IDENTITY: JsonObject = { kind: TEXT, id: TEXT, name: TEXT, tenant: TEXT, 'project?': TEXT };
const PROGRESS: JsonObject = { state: TEXT, 'hub?': TEXT, 'message?': TEXT };
const WAITING: JsonObject = {
  'waiting_for?': listOf(TEXT),
  'waiting?': record({ message: TEXT, decision: OPEN }),
};
const CONDITION: JsonObject = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['True', 'False', 'Unknown', 'NotObservable'] },
    reason: TEXT,
    message: TEXT,
    since: TIME,
  },
  required: ['status', 'reason', 'message'],
};
const CONDITIONS: JsonObject = {
  type: 'object',
  description:
    'Of a cluster the first four always, but for a deleted one; `ChangeFailed` and `ResizeWaiting` while a running cluster is not as it was ordered last.',
  properties: Object.fromEntries(
    [
      'ClusterAvailable',
      'NodesReady',
      'InfrastructureReady',
      'TemplateApplied',
      'ChangeFailed',
      'ResizeWaiting',
    ].map((name) => [name, CONDITION]),
  ),
};

export const LEDGER_COMPONENTS: { readonly [name: string]: JsonObject } = {
  LogEvent: {
    anyOf: [
      record({
        ...RECORDED,
        tenant: TEXT,
        command: TEXT,
        commandId: TEXT,
        correlationId: TEXT,
        actor: TEXT,
        data: OPEN,
        'internal?': FLAG,
      }),
      record({ ...RECORDED, unreadable: TEXT }),
      record({ error: TEXT }),
    ],
  },
  OrderSummary: record({ ...IDENTITY, ...PROGRESS, ordered_at: TIME }),
  Order: record({
    ...IDENTITY,
    ...PROGRESS,
    revision: COUNT,
    ordered_at: TIME,
    conditions: CONDITIONS,
    ...WAITING,
    'failure?': OPEN,
    'change_failed?': OPEN,
    'run?': OPEN,
    timeline: listOf(componentRef('TimelineEntry')),
  }),
  OrderConditions: record({
    ...IDENTITY,
    revision: COUNT,
    'hub?': TEXT,
    'order_name?': TEXT,
    'namespace?': TEXT,
    conditions: CONDITIONS,
    ...WAITING,
  }),
  ...HUB_COMPONENTS,
  ...KAFKA_COMPONENTS,
  ...AUDIT_TREE_COMPONENTS,
  ...AUDIT_COMPONENTS,
  ...USAGE_COMPONENTS,
  Lane: record({
    lane: TEXT,
    breaker: { type: 'string', enum: ['closed', 'open', 'half-open'] },
    paused: FLAG,
    'in_flight?': COUNT,
    'waiting?': COUNT,
    'pause?': record({ by: TEXT, at: TEXT, reason: TEXT }),
    'consecutive_failures?': COUNT,
    'failing_orders?': { ...COUNT, description: 'Orders whose last attempt failed.' },
    'failing?': listOf(
      record({ order: TEXT, failures: COUNT, reason: TEXT, message: TEXT, set_aside: FLAG }),
    ),
    'opened_by?': record({ order: TEXT, reason: TEXT, message: TEXT }),
    'last_reason?': TEXT,
  }),
  Projection: record({
    name: TEXT,
    version: COUNT,
    'position?': TEXT,
    caughtUp: FLAG,
    lagSeconds: { type: 'number' },
    parkedStreams: listOf(record({ stream: TEXT, revision: COUNT, error: TEXT, 'position?': TEXT })),
    state: { type: 'string', enum: ['live', 'rebuilding', 'stopped', 'failed'] },
    'rebuild?': record({ events: COUNT, 'position?': TEXT, 'target?': TEXT }),
    'error?': TEXT,
  }),
  RebuildLine: { anyOf: [record({ events: COUNT }), record({ report: OPEN }), record({ error: TEXT })] },
};
