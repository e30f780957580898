import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, own, stringAt } from '../../../src/domain/json-tools.ts';

/**
 * Which fields of metadata v1 an event of each path has, and why it has not the others. Every event belongs to
 * exactly one row: a path that is added is added here.
 */
export type Row = {
  readonly name: string;
  readonly is: (event: RecordedEvent) => boolean;
  /** There, and not empty. */
  readonly there: readonly Optional[];
  readonly absent: { readonly [field in Optional]?: string };
  /** There exactly where this holds. */
  readonly where?: { readonly [field in Optional]?: (event: RecordedEvent, log: Log) => boolean };
};

/** What is there or not by path; everything else every event has. */
export const OPTIONAL = [
  'actor.roles',
  'actor.tokenIdHash',
  'actor.onBehalfOf',
  'actor.vouchedBy',
  'actor.personal',
  'requestHash',
  'ticket',
  'traceparent',
  'hub',
  'source',
  'inputs',
] as const;
export type Optional = (typeof OPTIONAL)[number];

/** What the whole log tells. */
export type Log = {
  /** Of each run the revision from which on it has a hub. */
  readonly hubFrom: ReadonlyMap<string, number>;
  /** Subjects that only ever act on behalf of others. */
  readonly delegates: ReadonlySet<string>;
};

const actorOf = ({ metadata }: RecordedEvent): JsonObject => objectAt(metadata, 'actor');
const via = (event: RecordedEvent): string => stringAt(actorOf(event), 'via');
const method = (event: RecordedEvent): string => stringAt(actorOf(event), 'authMethod');
const internal = (event: RecordedEvent, ...names: readonly string[]): boolean =>
  method(event) === 'internal' && names.includes(via(event));
const isBookkeeping = ({ stream }: RecordedEvent): boolean => stream.startsWith('sys-');

const NOBODY = 'no person calls';
const NO_TOKEN = 'there is no token';
const NO_CALL = 'there is no call from outside';
const NO_RIGHTS = 'no rights are asked for';
const NO_RUN = 'only runs take inputs';
const NO_HUB = 'tenants read it, and learn of no hub; or it is about none';
const OWN_WORD = "whoever acts is of the token's own issuer, in this story";
const NO_PARTY = 'no token says who acts';
const OWN = 'nobody asked for it: the service does it whenever it is due';
const REPEATED = 'there is no request that could come again with another body';
const SHARED = 'for whichever object of the tenant comes first, and all after it';
const ONCE = 'whichever call, start or instance comes first does it, and the same for all';

const SERVICE = {
  'actor.roles': NO_RIGHTS,
  'actor.tokenIdHash': NO_TOKEN,
  'actor.vouchedBy': NO_PARTY,
  'actor.personal': NOBODY,
  source: NO_CALL,
} as const;

/** Of every kind that acts; their runs bear the workflow's name. */
const WORKFLOWS = actingKinds.map(({ workflow }) => workflow.name);
const isRun = (stream: string): boolean => WORKFLOWS.some((name) => stream.startsWith(`${name}-`));

export const ROWS: readonly Row[] = [
  {
    name: 'a caller',
    is: (event) =>
      via(event) === 'http' &&
      ['jwt', 'service-account'].includes(method(event)) &&
      !['AuditReadNoticed', 'RefusalsSuppressed'].includes(event.type),
    there: [
      'actor.roles',
      'actor.tokenIdHash',
      'actor.personal',
      'requestHash',
      'ticket',
      'traceparent',
      'source',
    ],
    where: {
      'actor.onBehalfOf': (event, { delegates }) => delegates.has(stringAt(actorOf(event), 'subjectId')),
      // What is about a hub is the provider's to read.
      hub: ({ stream }) => /^(agentPool|hubCapacity)-/.test(stream),
    },
    absent: { 'actor.vouchedBy': OWN_WORD, inputs: NO_RUN },
  },
  {
    name: 'a look, as other tenants are told of it',
    is: ({ type }) => type === 'AuditReadNoticed',
    there: ['actor.roles', 'traceparent'],
    absent: {
      'actor.tokenIdHash': "in the reader's own history",
      'actor.personal': "in the reader's own history",
      'actor.onBehalfOf': 'in this story nobody looks on behalf of others',
      'actor.vouchedBy': NO_PARTY,
      requestHash: "in the reader's own history: equal questions would show as such",
      ticket: "in the reader's own history",
      source: "in the reader's own history",
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'a count of refusals that are not recorded one by one',
    is: ({ type }) => type === 'RefusalsSuppressed',
    there: ['actor.roles'],
    absent: {
      'actor.tokenIdHash': 'of several calls',
      'actor.onBehalfOf': 'in this story alice herself calls so often',
      'actor.vouchedBy': NO_PARTY,
      'actor.personal': 'of several calls; the first of them are recorded with it',
      requestHash: 'of several calls',
      ticket: 'of several calls',
      traceparent: 'of several calls',
      source: 'of several calls',
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'somebody unknown',
    is: (event) => method(event) === 'anonymous',
    there: ['requestHash', 'traceparent'],
    absent: {
      'actor.roles': 'nobody knows who it is',
      'actor.tokenIdHash': 'no token, or one that is none',
      'actor.onBehalfOf': 'nobody knows who it is',
      'actor.vouchedBy': NO_PARTY,
      'actor.personal': "nobody's key could conceal it",
      ticket: 'anybody could write anything there, in clear',
      source: "nobody's key could conceal it",
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'the catalogue, at the start',
    is: (event) => via(event) === 'catalog',
    there: ['actor.roles', 'requestHash'],
    absent: {
      'actor.tokenIdHash': NO_TOKEN,
      'actor.onBehalfOf': 'a file, whoever wrote it',
      'actor.vouchedBy': NO_PARTY,
      'actor.personal': NOBODY,
      ticket: NO_CALL,
      traceparent: NO_CALL,
      source: NO_CALL,
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'the workflow of an order',
    is: (event) => WORKFLOWS.some((name) => internal(event, `workflow:${name}`)),
    there: ['actor.onBehalfOf', 'requestHash', 'ticket', 'traceparent'],
    where: {
      inputs: ({ stream }) => isRun(stream),
      // A run tells it as soon as it has one; the cluster's own events, which tenants read, never.
      hub: ({ stream, revision }, { hubFrom }) =>
        /^(agentPool|hubCapacity|tenantSpace)-/.test(stream) || revision >= (hubFrom.get(stream) ?? Infinity),
    },
    absent: SERVICE,
  },
  {
    name: 'the workflow of what a tenant needs on a hub',
    is: (event) => internal(event, 'workflow:tenantSpaceOrder'),
    there: ['requestHash'],
    where: {
      inputs: ({ stream }) => stream.startsWith('tenantSpaceOrder-'),
      // Its own stream is about one hub anyway.
      hub: ({ stream }) => stream.startsWith('tenantSpaceOrder-'),
    },
    absent: { ...SERVICE, 'actor.onBehalfOf': SHARED, ticket: SHARED, traceparent: SHARED },
  },
  {
    name: 'what follows hubs',
    is: (event) =>
      internal(
        event,
        'workflow:hub-registry',
        'workflow:hub-health',
        'workflow:hub-decommission',
        'workflow:agent-keeper',
        'workflow:agent-repair',
        'workflow:capacity-repair',
        'workflow:address-repair',
        'workflow:taking-repair',
      ),
    there: ['requestHash', 'hub'],
    absent: { ...SERVICE, 'actor.onBehalfOf': OWN, ticket: OWN, traceparent: OWN, inputs: NO_RUN },
  },
  {
    name: 'a User for who logs in',
    is: (event) => internal(event, 'user-provisioning'),
    there: ['actor.onBehalfOf'],
    absent: {
      ...SERVICE,
      requestHash: REPEATED,
      ticket: ONCE,
      traceparent: ONCE,
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'the end of an export',
    is: (event) => internal(event, 'audit-export') && event.type !== 'AuditExportDiscarded',
    there: ['actor.onBehalfOf'],
    absent: {
      ...SERVICE,
      requestHash: REPEATED,
      ticket: 'on the event that asked for it',
      traceparent: 'long over: on the event that asked for it',
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'the removal of the file of an export',
    is: (event) => internal(event, 'audit-export') && event.type === 'AuditExportDiscarded',
    there: [],
    absent: {
      ...SERVICE,
      'actor.onBehalfOf': 'its time is over, or somebody in it was erased: not for who asked for the export',
      requestHash: REPEATED,
      ticket: OWN,
      traceparent: OWN,
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'what the service puts in order',
    is: (event) => internal(event, 'tenancy', 'references', 'repair', 'audit-grant'),
    there: [],
    // The end of an erasure is one command, whoever begins it and whoever ends it.
    where: { requestHash: ({ type }) => type === 'SubjectKeyDestroyed' },
    absent: {
      ...SERVICE,
      'actor.onBehalfOf': ONCE,
      ticket: ONCE,
      traceparent: ONCE,
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
  {
    name: 'bookkeeping',
    is: (event) => internal(event, 'bookkeeping') && isBookkeeping(event),
    there: [],
    absent: {
      ...SERVICE,
      'actor.onBehalfOf': OWN,
      requestHash: REPEATED,
      ticket: OWN,
      traceparent: OWN,
      hub: NO_HUB,
      inputs: NO_RUN,
    },
  },
];

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const valueOf = ({ metadata }: RecordedEvent, field: Optional): unknown =>
  field.startsWith('actor.')
    ? own(objectAt(metadata, 'actor'), field.slice('actor.'.length))
    : own(metadata, field);

const isThere = (value: unknown): boolean =>
  value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);

/** What is wrong with an event by its row; nothing: []. */
export const problemsOf = (event: RecordedEvent, row: Row, log: Log): readonly string[] => {
  const found: string[] = [];
  for (const field of OPTIONAL) {
    const rule = row.where?.[field];
    const wanted = rule === undefined ? row.there.includes(field) : rule(event, log);
    const stated = [row.there.includes(field), row.absent[field] !== undefined, rule !== undefined];
    if (stated.filter(Boolean).length !== 1) found.push(`${row.name} does not say one thing of ${field}`);
    if (isThere(valueOf(event, field)) !== wanted) found.push(`${field} is ${wanted ? 'missing' : 'there'}`);
  }
  return found;
};

/** Fields that every event has, whatever its path. */
export const commonProblemsOf = (event: RecordedEvent): readonly string[] => {
  const { metadata } = event;
  const actor = objectAt(metadata, 'actor');
  const text = (name: string): string => stringAt(metadata, name);
  const checks: readonly (readonly [what: string, fine: boolean])[] = [
    ['tenant', typeof metadata['tenant'] === 'string'],
    ['project', typeof metadata['project'] === 'string'],
    ['actor.subjectId', stringAt(actor, 'subjectId') !== '' || stringAt(actor, 'authMethod') === 'anonymous'],
    ['actor.roles', Array.isArray(actor['roles'])],
    ['actor.authMethod', stringAt(actor, 'authMethod') !== ''],
    ['actor.via', stringAt(actor, 'via') !== ''],
    ['command', text('command') !== ''],
    ['commandId', UUID.test(text('commandId'))],
    ['correlationId', text('correlationId') !== ''],
    ['causationId', text('causationId') !== ''],
    ['occurredAt', ISO.test(text('occurredAt'))],
    ['schemaVersion', Number.isInteger(metadata['schemaVersion']) && Number(metadata['schemaVersion']) >= 1],
    ['instance', text('instance') !== ''],
    ['requestHash', typeof metadata['requestHash'] === 'string'],
  ];
  return checks.flatMap(([what, fine]) => (fine ? [] : [`${what} is not filled`]));
};

export const logOf = (events: readonly RecordedEvent[]): Log => ({
  hubFrom: new Map(
    events
      .filter(({ stream, metadata }) => isRun(stream) && Object.hasOwn(metadata, 'hub'))
      .toReversed()
      .map(({ stream, revision }) => [stream, revision]),
  ),
  delegates: new Set(
    events
      .filter((event) => method(event) !== 'internal' && own(actorOf(event), 'onBehalfOf') !== undefined)
      .map((event) => stringAt(actorOf(event), 'subjectId')),
  ),
});
