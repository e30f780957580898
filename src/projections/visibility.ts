import { kindOf } from '../domain/kinds.ts';
import type { FilterNode, FilterValue } from './filter/ast.ts';

/**
 * What a caller may see: everything, or objects of some tenants. `within` limits a tenant that it names to objects in
 * those projects; a tenant that it does not name is seen whole.
 */
export type Visibility =
  | { readonly all: true }
  | {
      readonly tenants: readonly string[];
      readonly within?: { readonly [tenant: string]: readonly string[] };
    };

/** What decides who sees an object; rows and views are such things. `project`: the one it lies in, by its dotted name. */
export type Placed = { readonly tenant: string; readonly project: string; readonly name: string };

/** The project that an object belongs to: a project belongs to itself. */
export const projectOfObject = (kind: string, { project, name }: Pick<Placed, 'project' | 'name'>): string =>
  kind === 'project' ? name : project;

/** Whether objects of a tenant may be seen at all. */
export const seesTenant = (visibility: Visibility, tenant: string): boolean =>
  'all' in visibility || visibility.tenants.includes(tenant);

/** Whether one object may be seen. Pure. */
export const sees = (visibility: Visibility, kind: string, placed: Placed): boolean => {
  if ('all' in visibility) return true;
  if (!visibility.tenants.includes(placed.tenant)) return false;
  const projects = projectsSeen(visibility, kind, placed.tenant);
  return projects === undefined || projects.includes(projectOfObject(kind, placed));
};

/** The same for lists: a condition on the rows of these tenants; undefined: all of them are seen. Pure. */
export const limitOf = (
  visibility: Visibility,
  kind: string,
  tenants: readonly string[] | undefined,
): FilterNode | undefined => {
  if ('all' in visibility || tenants === undefined) return undefined;
  const limits = tenants.map((tenant) => ({ tenant, projects: projectsSeen(visibility, kind, tenant) }));
  if (limits.every(({ projects }) => projects === undefined)) return undefined;
  const path = kind === 'project' ? 'name' : 'project';
  const conditions = limits.map(({ tenant, projects }): FilterNode => {
    const ofTenant = isOneOf('tenant', [tenant]);
    if (projects === undefined) return ofTenant;
    const inProjects = isOneOf(path, projects);
    return limits.length === 1 ? inProjects : { op: 'and', left: ofTenant, right: inProjects };
  });
  return conditions.reduce((left, right) => ({ op: 'or', left, right }));
};

/** Names of the projects of a tenant in which a kind is seen; the empty one: outside any. Undefined: everywhere. */
const projectsSeen = (
  { within }: Exclude<Visibility, { readonly all: true }>,
  kind: string,
  tenant: string,
): readonly string[] | undefined => {
  if (within === undefined || !Object.hasOwn(within, tenant)) return undefined;
  const projects = within[tenant] ?? [];
  return kindOf(kind)?.outsideProjectsForAll === true ? [...projects, ''] : projects;
};

const isOneOf = (field: 'tenant' | 'project' | 'name', list: readonly string[]): FilterNode => {
  const value: FilterValue = { kind: 'field', field: { path: ['metadata', field], type: 'string' } };
  return { op: 'in', value, list };
};
