import { LRUCache } from 'lru-cache';
import { IdempotencyMismatch } from '../../app/commands/command.ts';
import { rehearse } from '../../app/commands/rehearsal.ts';
import { isDerivedForm } from '../../app/log/identifiers.ts';
import { noSuchProject } from '../../app/tenancy/project-entries.ts';
import { alreadyExists } from '../../domain/catalog/document.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import { objectAt, stringAt, withoutValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { nameRejection } from '../../domain/metadata-rules.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { isPlainToSee } from '../../domain/visible-text.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { ApiError, invalid, unfit, rejected } from '../errors.ts';
import { tenantOfNew } from './authorization.ts';
import type { Answer, Call, CreateMessage, Handler } from './call.ts';
import { BUILT_IN_TENANTS, type Principal } from './principal.ts';
import { reachOf, resolveReferences } from './references.ts';
import { storeSecrets, takeSecrets, type SecretValue } from './secrets.ts';
import {
  type WriteServices,
  beginWrite,
  commandContext,
  dryAnswer,
  isWritable,
  settledBefore,
  settling,
  writeAnswer,
  type Write,
} from './write-context.ts';

/** Tenant and project of the new object. Throws ApiError 400 or 403. */
export const ownerOf = (
  kind: Pick<ResourceKind, 'kind' | 'defaultTenant' | 'words' | 'projectOf'>,
  object: JsonObject,
  name: string,
  principal: Principal,
  services: Pick<WriteServices, 'resources'>,
): { tenant: string; project: string } => {
  const asked = stringAt(objectAt(object, 'metadata'), 'tenant');
  const tenant =
    kind.defaultTenant === 'own-name'
      ? ownNameTenant(kind, name, asked)
      : assignedTenant(kind, asked, principal, services);
  return { tenant, project: projectOfNew(kind, object, name, tenant, services) };
};

const ownNameTenant = ({ words }: Pick<ResourceKind, 'words'>, name: string, asked: string): string => {
  if (BUILT_IN_TENANTS.includes(name))
    throw new ApiError('ALREADY_EXISTS', `${words} '${name}' already exists`);
  if (asked !== '' && asked !== name)
    throw invalid(
      `'metadata.tenant' of a ${words} must equal its name '${name}' or be left out`,
      'metadata.tenant',
    );
  return name;
};

const assignedTenant = (
  { defaultTenant }: Pick<ResourceKind, 'defaultTenant'>,
  asked: string,
  principal: Principal,
  { resources }: Pick<WriteServices, 'resources'>,
): string => {
  const look = (tenant: string): ResourceRow | undefined => tenantRow(resources, tenant);
  const decision = tenantOfNew(principal, asked, defaultTenant, (tenant) => look(tenant) !== undefined);
  if ('tenant' in decision) {
    const { tenant } = decision;
    if (look(tenant)?.deleting === true) throw tenantLeaving(tenant);
    return tenant;
  }
  throw decision.refused === 'denied'
    ? new ApiError('PERMISSION_DENIED', decision.message)
    : invalid(decision.message, 'metadata.tenant');
};

/** Tenants as they were read at a generation of theirs: every creation asks for one, and they rarely change. */
const remembered = new WeakMap<
  WriteServices['resources'],
  { generation: number; readonly rows: LRUCache<string, ResourceRow> }
>();
const REMEMBERED = 1_000;

const tenantRow = (resources: WriteServices['resources'], tenant: string): ResourceRow | undefined => {
  const generation = resources.generation('tenant');
  let known = remembered.get(resources);
  if (known?.generation !== generation) {
    known = { generation, rows: new LRUCache({ max: REMEMBERED }) };
    remembered.set(resources, known);
  }
  const row = known.rows.get(tenant) ?? resources.get('tenant', tenant, { all: true });
  if (row !== undefined) known.rows.set(tenant, row);
  return row;
};

/** Nothing new comes into a tenant that only waits for its last finalizer. */
const tenantLeaving = (tenant: string): ApiError =>
  unfit(`tenant '${tenant}' is being deleted: nothing can be created in it any more`, 'TENANT_DELETING');

/** The project asked for, which must exist in the tenant; of a project its parent, which its name says. */
const projectOfNew = (
  { kind, projectOf }: Pick<ResourceKind, 'kind' | 'projectOf'>,
  object: JsonObject,
  name: string,
  tenant: string,
  { resources }: Pick<WriteServices, 'resources'>,
): string => {
  const asked = stringAt(objectAt(object, 'metadata'), 'project');
  const derived = projectOf?.(name);
  if (derived !== undefined && asked !== '' && asked !== derived)
    throw invalid(
      "field 'metadata.project' must be left empty: the parent of a project follows from its name",
      'metadata.project',
    );
  const path = derived ?? asked;
  if (path === '') return path;
  const exists = resources.findByName('project', path, { tenants: [tenant] }).some((row) => !row.deleting);
  if (exists) return path;
  throw invalid(
    noSuchProject(kind, path).message,
    derived === undefined ? 'metadata.project' : 'metadata.name',
  );
};

/** Everything that is known of a new object once the rules common to all kinds have passed. */
export type NewObject = {
  readonly id: string;
  readonly at: string;
  readonly tenant: string;
  readonly project: string;
  readonly name: string;
  readonly creator: string;
  /** Canonical document with resolved references, without secrets. */
  readonly document: JsonObject;
  readonly found: ReadonlyMap<string, ResourceRow>;
  readonly principal: Principal;
  readonly surface: 'public' | 'private';
  readonly sent: JsonObject;
};

export type Creation<C> = {
  /** Resolves what else must be known, without writing. Throws ApiError. */
  readonly resolve: (object: NewObject) => Planned<C> | Promise<Planned<C>>;
  /** True when `resolve` checks name, metadata and references itself, in an order of its own. */
  readonly ownChecks?: boolean;
};

type Planned<C> = {
  /** Secrets beside those of the document, for example generated ones. */
  readonly secrets?: (write: Write) => readonly SecretValue[];
  readonly command: (secrets: { readonly [path: string]: SecretRef }, abandonedBefore: number) => C;
  /** Shown once, in the answer that created the object, and never on a replay. */
  readonly revealOnce?: (document: JsonObject, write: Write) => JsonObject;
};

export type CreateServices = WriteServices & { readonly messageOf: (kind: string) => string };

/** Schema rules that come before authentication (OSAC): a name, where one was written, must be one. */
export const checkNewName = (
  kind: Pick<ResourceKind, 'deriveName' | 'nameRule'>,
  object: JsonObject,
): void => {
  if (object['metadata'] === undefined) return;
  const name = stringAt(objectAt(object, 'metadata'), 'name');
  if (name === '' && kind.deriveName !== undefined) return;
  const wrong = (kind.nameRule ?? nameRejection)(name);
  if (wrong !== undefined) throw refused(wrong);
};

/** A rejection found here rather than by the command runner has not been recorded yet. */
export const refused = (rejection: Parameters<typeof rejected>[0]): ApiError => {
  const error = rejected(rejection);
  return new ApiError(error.error, error.message, { ...error.options, recorded: false });
};

export const createHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    creation: Creation<C>,
    services: CreateServices,
  ): Handler<CreateMessage> =>
  (call) => {
    const write = beginWrite(call, call.message.object, services);
    return settling(write, () => create(kind, creation, services, call, write));
  };

const create = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  creation: Creation<C>,
  services: CreateServices,
  call: Call<CreateMessage>,
  write: Write,
): Promise<Answer> => {
  const { principal, surface } = call;
  const { object } = call.message;
  const name = stringAt(objectAt(object, 'metadata'), 'name') || kind.deriveName?.(object) || '';
  if (creation.ownChecks !== true) checkNamed(kind, object, name);
  const id = idOf(kind, object, name, write, principal);
  const before = await settledBefore(kind, id, write, principal, services);
  if (before !== undefined) return writeAnswer(kind, before, surface, before.position);

  const owner = ownerOf(kind, object, name, principal, services);
  const resolved = resolveReferences(
    { references: creation.ownChecks === true ? [] : kind.references, messageOf: services.messageOf },
    object,
    owner,
    services.resources,
    principal.visibility,
  );
  const taken = takeSecrets(kind, withoutServerSet(resolved.document, surface));
  const created: NewObject = {
    id,
    at: services.clock.now(),
    ...owner,
    name,
    creator: principal.subjectId,
    document: taken.document,
    found: resolved.found,
    principal,
    surface,
    sent: object,
  };
  const planned = await creation.resolve(created);
  const values = [...taken.values, ...(planned.secrets?.(write) ?? [])];
  const at = { kind: kind.kind, id, tenant: owner.tenant };
  const secrets = await storeSecrets(services.secrets, at, write, values);
  if (write.dryRun === true) return rehearsed(kind, id, planned.command, secrets, services, call);
  const context = await commandContext(call, write, owner, services);
  const outcome = await services.commands
    .execute(kind, id, (abandonedBefore) => planned.command(secrets, abandonedBefore), context, {
      likelyNew: id === generatedId(kind, write),
      reaches: reachOf(kind, owner, principal.visibility),
    })
    .catch(async (error: unknown) => {
      // A command of somebody else made it: the id is taken, and whose command it was is not told.
      const taken = error instanceof IdempotencyMismatch;
      if (!taken || isWritable(kind.kind, principal, await viewOf(kind, id, services))) throw error;
      throw refused(alreadyExists(kind.words, id, kind.ids));
    });
  if (outcome.outcome === 'rejected') throw rejected(outcome.rejection);
  const { state, revision, version, position } = outcome.loaded;
  const view = kind.view(state);
  const shown = { view, revision: Number(revision), version };
  const { revealOnce } = planned;
  if (revealOnce === undefined || outcome.replayed) return writeAnswer(kind, shown, surface, position);
  return writeAnswer(kind, shown, surface, position, (document) => revealOnce(document, write));
};

const viewOf = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  id: string,
  { runner }: CreateServices,
): Promise<ResourceView> => kind.view((await runner.load(aggregateOf(kind), id)).state);

/** What the object would be: no id unless one was sent, and none of what only storing gives (OSAC). */
const rehearsed = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  id: string,
  command: Planned<C>['command'],
  secrets: { readonly [path: string]: SecretRef },
  { runner }: CreateServices,
  { surface, message }: Call<CreateMessage>,
): Promise<Answer> => {
  const outcome = await rehearse(runner, kind, id, (abandonedBefore) => command(secrets, abandonedBefore));
  if (outcome.outcome === 'rejected') throw refused(outcome.rejection);
  const sentId = stringAt(message.object, 'id') !== '' && kind.ids !== 'generated';
  return dryAnswer(kind, kind.view(outcome.state), 0, surface, (document) => {
    const stored = withoutValueAt(document, 'metadata.creation_timestamp');
    return sentId ? stored : withoutValueAt(stored, 'id');
  });
};

/** A name was sent or could be derived, and is one (OSAC). Throws ApiError 400. */
const checkNamed = (
  kind: Pick<ResourceKind, 'deriveName' | 'nameRule'>,
  object: JsonObject,
  name: string,
): void => {
  if (object['metadata'] === undefined && kind.deriveName === undefined)
    throw invalid('metadata is required: give metadata.name', 'metadata');
  const wrong = (kind.nameRule ?? nameRejection)(name);
  if (wrong !== undefined) throw refused(wrong);
};

const MAX_ID_CHARACTERS = 200;

const generatedId = ({ idFrom }: Pick<ResourceKind, 'idFrom'>, { creationId }: Write): string =>
  idFrom?.(creationId) ?? creationId;

/** Who chooses the id: see `ResourceKind.ids`. Throws ApiError 400. */
const idOf = (
  kind: Pick<ResourceKind, 'ids' | 'idFrom' | 'idRule' | 'words' | 'defaultTenant'>,
  object: JsonObject,
  name: string,
  write: Write,
  { admin }: Pick<Principal, 'admin'>,
): string => {
  const wanted = stringAt(object, 'id');
  if (kind.ids === 'generated') return write.creationId;
  if (kind.ids === 'equals-name') {
    // Of other kinds than tenants a sent id is ignored (OSAC).
    if (kind.defaultTenant === 'own-name' && wanted !== '' && wanted !== name)
      throw invalid(`the id of a ${kind.words} must equal its name '${name}' or be left out`, 'id');
    return name;
  }
  if (wanted === '') return generatedId(kind, write);
  // Before anything is looked up: the answer must not depend on what is there.
  const reserved = kind.idRule?.(wanted);
  if (reserved !== undefined) throw refused(reserved);
  // Anybody can compute what another tenant's keyed creation gets: nobody may take it beforehand.
  if (!admin && isDerivedForm(wanted))
    throw invalid(
      "field 'id' must not be a UUID of version 5, as the service derives ids itself: choose another form, or leave it out",
      'id',
    );
  if (wanted.length > MAX_ID_CHARACTERS)
    throw invalid(`field 'id' must be at most ${MAX_ID_CHARACTERS} characters`, 'id');
  // Such an id could not be addressed in a URL path, or would mean another path there, or would look like another one.
  if (
    /[/\\]/.test(wanted) ||
    !isPlainToSee(wanted) ||
    wanted === '.' ||
    wanted === '..' ||
    wanted !== wanted.trim()
  )
    throw invalid(
      "field 'id' must not hold slashes or characters that cannot be seen, begin or end with a space, or be '.' or '..'",
      'id',
    );
  return wanted;
};

const SERVER_SET = [
  'creation_timestamp',
  'deletion_timestamp',
  'creator',
  'version',
  'tenant',
  'project',
  'name',
];

/** Drops what the service sets itself; what tenants send as status is never stored (OSAC). */
export const withoutServerSet = (document: JsonObject, surface: 'public' | 'private'): JsonObject => {
  const { id: _id, metadata: sent, status, ...rest } = document;
  const metadata = { ...(sent as JsonObject | undefined) };
  for (const field of SERVER_SET) delete metadata[field];
  return {
    ...rest,
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(surface === 'public' || status === undefined ? {} : { status }),
  };
};
