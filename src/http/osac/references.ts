import { valueAt, withValueAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { referenceOf, referenceText, refersTo, type Reference } from '../../domain/references.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { ResourceReader, ResourceRow, Visibility } from '../../projections/read-models.ts';
import { ApiError } from '../errors.ts';

/** What a declaration says about its references, and how the kinds they name are called. */
export type ReferenceRules = {
  readonly references: ResourceKind['references'];
  /** Message name of a kind: `clusterTemplate` → `ClusterTemplate`. */
  readonly messageOf: (kind: string) => string;
};

export type ResolvedReferences = {
  /** The document with id and name of every reference filled in. */
  readonly document: JsonObject;
  /** Referenced objects by path. */
  readonly found: ReadonlyMap<string, ResourceRow>;
};

/**
 * Resolves every single reference of a document (osac-api.md §5 Object references): by id, by name, or both, among
 * what the caller may see. All problems are reported at once, each with its field. Throws ApiError 400.
 */
export const resolveReferences = (
  rules: ReferenceRules,
  document: JsonObject,
  tenant: string,
  resources: ResourceReader,
  visibility: Visibility,
): ResolvedReferences => {
  let resolved = document;
  const found = new Map<string, ResourceRow>();
  const violations: { field: string; description: string }[] = [];
  for (const { path, kind } of rules.references) {
    const value = valueAt(document, path);
    if (value === undefined) continue;
    const reference = referenceOf(value) ?? {};
    const row = lookUp(kind, reference, tenant, resources, visibility);
    if (row === undefined) {
      violations.push({ field: `object.${path}`, description: problem(rules.messageOf(kind), reference) });
      continue;
    }
    found.set(path, row);
    resolved = withValueAt(resolved, path, { id: row.id, name: row.name });
  }
  if (violations.length > 0) throw referencesInvalid(violations);
  return { document: resolved, found };
};

const problem = (message: string, reference: Reference): string => {
  const text = referenceText(reference);
  return text === '' ? `${message} reference must specify id or name` : `${message} "${text}" not found`;
};

export const referencesInvalid = (
  violations: readonly { readonly field: string; readonly description: string }[],
): ApiError => {
  const texts = violations.map(({ field, description }) => `${field}: ${description}`);
  return new ApiError('INVALID_ARGUMENT', `reference validation failed: ${texts.join('; ')}`, { violations });
};

/** An object by id; by name where the id finds nothing, since the command line sends names as ids (osac-api-run.md §2). */
export const lookUp = (
  kind: string,
  reference: Reference,
  tenant: string,
  resources: ResourceReader,
  visibility: Visibility,
): ResourceRow | undefined => {
  const { id, name } = reference;
  if (id === undefined)
    return name === undefined ? undefined : byName(kind, name, tenant, resources, visibility);
  const row = resources.get(kind, id, visibility) ?? byName(kind, id, tenant, resources, visibility);
  if (row === undefined || name === undefined) return row;
  return refersTo({ name }, row) ? row : undefined;
};

/** Own tenant first, then `shared`, then the lowest id of what is visible. */
const byName = (
  kind: string,
  name: string,
  tenant: string,
  resources: ResourceReader,
  visibility: Visibility,
): ResourceRow | undefined => {
  const rows = resources.findByName(kind, name, visibility);
  return rows.find((row) => row.tenant === tenant) ?? rows.find((row) => row.tenant === 'shared') ?? rows[0];
};
