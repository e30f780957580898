import { placeOfPointer, pointerOf, type Place } from '../../domain/document-places.ts';
import type { EventType } from '../../domain/event-type.ts';
import { isObject, own, objectAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Encrypted } from '../../domain/personal.ts';

/**
 * What of an event only the provider may see (`EventType.providerOnly`, and on which hub it happened). Its metadata says
 * so from the moment it is stored: no later change of the registry moves a field between what the audit tree proves to
 * tenants and what it keeps from them. Without the salt, whoever knows the rest could find what is hidden by guessing.
 */
type HiddenFields = {
  /** JSON Pointers (RFC 6901) into `{data, metadata}`, ascending; none lies within another. */
  readonly paths: readonly string[];
  /** 128 random bits, 32 lower-case hex digits. */
  readonly salt: string;
};

/** An event in two parts: what tenants may see of it, and the rest. */
type SplitEvent = {
  readonly data: JsonObject;
  /** Also without `hidden` itself. */
  readonly metadata: JsonObject;
  /** `paths` and `salt` as they are stored, and `values`: what stood at the paths, in their order. */
  readonly hidden: JsonObject;
};

/** Name of the field in metadata. */
const HIDDEN = 'hidden';
const SALT = /^[0-9a-f]{32}$/;

/** What of an event's data, and of its hub, is hidden: JSON Pointers as `HiddenFields.paths` has them, none when nothing is. */
export type FindHidden = (data: JsonObject, hub: string | undefined) => readonly string[];

/** Made once for a type: an order is stored while somebody waits for it. */
export const findHidden = ({ audience, providerOnly = [] }: EventType): FindHidden => {
  if (audience !== 'tenant') return () => NOTHING;
  const declared = providerOnly.map((path) => path.split('.'));
  const isSimple = !declared.some((place, n) =>
    declared.some((other, m) => n !== m && mayHold(other, place)),
  );
  return (data, hub) => {
    const found: string[] = [];
    for (const place of declared) collect(data, place, 0, '/data', found);
    const paths = found.length < 2 ? found : isSimple ? found.sort() : outermost(found.sort());
    if (hub !== undefined) paths.push('/metadata/hub');
    return paths;
  };
};
const NOTHING: readonly string[] = [];

/** Pointers to what a declared path names; `*` is every key. */
const collect = (node: JsonValue, place: Place, depth: number, at: string, found: string[]): void => {
  const key = place[depth];
  if (key === undefined) {
    found.push(at);
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  const keys = key === '*' ? Object.keys(node) : Object.hasOwn(node, key) ? [key] : [];
  for (const each of keys)
    collect((node as JsonObject)[each] ?? null, place, depth + 1, `${at}${pointerOf([each])}`, found);
};

/** Whether what a declared path names may hold, or be, what another one names. */
const mayHold = (outer: Place, inner: Place): boolean =>
  outer.length <= inner.length &&
  outer.every((key, n) => key === '*' || inner[n] === '*' || key === inner[n]);

/** Each once, without those that lie within another. */
const outermost = (ascending: readonly string[]): string[] => {
  const kept = new Set<string>();
  for (const path of ascending) if (!ancestorsOf(path).some((outer) => kept.has(outer))) kept.add(path);
  return [...kept];
};

const ancestorsOf = (path: string): string[] =>
  Array.from(path.matchAll(/\//g), ({ index }) => path.slice(0, index));

/** The metadata as tenants may see it, whatever else is left out of it. */
export const withoutHiddenFields = (metadata: JsonObject): JsonObject => {
  if (!Object.hasOwn(metadata, HIDDEN)) return metadata;
  const { [HIDDEN]: _hidden, ...others } = metadata;
  return others;
};

/**
 * Undefined for an event that says nothing of hidden fields, or says it in another form than `hiddenFieldsOf` does: such
 * an event is one whole, whatever its metadata looks like. There is one split of an event, and one event of a split.
 */
export const splitOf = (event: {
  readonly data: JsonObject;
  readonly metadata: JsonObject;
}): SplitEvent | undefined => {
  const stated = statedIn(event.metadata);
  if (stated === undefined) return undefined;
  const whole: JsonObject = { data: event.data, metadata: withoutHiddenFields(event.metadata) };
  const values: JsonValue[] = [];
  const cuts: Cuts = new Map();
  let last = '';
  for (const path of stated.paths) {
    const place = placeOfPointer(path);
    const value = place === undefined || place.length < 2 ? undefined : valueIn(whole, place);
    if (place === undefined || value === undefined || path <= last || !addCut(cuts, place)) return undefined;
    values.push(value);
    last = path;
  }
  const { data, metadata } = withoutCuts(whole, cuts) as { data: JsonObject; metadata: JsonObject };
  return { data, metadata, hidden: { ...stated, values } };
};

const statedIn = (metadata: JsonObject): { paths: string[]; salt: string } | undefined => {
  const stated = own(metadata, HIDDEN);
  if (!isObject(stated) || Object.keys(stated).length !== 2) return undefined;
  const [paths, salt] = [own(stated, 'paths'), own(stated, 'salt')];
  if (!Array.isArray(paths) || paths.length === 0 || typeof salt !== 'string' || !SALT.test(salt))
    return undefined;
  return paths.every((path) => typeof path === 'string') ? { paths: [...paths], salt } : undefined;
};

const INDEX = /^(0|[1-9][0-9]*)$/;

/** An element of a list is named by its index in its one spelling; `length` is none. */
const valueIn = (whole: JsonObject, place: readonly string[]): JsonValue | undefined => {
  let node: JsonValue | undefined = whole;
  for (const key of place) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined;
    if (Array.isArray(node) && !INDEX.test(key)) return undefined;
    node = (node as JsonObject)[key];
  }
  return node;
};

/** What is cut out, as a tree of keys: where a branch ends, the value is. */
type Cuts = Map<string, Cuts>;

/** False when the place lies within one that is cut out already. */
const addCut = (cuts: Cuts, place: readonly string[]): boolean => {
  let node = cuts;
  let isNew = true;
  for (const key of place) {
    if (!isNew && node.size === 0) return false;
    const next: Cuts = node.get(key) ?? new Map();
    isNew = !node.has(key);
    node.set(key, next);
    node = next;
  }
  return true;
};

/** Copied along the cuts, shared beside them. In lists null stands for what was cut out: the others keep their index. */
const withoutCuts = (node: JsonValue, cuts: Cuts): JsonValue => {
  const copy = (Array.isArray(node) ? [...(node as JsonValue[])] : { ...(node as JsonObject) }) as {
    [key: string]: JsonValue;
  };
  for (const [key, inner] of cuts) {
    if (inner.size > 0) copy[key] = withoutCuts(copy[key] ?? null, inner);
    else if (Array.isArray(node)) copy[key] = null;
    else delete copy[key];
  }
  return copy;
};

/**
 * Metadata v1, complete from the first event. Absent optional fields are left out, never `undefined`.
 */
export type { Encrypted };

/** What a token says about a person; absent parts are left out. */
export type PersonalData = {
  readonly userName?: string;
  readonly email?: string;
  /** Of whom another issuer vouches for: whose subject it is said to be. That may name a person as well. */
  readonly issuer?: string;
};
/** Where a request came from. */
export type RequestSource = { readonly ip?: string; readonly userAgent?: string };

export type Actor = {
  /** UUIDv5(tenant, issuer, sub); the User's id and `metadata.creator`. For our own work: `system`. */
  readonly subjectId: string;
  readonly roles: readonly string[];
  /** `anonymous`: nobody knows who called; only what is refused has such an actor. */
  readonly authMethod: 'jwt' | 'service-account' | 'internal' | 'anonymous';
  readonly tokenIdHash?: string;
  /**
   * The subject for whom it was done, where that is another: of a call the token's subject whose rights were used
   * (RFC 8693,
   * claim `act`), of what the service does by itself who asked for it.
   */
  readonly onBehalfOf?: string;
  /**
   * Issuer of the token, where that says who acts and names somebody of another issuer: it is the word of this one
   * alone, and
   * `subjectId` is nobody's whom the other one knows.
   */
  readonly vouchedBy?: string;
  /** Where the command came in: `http`, `workflow:<name>`, `cli`, `repair`. */
  readonly via?: string;
  /** User name, e-mail and issuer that was named, encrypted under the subject's key. */
  readonly personal?: Encrypted;
};

export type EventMetadata = {
  /** On whose behalf. */
  readonly tenant: string;
  readonly project: string;
  readonly actor: Actor;
  /** Name of the command, for example `OrderCluster`. */
  readonly command: string;
  readonly commandId: string;
  /** HMAC-SHA-256 over the canonical request, hex; equal for equal requests. */
  readonly requestHash: string;
  readonly correlationId: string;
  readonly causationId: string;
  readonly ticket?: string;
  readonly occurredAt: string;
  readonly schemaVersion: number;
  readonly traceparent?: string;
  /** Name of the process incarnation that wrote it. */
  readonly instance: string;
  readonly hub?: string;
  readonly source?: Encrypted;
  /**
   * Run events only: up to which revision the run's subject was folded when this was appended. It is the place of
   * the event among those of the subject.
   */
  readonly inputs?: { readonly [stream: string]: number };
  /** Only where tenants may see a part of the event: never shown to them, the salt is in it. */
  readonly hidden?: HiddenFields;
};

/** Metadata of one command: everything but what belongs to each event alone. */
export type CommandMetadata = Omit<EventMetadata, 'schemaVersion' | 'hidden'>;

/**
 * Everything about a command but the command itself. `commandId`: UUIDv5(scope, Idempotency-Key) or a fresh UUIDv7;
 * workflows
 * derive it from run and key. The same one with another `requestHash` is refused.
 */
export type CommandContext = Omit<CommandMetadata, 'command' | 'occurredAt' | 'instance' | 'inputs'> & {
  /** Names of the fields that the request set, for the record of a refusal: no values, and no keys that the caller chose. */
  readonly fields?: () => readonly string[];
  /** Refuses with `conflict` when the document's version or the stream's revision differs (If-Match, lock=true). */
  readonly ifRevision?: number;
  readonly ifVersion?: number;
  readonly signal?: AbortSignal;
};

/** `occurredAt` is the wall clock at the decision (ISO), `instance` names this process incarnation. */
export const commandMetadata = (
  {
    fields: _fields,
    ifRevision: _ifRevision,
    ifVersion: _ifVersion,
    signal: _signal,
    ...said
  }: CommandContext,
  command: string,
  occurredAt: string,
  instance: string,
): CommandMetadata => ({ ...said, command, occurredAt, instance });

/** Subject of the service itself. */
export const SYSTEM_SUBJECT = 'system';

/**
 * The actor of everything that the service does on its own. `via`: `repair`, `workflow:<name>` … `onBehalfOf`: who
 * asked for
 * it, where that is known.
 */
const systemActor = (via: string, onBehalfOf?: string): Actor => ({
  subjectId: SYSTEM_SUBJECT,
  roles: [],
  authMethod: 'internal',
  ...(onBehalfOf !== undefined && { onBehalfOf }),
  via,
});

/** The actor of everything that a workflow does, `hub-registry` and the like included. */
export const workflowActor = (workflow: string, onBehalfOf?: string): Actor =>
  systemActor(`workflow:${workflow}`, onBehalfOf);

/** Whose doing it is in the end: for whom the actor acts, else the actor. */
export const principalIn = ({ subjectId, onBehalfOf }: Actor): string => onBehalfOf ?? subjectId;

/** Context of a command by which the service itself looks after a hub, or what is on it, on somebody's behalf. */
export const hubContext = (
  commandId: string,
  by: string,
  hub: string,
  { tenant, project }: Pick<CommandContext, 'tenant' | 'project'>,
): CommandContext => ({
  tenant,
  project,
  actor: workflowActor(by),
  commandId,
  requestHash: commandId,
  correlationId: commandId,
  causationId: commandId,
  hub,
});

/** Context of a command that the service gives itself. `causationId`: the event or command that led to it. */
export const systemContext = (
  commandId: string,
  via: string,
  cause: {
    readonly tenant?: string;
    readonly project?: string;
    readonly causationId?: string;
    readonly onBehalfOf?: string;
  } = {},
): CommandContext => ({
  tenant: cause.tenant ?? '',
  project: cause.project ?? '',
  actor: systemActor(via, cause.onBehalfOf),
  commandId,
  // There is no request: a repeated command id is the same command.
  requestHash: '',
  correlationId: cause.causationId ?? commandId,
  causationId: cause.causationId ?? commandId,
});

/** Metadata of the service's own bookkeeping in `sys-` streams. */
export const systemMetadata = (
  commandId: string,
  command: string,
  occurredAt: string,
  instance: string,
): CommandMetadata => commandMetadata(systemContext(commandId, 'bookkeeping'), command, occurredAt, instance);

/**
 * Metadata as stores keep it: without what the rest of the event says already. The adapters of the event store complete
 * what they read, so that nobody else meets this form: hashes, proofs and exports are of the complete one. The rules are
 * part of the storage format.
 *
 * | left out | when it is |
 * |---|---|
 * | `schemaVersion` | 1 |
 * | `project` | empty |
 * | `requestHash`, `correlationId`, `causationId` | the command's id |
 * | `subjectId`, `roles` and `authMethod` of `actor` | those of the service itself |
 * | `occurredAt` | the data's `at`, or `occurredAfterMs` milliseconds later |
 */
const FORM = 'brief';

/** What these events have in common comes first, and what many appends have in common before that: stores keep it once. */
export type BriefText = (data: JsonObject, schemaVersion: number, hidden: HiddenFields | undefined) => string;

/** The metadata of one command is serialised once; each event only adds what is its own. */
export const briefTextOf = (metadata: CommandMetadata): BriefText => {
  const { commandId, correlationId, requestHash, causationId, project } = metadata;
  const open = JSON.stringify({
    form: FORM,
    tenant: metadata.tenant,
    project: project === '' ? undefined : project,
    actor: briefActor(metadata.actor),
    source: metadata.source,
    instance: metadata.instance,
    correlationId: correlationId === commandId ? undefined : correlationId,
    ticket: metadata.ticket,
    traceparent: metadata.traceparent,
    requestHash: requestHash === commandId ? undefined : requestHash,
    command: metadata.command,
    commandId,
    causationId: causationId === commandId ? undefined : causationId,
    hub: metadata.hub,
    inputs: metadata.inputs,
    occurredAt: undefined,
  } satisfies { [Name in keyof Required<CommandMetadata>]: unknown } & { form: string }).slice(0, -1);
  return (data, schemaVersion, hidden) => {
    const version = schemaVersion === 1 ? '' : `,"schemaVersion":${schemaVersion}`;
    const cut = hidden === undefined ? '' : `,"hidden":${JSON.stringify(hidden)}`;
    return `${open}${timeText(metadata.occurredAt, data['at'])}${version}${cut}}`;
  };
};

const briefActor = (actor: Actor): object => {
  const { subjectId, roles, authMethod } = actor;
  const isSystem = subjectId === SYSTEM_SUBJECT && roles.length === 0 && authMethod === 'internal';
  return isSystem ? { ...actor, subjectId: undefined, roles: undefined, authMethod: undefined } : actor;
};

/** What an adapter parsed, with everything that was left out. Metadata in another form is as it is. */
export const completeMetadata = (stored: JsonObject, data: JsonObject): JsonObject => {
  if (stored['form'] !== FORM) return stored;
  const commandId = stored['commandId'] ?? '';
  const complete: { [name: string]: JsonValue } = {
    tenant: '',
    project: '',
    actor: {},
    command: '',
    commandId,
    requestHash: commandId,
    correlationId: commandId,
    causationId: commandId,
    occurredAt: '',
    instance: '',
    schemaVersion: 1,
  };
  for (const name in stored)
    if (name !== 'form' && name !== 'occurredAfterMs') complete[name] = stored[name] ?? null;
  const actor = objectAt(complete, 'actor');
  if (actor['subjectId'] === undefined)
    complete['actor'] = { subjectId: SYSTEM_SUBJECT, roles: [], authMethod: 'internal', ...actor };
  if (stored['occurredAt'] === undefined)
    complete['occurredAt'] = later(data['at'], stored['occurredAfterMs'] ?? 0) ?? '';
  return complete;
};

const timeText = (occurredAt: string, at: unknown): string => {
  if (at === occurredAt) return '';
  const ms = typeof at === 'string' ? Date.parse(occurredAt) - Date.parse(at) : Number.NaN;
  return ms !== 0 && later(at, ms) === occurredAt
    ? `,"occurredAfterMs":${ms}`
    : `,"occurredAt":${JSON.stringify(occurredAt)}`;
};

const later = (at: unknown, ms: unknown): string | undefined => {
  if (typeof at !== 'string' || typeof ms !== 'number') return undefined;
  if (ms === 0) return at;
  const time = new Date(Date.parse(at) + ms);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
};
