import { LRUCache } from 'lru-cache';
import { noSuchProject } from '../../app/tenancy/project-entries.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { ApiError, invalid, unfit } from '../errors.ts';
import { tenantOfNew } from './authorization.ts';
import { BUILT_IN_TENANTS, type Principal } from './principal.ts';
import type { WriteServices } from './write-context.ts';

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
