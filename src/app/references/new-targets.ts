import { reject, type Rejection } from '../../domain/decider.ts';
import { hub, kindOf, project, tenant } from '../../domain/kinds.ts';
import { BUILT_IN_TENANTS } from '../../domain/tenancy/tenant.resource.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { Pointer } from './announcements.ts';
import { holds } from './reference-targets.ts';

/** What a command is told that wants to refer to what is gone. */
export const refusalOf = (gone: Pointer | undefined): Rejection | undefined =>
  gone === undefined ? undefined : goneRejection(gone);

/** Kinds that are kept in ways of their own; a tenant is no target of itself. */
const KEPT_OTHERWISE: readonly string[] = [hub.kind, project.kind];

/** Tenants that nobody can delete. */
const ALWAYS_THERE: readonly string[] = BUILT_IN_TENANTS;

/** What the object refers to after the events and did not before; of a new one its tenant too. */
export const newTargets = (
  kind: Pick<ResourceKind, 'kind' | 'pointsAt'>,
  before: ResourceView,
  after: ResourceView,
): readonly Pointer[] => {
  if (!after.exists || after.archived) return [];
  const had = before.exists && !before.archived ? kind.pointsAt(before.document) : undefined;
  const has = without(kind.pointsAt(after.document), had ?? []).filter(
    (pointer) => !KEPT_OTHERWISE.includes(pointer.kind),
  );
  const comesIntoTenant = had === undefined && kind.kind !== tenant.kind;
  return comesIntoTenant && !ALWAYS_THERE.includes(after.tenant)
    ? [...has, { kind: tenant.kind, id: after.tenant }]
    : has;
};

/** Those that are not among the others. */
export const without = (pointers: readonly Pointer[], others: readonly Pointer[]): readonly Pointer[] =>
  pointers.filter((pointer) => !holds(others, pointer));

/** Ids of people are not repeated. */
const goneRejection = ({ kind: name, id }: Pointer): Rejection => {
  if (name === tenant.kind)
    return reject(
      'failed-precondition',
      'TENANT_DELETING',
      `tenant '${id}' is being deleted: nothing can be created in it any more`,
    );
  const kind = kindOf(name);
  const shown = kind?.personal === undefined ? ` "${id}"` : '';
  return reject(
    'invalid',
    'REFERENCE_NOT_FOUND',
    `reference validation failed: ${kind?.message ?? name}${shown} has just been deleted: refer to another one`,
  );
};
