import type { JsonObject } from '../../domain/json.ts';
import { kindOf, kinds } from '../../domain/kinds.ts';
import { placesOf, valueAtPlace, withValueAtPlace } from '../../domain/document-places.ts';
import { referenceOf, referenceText, refersTo, type Reference } from '../../domain/references.ts';
import { regularNames, type ResourceKind } from '../../domain/resource.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../projections/read-models.ts';
import { ApiError } from '../errors.ts';
import { SHARED_TENANT } from './principal.ts';

/** What a declaration says about its references, and how the kinds they name are called. */
export type ReferenceRules = {
  readonly references: ResourceKind['references'];
  /** Message name of a kind: `clusterTemplate` → `ClusterTemplate`. */
  readonly messageOf: (kind: string) => string;
};

/** Where the object that holds the references lies: its names are looked for from there. */
export type Home = { readonly tenant: string; readonly project: string };

export type ResolvedReferences = {
  readonly document: JsonObject;
  /** Referenced objects by place, for example `spec.template` or `spec.node_sets.workers.host_type`. */
  readonly found: ReadonlyMap<string, ResourceRow>;
};

/**
 * Resolves every reference of a document (OSAC): by id, by name, or both, among what the
 * caller may see. All problems are reported at once, each with its field. With `before`, the document as it is stored,
 * only what differs from it is looked up: what it refers to already stays, whatever has become of it. What is about to
 * go cannot be referred to anew. Throws ApiError 400.
 */
export const resolveReferences = (
  rules: ReferenceRules,
  document: JsonObject,
  home: Home,
  resources: ResourceReader,
  visibility: Visibility,
  before?: JsonObject,
): ResolvedReferences => {
  let resolved = document;
  const found = new Map<string, ResourceRow>();
  const violations: { field: string; description: string }[] = [];
  for (const { path, kind, scope } of rules.references) {
    for (const place of placesOf(document, path)) {
      const reference = referenceOf(valueAtPlace(document, place)) ?? {};
      if (kindOf(kind) === undefined) {
        const description = `${regularNames(kind).words}s are not served by this release: leave this field out`;
        violations.push({ field: `object.${place.join('.')}`, description });
        continue;
      }
      const stored = valueAtPlace(before, place);
      if (stored !== undefined && isSame(reference, referenceOf(stored))) {
        resolved = withValueAtPlace(resolved, place, stored) as JsonObject;
        continue;
      }
      const result = standing(
        find({ kind, local: scope === 'local' }, reference, home, resources, visibility),
      );
      const at = place.join('.');
      if ('problem' in result) {
        const description = problemText(rules.messageOf(kind), reference, result.problem);
        violations.push({ field: `object.${at}`, description });
        continue;
      }
      found.set(at, result.row);
      const { id, name } = result.row;
      resolved = withValueAtPlace(resolved, place, { id, name }) as JsonObject;
    }
  }
  if (violations.length > 0) throw referencesInvalid(violations);
  return { document: resolved, found };
};

const standing = (found: FoundReference): FoundReference =>
  'row' in found && found.row.deleting ? { problem: 'deleting' } : found;

/** A selector may mean another object of the same name, so it is looked up. */
const isSame = ({ id, name, project, shared }: Reference, stored: Reference | undefined): boolean =>
  project === undefined &&
  shared === undefined &&
  stored !== undefined &&
  refersTo(
    { ...(id === undefined ? {} : { id }), ...(name === undefined ? {} : { name }) },
    { id: stored.id ?? '', name: stored.name ?? '' },
  );

type Problem = 'empty' | 'not-found' | 'ambiguous' | 'deleting';

export type FoundReference = { readonly row: ResourceRow } | { readonly problem: Problem };

/** The text of a field violation. It says the same of objects that do not exist and of those of others. */
export const problemText = (message: string, reference: Reference, problem: Problem): string => {
  const named = `${message}${shownText(message, reference)}`;
  switch (problem) {
    case 'empty':
      return `${message} reference must specify id or name`;
    case 'not-found':
      return `${named} not found`;
    case 'deleting':
      return `${named} is being deleted: refer to another one`;
    case 'ambiguous':
      return `${named} is ambiguous: several objects have this name; give the id of one of them`;
  }
};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A text that is answered is recorded and logged too: what may be a person's name is not repeated. */
const shownText = (message: string, reference: Reference): string => {
  const text = referenceText(reference);
  const personal = kinds.some((kind) => kind.message === message && kind.personal !== undefined);
  return personal && !UUID.test(text) ? '' : ` "${text}"`;
};

export const referencesInvalid = (
  violations: readonly { readonly field: string; readonly description: string }[],
): ApiError => {
  const texts = violations.map(({ field, description }) => `${field}: ${description}`);
  return new ApiError('INVALID_ARGUMENT', `reference validation failed: ${texts.join('; ')}`, { violations });
};

/**
 * The object that a reference means: by id, and by name where the id finds nothing, since the command line sends names
 * as ids (OSAC). Objects of others and absent ones take the same statements.
 */
export const find = (
  wanted: { readonly kind: string; readonly local: boolean },
  reference: Reference,
  home: Home,
  resources: ResourceReader,
  visibility: Visibility,
): FoundReference => {
  const { id, name } = reference;
  if (id === undefined) {
    return name === undefined
      ? { problem: 'empty' }
      : byName(wanted, name, reference, home, resources, visibility);
  }
  const row = resources.get(wanted.kind, id, reachable(visibility, home));
  const found =
    row !== undefined && isShown(row, visibility) && fits(row, wanted.local, reference, home)
      ? { row }
      : byName(wanted, id, reference, home, resources, visibility);
  if ('problem' in found || name === undefined || refersTo({ name }, found.row)) return found;
  return { problem: 'not-found' };
};

/** Whether a tenant's objects may use another object of this one's owner, whoever asks. */
export const isOpenTo = (tenant: string, { tenant: owner }: Pick<ResourceRow, 'tenant'>): boolean =>
  owner === tenant || owner === SHARED_TENANT;

/** Objects of a tenant refer to that tenant's and to shared ones; only admins connect tenants, and only by id. */
const reachable = (visibility: Visibility, home: Home): Visibility =>
  'all' in visibility ? visibility : near(visibility, home);

const near = (visibility: Visibility, { tenant }: Home): Visibility => {
  const both = [...new Set([tenant, SHARED_TENANT])];
  if ('all' in visibility) return { tenants: both };
  return { ...visibility, tenants: both.filter((one) => visibility.tenants.includes(one)) };
};

/**
 * Whether references of an object at home reach a tenant's objects of a kind: asked once more when the reference is
 * stored, since the id may have passed on to another tenant's object.
 */
export const reachOf =
  ({ references }: Pick<ResourceKind, 'references'>, home: Home, visibility: Visibility) =>
  (kind: string, tenant: string): boolean => {
    if (!references.some((reference) => reference.kind === kind)) return true;
    // Also of local references: an order takes over a secret of its template, which may be shared.
    const reached = reachable(visibility, home);
    return 'all' in reached || reached.tenants.includes(tenant);
  };

/** False for what nobody but the provider knows of yet. */
const isShown = ({ kind, publicJson }: ResourceRow, visibility: Visibility): boolean => {
  const published = 'all' in visibility ? undefined : kindOf(kind)?.published;
  return published === undefined || published(JSON.parse(publicJson) as JsonObject);
};

/** True when the object lies where the reference looks. */
const fits = (row: ResourceRow, local: boolean, { project, shared }: Reference, home: Home): boolean => {
  if (local) return row.tenant === home.tenant;
  if (shared === true) return row.tenant === SHARED_TENANT && (project ?? row.project) === row.project;
  return project === undefined || (row.tenant === home.tenant && row.project === project);
};

/** Own project, then own tenant, then `shared`; the first of them that has the name must have it once. */
const byName = (
  { kind, local }: { readonly kind: string; readonly local: boolean },
  name: string,
  reference: Reference,
  home: Home,
  resources: ResourceReader,
  visibility: Visibility,
): FoundReference => {
  const rows = resources
    .findByName(kind, name, near(visibility, home))
    .filter((row) => isShown(row, visibility) && fits(row, local, reference, home));
  const scopes: readonly ((row: ResourceRow) => boolean)[] = [
    (row) => row.tenant === home.tenant && row.project === home.project,
    (row) => row.tenant === home.tenant,
    (row) => row.tenant === SHARED_TENANT,
  ];
  for (const inScope of scopes) {
    const [row, another] = rows.filter(inScope);
    if (row !== undefined) return another === undefined ? { row } : { problem: 'ambiguous' };
  }
  return { problem: 'not-found' };
};
