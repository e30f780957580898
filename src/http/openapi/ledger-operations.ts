import { actingKinds } from '../../domain/acting-kinds.ts';
import type { JsonObject } from '../../domain/json.ts';
import { own } from '../../domain/json-tools.ts';
import type { ErrorName } from '../errors.ts';
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
import { headerRefs, jsonContent, type ParameterName } from './parameters.ts';
import { ANY_BODY, ANY_CALL, ANY_WRITE, OF_ONE_OBJECT } from './refusals.ts';
import { USAGE_COMPONENTS, USAGE_DESCRIPTIONS } from './usage-operations.ts';

const ORDER_ID = { id: 'Id of the order, which is the id of its object.' };
const KIND = query(
  'kind',
  { type: 'string', enum: ['', ...actingKinds.map(({ kind }) => kind)] },
  'Only orders of this kind. Needed where objects of several kinds have the same id.',
);
const LANE = { lane: '`scheduler`, `hub:<id>`, `automation:eda:<id>` or `automation:aap:<id>`.' };
const PROJECTION = { name: 'Name of the read model, for example `resources`.' };
const ACT: readonly ParameterName[] = [
  'Idempotency_Key',
  'X_Ledger_Command_Id',
  'If_Match',
  'X_Ledger_Ticket',
];
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
    pathNames: ORDER_ID,
    ownParameters: [KIND],
    answer: 'Order',
    errors: OF_ONE_OBJECT,
  },
  'POST orders/{id}/retry': {
    summary: 'Tries a failed order again',
    pathNames: ORDER_ID,
    ownParameters: [KIND],
    parameters: ACT,
    body: NO_BODY,
    answer: record({ id: TEXT, revision: COUNT, 'resumed?': FLAG }),
    headers: ['X_Ledger_Position'],
    errors: [...OF_ONE_OBJECT, ...ANY_WRITE, 'STALE_ETAG'],
  },
  'POST orders/{id}/cancel': {
    summary: 'Cancels an order that no hub has been asked for yet',
    pathNames: ORDER_ID,
    ownParameters: [KIND],
    parameters: ACT,
    body: NO_BODY,
    answer: record({ id: TEXT, revision: COUNT, 'resumed?': FLAG }),
    headers: ['X_Ledger_Position'],
    errors: [...OF_ONE_OBJECT, ...ANY_WRITE, 'STALE_ETAG'],
  },
  ...Object.fromEntries(
    actingKinds.map(({ collection, words }) => [
      `GET ${collection}/{id}`,
      {
        summary: `What was observed of one ${words}, beyond the states of the OSAC surfaces`,
        pathNames: ORDER_ID,
        answer: 'OrderConditions',
        errors: OF_ONE_OBJECT,
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
    pathNames: LANE,
    body: record({
      'reason?': { ...TEXT, maxLength: 200, description: 'Why; shown to everybody who lists lanes.' },
    }),
    answer: 'Lane',
    errors: ['FAILED_PRECONDITION', 'NOT_FOUND'],
  },
  'POST lanes/{lane}/resume': {
    summary: 'Ends a pause',
    pathNames: LANE,
    body: NO_BODY,
    answer: 'Lane',
    errors: ['FAILED_PRECONDITION', 'NOT_FOUND'],
  },
  'GET projections': {
    summary: 'Read models of this instance',
    answer: record({ items: listOf(componentRef('Projection')) }),
  },
  'GET projections/{name}': {
    summary: 'One read model',
    pathNames: PROJECTION,
    answer: 'Projection',
    errors: OF_ONE_OBJECT,
  },
  'GET projections/{name}/digest': {
    summary: 'SHA-256 over all rows of a read model, at a stated position',
    pathNames: PROJECTION,
    answer: record({ 'position?': TEXT, digest: { type: 'string', pattern: '^[0-9a-f]{64}$' }, rows: COUNT }),
    errors: OF_ONE_OBJECT,
  },
  'POST projections/{name}/rebuild': {
    summary: 'Builds a read model again beside the live one, compares and switches',
    description:
      'Progress lines, then the report; a line `{"error":…}` when it failed. Closing the connection stops it.',
    pathNames: PROJECTION,
    body: {
      type: 'object',
      properties: { force: { type: 'boolean', description: 'Switch even when rows differ.' } },
    },
    lines: 'RebuildLine',
    errors: OF_ONE_OBJECT,
  },
  'POST projections/{name}/parked/{stream}/retry': {
    summary: 'Applies again what a parked stream missed',
    pathNames: { ...PROJECTION, stream: 'Name of the parked stream.' },
    body: NO_BODY,
    answer: record({ stream: TEXT, applied: FLAG }),
    errors: OF_ONE_OBJECT,
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

/** Surfaces of our own, by their short names. */
const SURFACES: { readonly [name: string]: { readonly [route: string]: Description | undefined } } = {
  ledger: DESCRIPTIONS,
  audit: AUDIT_DESCRIPTIONS,
};

/** True when a route has a description: what a test asks of every route. */
export const isDescribed = (
  { verb, path }: Pick<LedgerRoute, 'verb' | 'path'>,
  surface: 'ledger' | 'audit' = 'ledger',
): boolean => own(SURFACES[surface], `${verb} ${path}`) !== undefined;

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
    ...shapeOf(own(SURFACES[surface], `${verb} ${path}`), verb, path),
  }));

/** `GET orders/{id}` → `GetOrdersId`. */
const nameOf = (verb: string, path: string): string =>
  [verb.toLowerCase(), ...path.split('/')]
    .map((part) => part.replaceAll(/\W/g, ''))
    .map((part) => part.charAt(0).toUpperCase() + part.slice(1))
    .join('');

const shapeOf = (found: Description | undefined, verb: string, path: string) => {
  const {
    summary = path,
    description,
    pathNames = namesIn(path),
    body,
    answer = {},
    lines,
    headers = [],
    errors = [],
  } = found ?? {};
  const typed = (types: { readonly [type: string]: JsonObject }): JsonObject =>
    Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema }]));
  const content =
    found?.content !== undefined
      ? typed(found.content)
      : lines === undefined
        ? jsonContent(answer)
        : typed({ 'application/x-ndjson': componentRef(lines) });
  const others = typed(found?.alternatives ?? {});
  return {
    summary,
    ...(description === undefined ? {} : { description }),
    ...(found?.parameters === undefined ? {} : { parameters: found.parameters }),
    ...(found?.ownParameters === undefined ? {} : { ownParameters: found.ownParameters }),
    pathNames,
    ...(body === undefined ? {} : { body: { schema: body, required: Array.isArray(body['required']) } }),
    answers: {
      [found?.status ?? 200]: {
        description:
          found?.status === 202 ? 'Accepted.' : lines === undefined ? 'Done.' : 'One JSON value per line.',
        headers: headerRefs(...headers),
        content: { ...content, ...others },
      },
      ...(found?.partial === true
        ? {
            206: { description: 'The part that was asked for.', headers: headerRefs(...headers), content },
            304: { description: 'You have it already.', headers: headerRefs(...headers) },
          }
        : {}),
    },
    errors: [
      ...ANY_CALL,
      ...errors,
      ...(verb === 'POST' ? ANY_BODY : []),
      ...(verb === 'GET' ? [] : [NO_DRY_RUN]),
    ],
  };
};

const namesIn = (path: string): { readonly [name: string]: string } =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, `The ${name}.`]));

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
        position: TEXT,
        stream: TEXT,
        revision: COUNT,
        id: TEXT,
        type: TEXT,
        tenant: TEXT,
        recordedAt: TIME,
        command: TEXT,
        commandId: TEXT,
        correlationId: TEXT,
        actor: TEXT,
        data: OPEN,
        'internal?': FLAG,
      }),
      record({
        position: TEXT,
        stream: TEXT,
        revision: COUNT,
        id: TEXT,
        type: TEXT,
        recordedAt: TIME,
        unreadable: TEXT,
      }),
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
