import { parseStreamName } from '../../../domain/stream-name.ts';
import { isObject, listAt, numberAt, objectAt, own, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { LeafRecord } from '../merkle/leaf.ts';
import type { LineEvent } from './format.ts';

/**
 * Events as OCSF API Activity (class 6003), for tools that read OCSF. Derived from the native export, which alone can
 * be verified. Attributes without a home in that class are in `unmapped`.
 */
export const OCSF_VERSION = '1.6.0';

const APPLICATION_ACTIVITY = 6;
const API_ACTIVITY = 6003;

const ACTIVITY = { create: 1, read: 2, update: 3, delete: 4, other: 99 } as const;
type Activity = keyof typeof ACTIVITY;

/** `severity_id`: what went well is for information; what was refused for lack of rights is low. */
const INFORMATIONAL = { id: 1, name: 'Informational' };
const LOW = { id: 2, name: 'Low' };

const SUCCESS = { id: 1, name: 'Success' };
const FAILURE = { id: 2, name: 'Failure' };

export type OcsfSource = {
  readonly leaf: LeafRecord;
  readonly event: LineEvent;
  /** Clear texts by JSON Pointer (`revealedTexts`); what is erased is left out of the record. */
  readonly revealed?: { readonly [path: string]: string };
  /** What the event is about, where that is not the document of its stream. */
  readonly kind?: string;
  readonly resourceId?: string;
  /** Version of this product. */
  readonly productVersion: string;
};

/** One record of the class. Pure: the same event gives the same record. */
export const ocsfOf = (source: OcsfSource): JsonObject => {
  const { leaf, event } = source;
  const { data, metadata } = event;
  const refused = leaf.type === 'RequestRefused';
  const activity = activityOf(leaf, metadata, data);
  const command = (refused ? stringAt(data, 'command') : stringAt(metadata, 'command')) || leaf.type;
  const severity = refused && stringAt(data, 'outcome') !== 'rejected' ? LOW : INFORMATIONAL;
  const status = refused ? FAILURE : SUCCESS;
  return {
    activity_id: ACTIVITY[activity],
    activity_name: activity === 'other' ? leaf.type : activity.charAt(0).toUpperCase() + activity.slice(1),
    category_uid: APPLICATION_ACTIVITY,
    category_name: 'Application Activity',
    class_uid: API_ACTIVITY,
    class_name: 'API Activity',
    type_uid: API_ACTIVITY * 100 + ACTIVITY[activity],
    time: milliseconds(leaf.occurredAt || event.recordedAt),
    severity_id: severity.id,
    severity: severity.name,
    status_id: status.id,
    status: status.name,
    ...(refused ? { status_code: stringAt(data, 'code') } : {}),
    ...statusDetail(refused, source),
    message: refused ? `${command} was refused: ${stringAt(data, 'outcome')}` : leaf.type,
    actor: actorOf(source),
    api: apiOf(command, source),
    src_endpoint: srcEndpoint(source),
    dst_endpoint: { svc_name: PRODUCT, ...some('instance_uid', stringAt(metadata, 'instance')) },
    ...httpRequest(source),
    resources: resourcesOf(source),
    metadata: metadataOf(source),
    unmapped: unmappedOf(source),
  };
};

const PRODUCT = 'fulfillment-ledger';

/** A field, unless it is empty. */
const some = (key: string, value: string): JsonObject => (value === '' ? {} : { [key]: value });

const milliseconds = (iso: string): number => {
  const time = Date.parse(iso);
  return Number.isNaN(time) ? 0 : time;
};

/** Calls that were refused say what they wanted to do in their name; events in the last word of theirs. */
const activityOf = ({ type, revision }: LeafRecord, metadata: JsonObject, data: JsonObject): Activity => {
  if (type === 'RequestRefused')
    return VERBS.find(([verb]) => verb.test(stringAt(data, 'command')))?.[1] ?? 'other';
  if (READS.has(type)) return 'read';
  if (type === 'OperatorActed') return 'other';
  // What the service does on its own is no call of its API.
  if (stringAt(objectAt(metadata, 'actor'), 'authMethod') === 'internal') return 'other';
  if (DELETES.test(type)) return 'delete';
  return revision === 0 || IN_SHARED_STREAMS.has(type) ? 'create' : 'update';
};

const DELETES =
  /(Deleted|DeletionRequested|Withdrawn|WithdrawalRequested|Retired|RetirementRequested|Removed|Destroyed|Released|Discarded|ErasureBegun)$/;

/** What begins something that has no stream of its own. */
const IN_SHARED_STREAMS: ReadonlySet<string> = new Set(['LegalHoldPlaced']);

const READS: ReadonlySet<string> = new Set([
  'AuditRead',
  'AuditReadNoticed',
  'AuditExportDownloaded',
  'ClusterCredentialsRevealed',
]);

/**
 * OSAC's methods (`osac.public.v1.Hubs/List`), our commands (`OrderCluster`) and calls of our own surfaces
 * (`DELETE /audit.v1/holds/{id}`).
 */
const VERBS: readonly (readonly [RegExp, Activity])[] = [
  [/ \/.*\/(retry|pause|resume|rebuild)$/, 'update'],
  [/ \/.*\/cancel$/, 'delete'],
  [/^(GET|HEAD) /, 'read'],
  [/^POST /, 'create'],
  [/^(PUT|PATCH) /, 'update'],
  [/^DELETE /, 'delete'],
  [/\/(List|Get|Watch)\w*$|^(Read|Show|List|Get|Reveal)/, 'read'],
  [/\/Create\w*$|^(Order|Create|Define|Offer|Publish|Register|Request|Place|Give|Claim)/, 'create'],
  [
    /\/Delete\w*$|^(Delete|Remove|Withdraw|Retire|Release|Cancel|Destroy|Erase|BeginErasure|Discard)/,
    'delete',
  ],
  [/\/Update\w*$|^(Update|Revise|Resize|Change|Set|Describe|Label|Annotate|Retry|Extend)/, 'update'],
];

const statusDetail = (refused: boolean, { event: { data }, revealed }: OcsfSource): JsonObject =>
  refused ? some('status_detail', own(revealed, '/data/message') ?? stringAt(data, 'told')) : {};

const actorOf = ({ event, revealed }: OcsfSource): JsonObject => {
  const actor = objectAt(event.metadata, 'actor');
  const subject = stringAt(actor, 'subjectId') || stringAt(event.data, 'subjectId');
  const internal = stringAt(actor, 'authMethod') === 'internal';
  const person = parsed(own(revealed, '/metadata/actor/personal'));
  const app = internal ? { app_name: PRODUCT, ...some('app_uid', stringAt(actor, 'via')) } : {};
  if (internal && (subject === '' || subject === 'system')) return app;
  const roles = listAt(actor, 'roles');
  return {
    ...app,
    user: {
      uid: subject === '' ? 'unknown' : subject,
      ...some('name', stringAt(person, 'userName')),
      ...some('email_addr', stringAt(person, 'email')),
      type_id: internal ? 3 : subject === '' ? 0 : roles.includes('admin') ? 2 : 1,
      ...(roles.length === 0
        ? {}
        : { groups: roles.flatMap((name) => (typeof name === 'string' ? [{ name }] : [])) }),
    },
    ...session(actor),
  };
};

/** The token of the call, by the hash that the event keeps of its id. */
const session = (actor: JsonObject): JsonObject => {
  const token = stringAt(actor, 'tokenIdHash');
  return token === '' ? {} : { session: { uid: token } };
};

const apiOf = (command: string, { leaf, event }: OcsfSource): JsonObject => {
  const id = stringAt(event.metadata, 'commandId') || stringAt(event.data, 'commandId');
  const code = leaf.type === 'RequestRefused' ? stringAt(event.data, 'code') : '';
  return {
    operation: command,
    service: { name: PRODUCT },
    ...(id === '' ? {} : { request: { uid: id } }),
    ...(code === '' ? {} : { response: { error: code } }),
  };
};

const srcEndpoint = ({ event, revealed }: OcsfSource): JsonObject => {
  const ip = stringAt(parsed(own(revealed, '/metadata/source')), 'ip');
  const via = stringAt(objectAt(event.metadata, 'actor'), 'via');
  return { ...some('ip', ip), svc_name: via === '' ? 'unknown' : via };
};

const httpRequest = ({ revealed }: OcsfSource): JsonObject => {
  const agent = stringAt(parsed(own(revealed, '/metadata/source')), 'userAgent');
  return agent === '' ? {} : { http_request: { user_agent: agent } };
};

/** Personal fields hold JSON; what cannot be read any more is not there. */
const parsed = (text: string | undefined): JsonObject => {
  if (text === undefined) return {};
  try {
    const value = JSON.parse(text) as JsonObject;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};

const resourcesOf = ({ leaf, event, kind, resourceId }: OcsfSource): JsonObject[] => {
  const stream = parseStreamName(leaf.stream);
  const refused = leaf.type === 'RequestRefused';
  const [type, uid] = refused
    ? [stringAt(event.data, 'kind'), stringAt(event.data, 'resourceId')]
    : [kind ?? stream.category, resourceId ?? stream.id];
  if (type === '') return [];
  return [
    {
      ...some('uid', uid),
      type,
      ...some('namespace', stringAt(event.metadata, 'project')),
      ...(refused ? {} : { data: event.data }),
    },
  ];
};

const metadataOf = ({ leaf, event, productVersion }: OcsfSource): JsonObject => ({
  version: OCSF_VERSION,
  product: { name: PRODUCT, vendor_name: PRODUCT, version: productVersion },
  uid: leaf.id,
  event_code: leaf.type,
  log_name: leaf.stream,
  log_provider: PRODUCT,
  log_version: String(numberAt(event.metadata, 'schemaVersion')),
  sequence: leaf.revision,
  logged_time: milliseconds(event.recordedAt),
  ...some('original_time', leaf.occurredAt),
  ...some('correlation_uid', stringAt(event.metadata, 'correlationId')),
  ...some('tenant_uid', stringAt(event.metadata, 'tenant')),
});

const unmappedOf = ({ leaf, event: { metadata, position, data } }: OcsfSource): JsonObject => ({
  stream: leaf.stream,
  revision: leaf.revision,
  position,
  data_sha256: leaf.data,
  metadata_sha256: leaf.metadata,
  ...(leaf.hidden === undefined ? {} : { hidden_sha256: leaf.hidden }),
  ...some('causation_id', stringAt(metadata, 'causationId')),
  ...some('on_behalf_of', stringAt(objectAt(metadata, 'actor'), 'onBehalfOf')),
  ...some('vouched_by', stringAt(objectAt(metadata, 'actor'), 'vouchedBy')),
  ...some('ticket', stringAt(metadata, 'ticket')),
  ...some('traceparent', stringAt(metadata, 'traceparent')),
  ...some('hub', stringAt(metadata, 'hub')),
  ...(leaf.type === 'RequestRefused' ? { refusal: data } : {}),
});
