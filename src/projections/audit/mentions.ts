import { isObject, own, sameJson } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';

/**
 * Where events name an object that their stream is not of: what was reserved or freed for it, who looked at it, which
 * export, hold or erasure was about it. Plain data, so that a type is added by a row; a type without a row is about its own
 * stream alone. Paths are dotted, `*` is every entry of a list. That one object merely refers to another is no action on
 * the other.
 */
export type Mention =
  /** Objects of one kind by their ids; `kindAt` instead of `kind`: the event says of which kind. */
  | { readonly kind: string; readonly idAt: string }
  | { readonly kindAt: string; readonly idAt: string }
  /** A stream by its name. */
  | { readonly streamAt: string }
  /** An event by its id or as `<stream>@<revision>`: what that event is about. Only where `unless` is not set. */
  | { readonly eventAt: string; readonly unless: string }
  /** What the first event of the same stream, or the one before this, is about; of it only objects with the id at `idAt`. */
  | { readonly as: 'first' | 'before'; readonly idAt?: string };

const HOLDER: Mention = { kindAt: 'holder.kind', idAt: 'holder.id' };
const HUB: Mention = { kind: 'hub', idAt: 'hub' };
const PERSON: Mention = { kind: 'user', idAt: 'subjectId' };
const GRANT: Mention = { kind: 'auditGrant', idAt: 'grantId' };
const SAME_EXPORT: readonly Mention[] = [{ as: 'first' }];

/** By event type. `test/unit/audit/mentions.test.ts` says of every type with a field like an id why it is not here. */
export const MENTIONS: { readonly [type: string]: readonly Mention[] } = {
  NameReserved: [{ kindAt: 'kind', idAt: 'holder' }, { streamAt: 'stream' }, { streamAt: 'takenFrom' }],
  NameReleased: [{ as: 'before', idAt: 'holder' }],
  AddressAssigned: [HOLDER],
  AddressRequested: [HOLDER],
  AddressObserved: [HOLDER],
  AddressShownTwice: [HOLDER, { kindAt: 'other.kind', idAt: 'other.id' }],
  AddressReleased: [HOLDER],
  ExternalIPAttached: [HOLDER],
  ExternalIPDetached: [HOLDER],
  ClusterEndpointAttached: [HOLDER],
  ClusterEndpointDetached: [HOLDER],
  BareMetalInstanceAddressAttached: [HOLDER],
  BareMetalInstanceAddressDetached: [HOLDER],
  ComputeInstanceAddressAttached: [HOLDER],
  ComputeInstanceAddressDetached: [HOLDER],
  PoolRangesClaimed: [HOLDER],
  PoolRangesReleased: [HOLDER],
  SubnetRangesClaimed: [HOLDER],
  SubnetRangesReleased: [HOLDER],
  HubCapacityDeclared: [HUB],
  HubCapacityReserved: [HOLDER],
  HubCapacityResized: [HOLDER],
  HubCapacityReleased: [HOLDER],
  HubCapacityClosed: [HUB],
  VlanAllocated: [HOLDER],
  VlanReleased: [HOLDER],
  PrefixAllocated: [HOLDER],
  PrefixReleased: [HOLDER],
  AgentsAwaited: [HOLDER],
  AgentsReserved: [HOLDER],
  AgentsBound: [HOLDER],
  AgentsReleased: [HOLDER],
  ProjectEntered: [{ streamAt: 'stream' }, { streamAt: 'left.*' }],
  AuditRead: [
    { kindAt: 'query.kind', idAt: 'query.resource_id' },
    { kindAt: 'query.kind', idAt: 'query.id' },
    { kind: 'user', idAt: 'query.subject' },
    { eventAt: 'query.id', unless: 'query.kind' },
  ],
  AuditReadNoticed: [
    { kindAt: 'kind', idAt: 'resourceId' },
    { kind: 'user', idAt: 'asked.subject' },
  ],
  OperatorActed: [{ kindAt: 'kind', idAt: 'resourceId' }],
  AuditExportRequested: [
    { kindAt: 'request.filter.kind', idAt: 'request.filter.resource_id' },
    { kind: 'user', idAt: 'request.filter.subject' },
  ],
  AuditExportCompleted: SAME_EXPORT,
  AuditExportFailed: SAME_EXPORT,
  AuditExportDownloaded: SAME_EXPORT,
  AuditExportDiscarded: SAME_EXPORT,
  LegalHoldPlaced: [{ kindAt: 'scope.kind', idAt: 'scope.id' }],
  LegalHoldReleased: [{ kindAt: 'scope.kind', idAt: 'scope.id' }],
  ErasureBegun: [PERSON],
  SubjectKeyDestroyed: [PERSON],
  AuditGrantGiven: [PERSON, { kind: 'tenant', idAt: 'tenants.*' }],
  AuditGrantWithdrawn: [{ as: 'first' }],
  AuditGrantNoticed: [PERSON, GRANT],
  AuditGrantEndNoticed: [{ as: 'first' }, GRANT],
};

/**
 * Types that name what somebody has asked for, which need not be there for who has asked: a tenant finds them only by what
 * was its own by then: who may read more than one tenant asks in its own history for things of others.
 */
export const ASKING: ReadonlySet<string> = new Set(['AuditRead', 'AuditExportRequested']);

/** Streams that belong to the object with their id beside being streams of their own. */
export const STREAMS_OF: { readonly [category: string]: string } = {
  agentPool: 'hub',
  hubCapacity: 'hub',
};

/** Kinds by another name than that of their streams. */
const KINDS: { readonly [name: string]: string } = { subject: 'user' };

/** More of one event are not found: it takes someone who wants it to write an event that names so many. */
export const MOST_MENTIONS = 100;

/** What an event names, as far as the event itself says it. */
export type Named =
  | { readonly kind: string; readonly id: string }
  | { readonly stream: string }
  | { readonly event: string }
  | { readonly as: 'first' | 'before'; readonly id?: string };

/** Read from the event as stored: what is not as the row says names nothing. */
export const namedIn = (type: string, data: JsonObject): readonly Named[] =>
  (own(MENTIONS, type) ?? []).flatMap((mention) => namedBy(mention, data)).slice(0, MOST_MENTIONS);

const namedBy = (mention: Mention, data: JsonObject): readonly Named[] => {
  if ('as' in mention) {
    const { as, idAt } = mention;
    return idAt === undefined ? [{ as }] : textsAt(data, idAt).map((id) => ({ as, id }));
  }
  if ('streamAt' in mention) return textsAt(data, mention.streamAt).map((stream) => ({ stream }));
  if ('eventAt' in mention)
    return textsAt(data, mention.unless).length > 0
      ? []
      : textsAt(data, mention.eventAt).map((event) => ({ event }));
  if ('kind' in mention) return textsAt(data, mention.idAt).map((id) => ({ kind: mention.kind, id }));
  const [kind = '', id = ''] = [mention.kindAt, mention.idAt].map((path) => textsAt(data, path)[0]);
  return kind === '' || id === '' ? [] : [{ kind: own(KINDS, kind) ?? kind, id }];
};

const textsAt = (data: JsonObject, path: string): readonly string[] =>
  valuesAt(data, path.split('.')).filter((value) => typeof value === 'string' && value !== '') as string[];

const valuesAt = (value: JsonValue, [head, ...rest]: readonly string[]): readonly JsonValue[] => {
  if (head === undefined) return [value];
  if (head === '*')
    return Array.isArray(value) ? value.flatMap((each: JsonValue) => valuesAt(each, rest)) : [];
  const inner = isObject(value) ? own(value, head) : undefined;
  return inner === undefined ? [] : valuesAt(inner, rest);
};

/**
 * Whether only the provider finds an event by what it names: what was asked of the history is the provider's to read
 * (audit/event-types.ts). Who could ask for the own tenant alone named nothing of anybody else's.
 */
export const isHidden = (type: string, tenant: string, data: JsonObject): boolean =>
  type === 'AuditRead' && (tenant === '' || !sameJson(own(data, 'tenants'), [tenant]));
