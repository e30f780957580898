import {
  type CommandContext,
  type CommandRunner,
  type RequestHash,
  IdempotencyMismatch,
  type CommandOutcome,
} from '../../app/commands/command.ts';
import type { ResourceCommands, ResourceOptions } from '../../app/commands/resource-commands.ts';
import { OutcomeUnknown } from '../../app/log/event-store.ts';
import { keyedCommandId, keyedCreationId } from '../../app/log/identifiers.ts';
import { SYSTEM_SUBJECT, type Actor } from '../../app/log/metadata.ts';
import type { Clock, Ids, SecretStore, KeyStore } from '../../app/ports.ts';
import type { PersonalMetadata } from '../../app/tenancy/subjects.ts';
import type { DocumentCommand } from '../../domain/catalog/document.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { placesOf, valueAtPlace, withValueAtPlace } from '../../domain/document-places.ts';
import { defined } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { isEncrypted, revealed, type OpenPersonal } from '../../domain/personal.ts';
import { publicDocument, type ResourceKind, type ResourceView } from '../../domain/resource.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { ResourceReader } from '../../projections/read-models.ts';
import { privateDocument } from '../../projections/resources/fold.ts';
import { sees } from '../../projections/visibility.ts';
import { ApiError, denied, objectNotFound } from '../errors.ts';
import { outcomeUnknown } from '../exchange.ts';
import { etagOf, staleEtag, type Answer, type Call } from './call.ts';
import type { Surface } from './messages.ts';
import { namelessActor, personOf, type Principal } from './principal.ts';

export type WriteServices = {
  readonly runner: CommandRunner;
  readonly commands: ResourceCommands;
  readonly resources: ResourceReader;
  readonly secrets: SecretStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly requestHash: RequestHash;
  /** Encrypts what event metadata holds of a person. */
  readonly personal: Pick<PersonalMetadata, 'personal' | 'source'>;
};

/** One write on its way: what identifies the command, before anything is decided. */
export type Write = {
  readonly commandId: string;
  readonly requestHash: string;
  /** True when the caller can repeat it by its own key. */
  readonly keyed: boolean;
  /** True when the command may have been carried out before: by key, or by a repeated command id. */
  readonly repeatable: boolean;
  /** Id that a creation gets when nobody chose one. */
  readonly creationId: string;
  /** Everything is checked, and nothing is stored anywhere (OSAC). */
  readonly dryRun?: true;
};

/**
 * Command id and creation id of a call: of a key by derivation, of a call without one from a
 * fresh UUIDv7 that is its creation id too, so that `X-Ledger-Command-Id` repeats it exactly.
 */
export const beginWrite = <M extends object>(
  call: Call<M>,
  request: JsonValue,
  { ids, requestHash }: Pick<WriteServices, 'ids' | 'requestHash'>,
): Write => {
  const { principal, metadata } = call;
  const { verb, route, idempotencyKey, commandId } = metadata;
  const tenant = principal.homeTenant ?? '';
  const subject = principal.subjectId;
  const hash = requestHash({ method: verb, route, body: { tenant, subject, request } });
  // A dry run is no command that could be repeated: what an earlier call did under this key does not answer it.
  const dryRun = metadata.dryRun === true;
  if (dryRun || idempotencyKey === undefined) {
    const repeated = dryRun ? undefined : commandId;
    const id = repeated ?? ids.uuidv7();
    const once = { commandId: id, requestHash: hash, keyed: false, creationId: id };
    return { ...once, repeatable: repeated !== undefined, ...(dryRun ? { dryRun } : {}) };
  }
  const scope = { tenant, subjectId: subject, method: verb, route };
  return {
    commandId: keyedCommandId(scope, idempotencyKey),
    requestHash: hash,
    keyed: true,
    repeatable: true,
    creationId: keyedCreationId(scope, idempotencyKey),
  };
};

export const commandContext = async (
  call: Pick<Call<object>, 'principal' | 'metadata'>,
  write: Write,
  where: { readonly tenant: string; readonly project: string },
  { personal }: Pick<WriteServices, 'personal'>,
): Promise<CommandContext> => {
  const { principal, metadata } = call;
  const { requestId, traceparent, ticket, remoteAddress, userAgent, fields } = metadata;
  const actor = await actorOf(principal, personal);
  const source = await personal.source(actor.subjectId, defined({ ip: remoteAddress, userAgent }));
  return {
    ...where,
    actor,
    commandId: write.commandId,
    requestHash: write.requestHash,
    correlationId: requestId,
    causationId: write.commandId,
    ...defined({ ticket, traceparent, source, fields }),
  };
};

const actorOf = async (principal: Principal, personal: WriteServices['personal']): Promise<Actor> => {
  const actor = namelessActor(principal);
  // The service itself is nobody.
  const person = actor.subjectId === SYSTEM_SUBJECT ? {} : personOf(principal);
  return { ...actor, ...defined({ personal: await personal.personal(actor.subjectId, person) }) };
};

type Shown = {
  readonly view: ResourceView;
  readonly revision: number;
  readonly version: number;
  readonly deletedAt?: string;
};

/** The reply of a write: the object as it is after it, rendered as reads render it. */
export const writeAnswer = (
  kind: Answered,
  { view, revision, version, deletedAt }: Shown,
  surface: Surface,
  position: string | undefined,
  add: (document: JsonObject) => JsonObject = (document) => document,
): Answer => {
  if (!view.exists) throw new ApiError('INTERNAL', 'the object vanished while it was written');
  return {
    body: replyText(kind, add(shownDocument(kind, view.document, version, surface))),
    etag: etagOf(kind.kind, revision),
    ...defined({ deletedAt, position }),
  };
};

/** The reply of a dry run: the object as it would be, without a tag, since nobody has it. */
export const dryAnswer = (
  kind: Answered,
  view: ResourceView,
  version: number,
  surface: Surface,
  change: (document: JsonObject) => JsonObject = (document) => document,
): Answer => {
  if (!view.exists) throw new ApiError('INTERNAL', 'a dry run of a write shows no object');
  return { body: replyText(kind, change(shownDocument(kind, view.document, version, surface))) };
};

type Answered = Pick<ResourceKind, 'kind' | 'privateOnly' | 'wrapsReplies'>;

const replyText = ({ wrapsReplies }: Answered, object: JsonObject): string =>
  JSON.stringify(wrapsReplies === true ? { object } : object);

export const shownDocument = (
  kind: Pick<ResourceKind, 'privateOnly'>,
  document: JsonObject,
  version: number,
  surface: Surface,
): JsonObject => {
  const shown = privateDocument(document, version);
  return surface === 'public' ? publicDocument(shown, kind.privateOnly) : shown;
};

/**
 * The state in which an earlier call of this very command left the object, if it was carried out. `exists`: the object
 * was there before the command, so that its stream is asked as well when the index does not know of it (yet): what is
 * checked before the command runner would meanwhile refuse the repeat. A creation is recognised by the runner itself.
 * What the caller may not write has no earlier calls of this caller.
 */
export const settledBefore = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  id: string,
  write: Write,
  principal: Principal,
  { resources, runner }: Pick<WriteServices, 'resources' | 'runner'>,
  { exists = false }: { readonly exists?: boolean } = {},
): Promise<(Shown & { readonly position: string | undefined }) | undefined> => {
  if (!write.repeatable) return undefined;
  // Most keyed creations are first calls, of an object whose stream is not there to be read.
  if (!exists && resources.findCommand(write.commandId) === undefined) return undefined;
  const aggregate = aggregateOf(kind);
  // Before anything is compared: a foreign id must not answer otherwise than one that never was.
  const now = kind.view((await runner.load(aggregate, id)).state);
  if (!isWritable(kind.kind, principal, now)) return undefined;
  const indexed = resources.findCommand(write.commandId);
  if (indexed !== undefined && indexed.stream !== streamName(kind.kind, id)) return undefined;
  const past = indexed ?? (exists ? await runner.find(aggregate, id, write.commandId) : undefined);
  if (past === undefined) return undefined;
  if (past.requestHash !== write.requestHash) throw new IdempotencyMismatch(write.commandId);
  const loaded = await runner.load(aggregate, id, { asOfRevision: past.revision });
  return {
    view: kind.view(loaded.state),
    revision: past.revision,
    version: loaded.version,
    position: loaded.position,
    ...defined({ deletedAt: now.exists && now.archived ? now.deletionTimestamp : undefined }),
  };
};

/**
 * Changes an object once per command. `look` finds an earlier call of the same command. A refusal by `run` counts only
 * when no such call was carried out meanwhile, perhaps by another instance: the checks before the append do not see it.
 */
export const onceOnly = async (
  look: () => Promise<Answer | undefined>,
  run: () => Promise<Answer>,
): Promise<Answer> => {
  const before = await look();
  if (before !== undefined) return before;
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    const meanwhile = await look();
    if (meanwhile !== undefined) return meanwhile;
    throw error;
  }
};

/** Adds what the caller needs to repeat a command whose outcome is not known. */
export const settling = async <T>(write: Write, run: () => Promise<T>): Promise<T> => {
  try {
    return await run();
  } catch (error) {
    if (error instanceof OutcomeUnknown)
      throw outcomeUnknown({ id: write.commandId, keyed: write.keyed }, error);
    throw error;
  }
};

/** The object is or was there, and the caller may write it. */
export const isWritable = (kind: string, principal: Principal, view: ResourceView): boolean =>
  view.exists && sees(principal.visibility, kind, view) && worksIn(principal, view.tenant);

/** Admins and the CSI driver belong to no tenant and work in all; the table of rights says on what. */
const worksIn = ({ visibility, tenants }: Principal, tenant: string): boolean =>
  'all' in visibility || tenants.includes(tenant);

/** What a caller may touch of an existing object: visible (else 404) and writable (else 403). */
export const assertWritable = (
  kind: string,
  principal: Principal,
  view: ResourceView,
  id: string,
): Extract<ResourceView, { exists: true }> => {
  if (!view.exists || view.archived) throw objectNotFound(id);
  if (!sees(principal.visibility, kind, view)) throw objectNotFound(id);
  if (!worksIn(principal, view.tenant))
    throw denied(`objects of tenant '${view.tenant}' are read-only for tenants`);
  return view;
};

/** `If-Match` and `lock=true` against what is stored (OSAC). */
export const assertUnchanged = (
  { kind, id }: { readonly kind: string; readonly id: string },
  stored: { readonly revision: number; readonly version: number },
  wanted: { readonly ifRevision?: number | undefined; readonly version?: number | undefined },
): void => {
  if (wanted.ifRevision !== undefined && wanted.ifRevision !== stored.revision)
    throw staleEtag(
      `object with identifier '${id}' has changed since it was read: read it again and repeat the change`,
      etagOf(kind, stored.revision),
    );
  if (wanted.version !== undefined && wanted.version !== stored.version)
    throw new ApiError(
      'ABORTED',
      `object with identifier '${id}' has been modified: requested version is ${wanted.version} but current version is ${stored.version}`,
    );
};

export type PersonalDocuments = Pick<KeyStore, 'encrypt'> & { readonly open: OpenPersonal };

/** Characters of a name's hash: 160 bits, so that no two names share one. */
const TOKEN_DIGITS = 40;

/**
 * What stands for a name that is personal data, in events and as what is reserved: a hash under the deployment's key,
 * which nobody can guess names from. It is a valid name itself.
 */
export const createNameToken =
  (requestHash: RequestHash) =>
  (kind: string, tenant: string, name: string): string =>
    `p${requestHash({ method: 'name', route: kind, body: [tenant, name] }).slice(0, TOKEN_DIGITS)}`;

type NameToken = ReturnType<typeof createNameToken>;

/**
 * Commands whose documents are concealed before they reach an aggregate: every personal text
 * becomes ciphertext under the key of the person it is about, and what is stored already stays the ciphertext it is, so
 * that a change of nothing writes nothing. Handlers and rehearsed commands deal in clear text only.
 */
export const concealing = (
  commands: ResourceCommands,
  services: {
    readonly people: PersonalDocuments;
    readonly runner: CommandRunner;
    readonly nameToken: NameToken;
  },
): ResourceCommands => ({
  inTurn: commands.inTurn,
  execute: async <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    id: string,
    command: C | ((abandonedBefore: number) => C),
    context: CommandContext,
    options?: ResourceOptions,
  ): Promise<CommandOutcome<S>> => {
    const { personal } = kind;
    if (personal === undefined) return commands.execute(kind, id, command, context, options);
    const make = (abandonedBefore: number): C =>
      typeof command === 'function' ? command(abandonedBefore) : command;
    // A kind with personal data has the shared decider, whose commands these are.
    const sample = make(0) as unknown as DocumentCommand;
    if (!('document' in sample)) return commands.execute(kind, id, command, context, options);
    const loaded =
      options?.likelyNew === true ? undefined : await services.runner.load(aggregateOf(kind), id);
    const document = await concealed(id, sample, personal, loaded?.state, services.people);
    const conceal = (clear: WithDocument): WithDocument =>
      clear.type === 'CreateDocument' && personal.includes('metadata.name')
        ? { ...clear, document, name: services.nameToken(kind.kind, clear.tenant, clear.name) }
        : { ...clear, document };
    return commands.execute(
      kind,
      id,
      (abandonedBefore) => conceal(make(abandonedBefore) as unknown as WithDocument) as unknown as C,
      context,
      options,
    );
  },
});

type WithDocument = Extract<DocumentCommand, { readonly document: JsonObject }>;

const concealed = async (
  id: string,
  command: WithDocument,
  paths: readonly string[],
  state: unknown,
  { encrypt, open }: PersonalDocuments,
): Promise<JsonObject> => {
  const stored = (state as { readonly document?: JsonObject } | undefined)?.document ?? {};
  const shown = revealed(stored, open);
  let document = withName(command, paths);
  for (const path of paths) {
    for (const place of placesOf(document, path)) {
      const text = valueAtPlace(document, place);
      if (typeof text !== 'string') continue;
      const before = valueAtPlace(stored, place);
      const same = isEncrypted(before) && valueAtPlace(shown, place) === text;
      const value = same ? before : { ...(await encrypt(id, text)) };
      document = withValueAtPlace(document, place, value) as JsonObject;
    }
  }
  return document;
};

/** The name of a new object lies in its document, since what stands in its place elsewhere is a hash. */
const withName = (command: WithDocument, paths: readonly string[]): JsonObject =>
  command.type === 'CreateDocument' && paths.includes('metadata.name')
    ? (withValueAtPlace(command.document, ['metadata', 'name'], command.name) as JsonObject)
    : command.document;
