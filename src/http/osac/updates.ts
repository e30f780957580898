import { setTimeout } from 'node:timers/promises';
import type { DescMessage } from '@bufbuild/protobuf';
import type { Clock } from '../../app/ports.ts';
import { TOO_MANY_CONFLICTS } from '../../app/commands/refusals.ts';
import { rehearse } from '../../app/commands/rehearsal.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { isObject, listAt, numberAt, objectAt, sameJson, valueAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { immutableRejection } from '../../domain/metadata-rules.ts';
import { sortedTexts } from '../../domain/catalog/document.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { rejected } from '../errors.ts';
import type { Answer, Call, Handler, UpdateMessage } from './call.ts';
import { refused, withoutServerSet, type CreateServices } from './creates.ts';
import { canonicalDocument } from './messages.ts';
import { assertMayGrow, assertSecretsFit } from './object-size.ts';
import type { Principal } from './principal.ts';
import { reachOf, resolveReferences } from './references.ts';
import {
  changedSecrets,
  forgetFormer,
  newValues,
  storeSecrets,
  withoutSecrets,
  type SecretChanges,
} from './secrets.ts';
import { applyBody, applyMask } from './update-rule.ts';
import { applyDifference, objectAsRead, withoutEmptyMessages } from './whole-update.ts';
import {
  assertUnchanged,
  assertWritable,
  beginWrite,
  commandContext,
  dryAnswer,
  onceOnly,
  settledBefore,
  settling,
  writeAnswer,
  type Write,
} from './write-context.ts';

/** An update after the rules common to all kinds: what the object was and what it shall be. */
export type Change = {
  readonly id: string;
  readonly at: string;
  readonly tenant: string;
  /** Canonical private documents; `after` without secrets and with resolved references. */
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly found: ReadonlyMap<string, ResourceRow>;
  /** Changed secrets by path; null: removed. */
  readonly secrets: { readonly [path: string]: SecretRef | null };
  readonly message: UpdateMessage;
  readonly principal: Principal;
  readonly surface: 'public' | 'private';
  /** True: nothing may be stored, called or remembered on behalf of it. */
  readonly dryRun: boolean;
};

export type Revision<C> = {
  readonly command: (change: Change) => C | Promise<C>;
};

export type UpdateOptions = {
  readonly schemas: { readonly stored: DescMessage; readonly sent: DescMessage };
};

/**
 * Milliseconds for which an update is merged again because others were faster: whoever asks for no lock is the last
 * writer. Those of this instance take turns, so that only other instances and workflows can be faster.
 */
const REPEAT_MS = 5_000;
/** Longest pause between two attempts, milliseconds. */
const LONGEST_PAUSE_MS = 200;

/** Waits a moment of random length, the longer the more attempts there were; false: there is no time left. */
const another = async (repeats: number, started: number, clock: Clock): Promise<boolean> => {
  if (clock.monotonicMs() - started > REPEAT_MS) return false;
  if (repeats > 0) await setTimeout(Math.random() * Math.min(2 ** repeats, LONGEST_PAUSE_MS));
  return true;
};

export const updateHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    revision: Revision<C>,
    options: UpdateOptions,
    services: CreateServices,
  ): Handler<UpdateMessage> =>
  (call) => {
    const { present, updateMask = null, lock, whole } = call.message;
    const mask = updateMask === null ? null : [...updateMask];
    const request = { present, mask, lock, ...(whole === undefined ? {} : { whole }) };
    const write = beginWrite(call, request, services);
    const look = async (): Promise<Answer | undefined> => {
      const settled = await settledBefore(kind, call.message.id, write, call.principal, services, {
        exists: true,
      });
      return settled === undefined ? undefined : writeAnswer(kind, settled, call.surface, settled.position);
    };
    const run = (): Promise<Answer> =>
      onceOnly(look, () => update(kind, revision, options, services, call, write));
    return settling(write, () =>
      write.dryRun === true ? run() : services.commands.inTurn(kind.kind, call.message.id, run),
    );
  };

const OVERTAKEN = ['VERSION_MISMATCH', TOO_MANY_CONFLICTS.code];

const update = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  revision: Revision<C>,
  options: UpdateOptions,
  services: CreateServices,
  call: Call<UpdateMessage>,
  write: Write,
): Promise<Answer> => {
  const { message, principal, surface, metadata } = call;
  const { id } = message;
  const { schemas } = options;
  const aggregate = { category: kind.kind, decider: kind.decider, stateVersion: kind.stateVersion };
  const started = services.clock.monotonicMs();
  for (let repeats = 0; ; repeats += 1) {
    const loaded = await services.runner.load(aggregate, id);
    const live = assertWritable(kind.kind, principal, kind.view(loaded.state), id);
    const stored = { revision: Number(loaded.revision), version: loaded.version };
    assertUnchanged({ kind: kind.kind, id }, stored, {
      ifRevision: metadata.ifRevision,
      version: message.lock ? numberAt(objectAt(message.object, 'metadata'), 'version') : undefined,
    });
    const read = await objectAsRead(kind, schemas.sent, { ...live, version: loaded.version }, call, services);
    const merged = await merge(kind, options, { ...live, read }, call, services);
    if (merged === undefined) {
      return write.dryRun === true
        ? dryAnswer(kind, live, stored.version, surface)
        : writeAnswer(kind, { view: live, ...stored }, surface, loaded.position);
    }
    if (write.dryRun === true) {
      const command = await revision.command(await changeOf(kind, call, write, services, merged));
      const tried = await rehearse(services.runner, kind, id, command, { ifRevision: stored.revision });
      if (tried.outcome === 'accepted')
        return dryAnswer(kind, kind.view(tried.state), stored.version, surface);
      if (tried.rejection.code !== 'VERSION_MISMATCH') throw refused(tried.rejection);
      if (await another(repeats, started, services.clock)) continue;
      throw refused(TOO_MANY_CONFLICTS);
    }
    const owner = { tenant: live.tenant, project: live.project };
    const context = await commandContext(call, write, owner, services);
    const change = await changeOf(kind, call, write, services, merged);
    const command = await revision.command(change);
    const exact = { ...context, ifRevision: stored.revision };
    const reaches = reachOf(kind, owner, principal.visibility);
    const outcome = await services.commands.execute(kind, id, command, exact, { reaches });
    if (outcome.outcome === 'accepted') {
      const { state, version, position } = outcome.loaded;
      const shown = { view: kind.view(state), revision: Number(outcome.loaded.revision), version };
      if (!outcome.replayed) await forgetFormer(services.secrets, kind.kind, live, shown.view);
      return writeAnswer(kind, shown, surface, position);
    }
    if (!OVERTAKEN.includes(outcome.rejection.code)) throw rejected(outcome.rejection);
    // Of the version it was merged into the caller knows nothing.
    if (!(await another(repeats, started, services.clock))) throw rejected(TOO_MANY_CONFLICTS);
  }
};

/** The object as it is now, and as the caller had read it. */
type Live = Extract<ResourceView, { exists: true }> & { readonly read: JsonObject | undefined };

type Merged = {
  readonly tenant: string;
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly found: ReadonlyMap<string, ResourceRow>;
  readonly secrets: SecretChanges;
};

/**
 * Merges the caller's changes into the stored document and resolves the references that differ; undefined when
 * nothing changes. References are checked before immutability, as the original does. Throws ApiError 400.
 */
const merge = async (
  kind: Pick<ResourceKind, 'kind' | 'immutable' | 'plain' | 'references' | 'secrets'>,
  { schemas }: UpdateOptions,
  { tenant, project, document: shown, secrets: stored = {}, read }: Live,
  { message, principal, surface }: Call<UpdateMessage>,
  { resources, messageOf, secrets: store }: CreateServices,
): Promise<Merged | undefined> => {
  const before = canonicalDocument(schemas.stored, shown);
  const sent = sentBy(message, schemas.sent, surface);
  const changed =
    read === undefined
      ? changedBy(message, schemas.sent, before, sent)
      : applyDifference(schemas.sent, callersPart(read, surface), sent.body, before);
  const merged = canonicalDocument(schemas.stored, keepServerSet(before, changed, sent.present, surface));
  const differs = (path: string, after: JsonObject): boolean =>
    !sameJson(valueAt(before, path), valueAt(after, path));
  const { document: after, found } = resolveReferences(
    { references: kind.references, messageOf },
    kind.plain?.(merged) ?? merged,
    { tenant, project },
    resources,
    principal.visibility,
    before,
  );
  const words = { ...message, present: sent.present };
  const { values, removed } = changedSecrets(kind, before, after, words, Object.keys(stored));
  const secrets = { values: await newValues(store, values, stored, tenant), removed };
  const shape = (document: JsonObject): JsonValue => withoutEmptyParts(withoutSecrets(kind, document));
  const secretsStay = secrets.values.length === 0 && removed.length === 0;
  if (secretsStay && sameJson(shape(before), shape(after))) return undefined;
  const immutable = [...IMMUTABLE, ...kind.immutable].filter((path) => differs(path, after));
  if (immutable.length > 0) throw refused(immutableRejection(immutable));
  assertMayGrow(before, withoutSecrets(kind, after));
  await assertSecretsFit(kind, store, secrets, stored, tenant);
  return { tenant, before, after, found, secrets };
};

type Sent = { readonly body: JsonObject; readonly present: JsonObject };

const sentBy = (
  { object, present, whole }: UpdateMessage,
  schema: DescMessage,
  surface: 'public' | 'private',
): Sent => {
  const body = callersPart(object, surface);
  return {
    body,
    present: whole === true ? withoutEmptyMessages(schema, body) : callersPart(present, surface),
  };
};

/** The mask decides, or without one what was sent. */
const changedBy = (
  { updateMask, whole }: UpdateMessage,
  schema: DescMessage,
  before: JsonObject,
  { body, present }: Sent,
): JsonObject => {
  if (updateMask !== undefined) return applyMask(schema, before, body, present, updateMask);
  return applyBody(schema, before, whole === true ? present : body, present);
};

const IMMUTABLE = ['metadata.name', 'metadata.tenant', 'metadata.project'];

/** What a caller may write at all: the id comes from the path, and tenants never write status. */
const callersPart = (object: JsonObject, surface: 'public' | 'private'): JsonObject => {
  const { id: _id, status, ...rest } = object;
  return surface === 'public' || status === undefined ? rest : { ...rest, status };
};

const SET_BY_SERVICE = ['creation_timestamp', 'deletion_timestamp', 'creator', 'version'];
const SET_AT_CREATION = ['tenant', 'project'];

/**
 * Undoes what a body says about values that the service sets. A mask over all of `metadata` need not repeat the tenant;
 * what clears `metadata` as a whole would clear the name, too, which is immutable (OSAC).
 */
const keepServerSet = (
  before: JsonObject,
  changed: JsonObject,
  present: JsonObject,
  surface: 'public' | 'private',
): JsonObject => {
  const stored = objectAt(before, 'metadata');
  const metadata = { ...objectAt(changed, 'metadata') };
  const written = objectAt(present, 'metadata');
  const restore = (field: string): void => {
    const value = stored[field];
    if (value === undefined) delete metadata[field];
    else metadata[field] = value;
  };
  for (const field of SET_BY_SERVICE) restore(field);
  const clearsNameless = changed['metadata'] === undefined && stored['name'] === undefined;
  for (const field of SET_AT_CREATION)
    if (!clearsNameless && metadata[field] === undefined && written[field] === undefined) restore(field);
  // As they are shown: another order of the same ones is no change.
  const finalizers = listAt(metadata, 'finalizers');
  if (finalizers.length > 0) metadata['finalizers'] = sortedTexts(finalizers);
  const { status: _status, ...rest } = changed;
  const status = surface === 'public' ? before['status'] : changed['status'];
  return {
    ...rest,
    metadata,
    ...(before['id'] === undefined ? {} : { id: before['id'] }),
    ...(status === undefined ? {} : { status }),
  };
};

/** An empty message and an absent one mean the same to every reader. */
const withoutEmptyParts = (value: JsonValue): JsonValue => {
  if (!isObject(value)) return value;
  const pruned = Object.entries(value).map(([key, inner]) => [key, withoutEmptyParts(inner)] as const);
  return Object.fromEntries(pruned.filter(([, inner]) => !isObject(inner) || Object.keys(inner).length > 0));
};

/** Takes the secrets out of a merged document and stores the new ones. */
const changeOf = async (
  kind: Pick<ResourceKind, 'kind' | 'secrets'>,
  { message, principal, surface }: Call<UpdateMessage>,
  write: Write,
  services: CreateServices,
  { before, after, found, tenant, secrets }: Merged,
): Promise<Change> => {
  const owner = { kind: kind.kind, id: message.id, tenant };
  const stored = await storeSecrets(services.secrets, owner, write, secrets.values);
  return {
    id: message.id,
    at: services.clock.now(),
    tenant,
    before,
    after: withoutSecrets(kind, after),
    found,
    secrets: { ...stored, ...Object.fromEntries(secrets.removed.map((path) => [path, null])) },
    message,
    principal,
    surface,
    dryRun: write.dryRun === true,
  };
};

/** The document as catalogue events hold it: without id, server-set metadata, and status where it is derived. */
export const documentOf = (change: Change): JsonObject => withoutServerSet(change.after, 'private');
