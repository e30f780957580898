import type { JsonObject } from '../../domain/json.ts';
import { objectAt, textsAt, valueAt } from '../../domain/json-tools.ts';
import type { DocumentKind, LiveView } from './fold.ts';

/** One indexed value of a document: filters for it are answered from the tables `terms` and `term_counts`. */
export type Term = readonly [field: string, value: string];

/** Shown in public lists that no filter changes (`ResourceKind.listed`). */
export const LISTED: Term = ['listed', ''];

/** The state of a kind, by the names that OSAC's messages give it, and the hub that carries a cluster. */
const STATES = ['status.state', 'spec.state', 'spec.lifecycle', 'status.hub'];
const PROJECT = 'metadata.project';
const LABELS = 'metadata.labels.';

/** Paths, beside labels, whose values are indexed: references by id and name too, those in lists and maps excepted. */
export const indexedPaths = (kind: Pick<DocumentKind, 'references'>): ReadonlySet<string> => {
  const known = pathsOf.get(kind);
  if (known !== undefined) return known;
  const paths = new Set([
    PROJECT,
    ...STATES,
    ...(kind.references ?? [])
      .filter(({ path }) => !path.includes('*'))
      .flatMap(({ path }) => [`${path}.id`, `${path}.name`]),
  ]);
  pathsOf.set(kind, paths);
  return paths;
};
/** Kinds are few and stay; each document that changes is looked through by their paths. */
const pathsOf = new WeakMap<object, ReadonlySet<string>>();

/** Name of a label's field in `terms`; none for other paths. */
export const labelField = (path: readonly string[]): string | undefined =>
  path.length === 3 && path[0] === 'metadata' && path[1] === 'labels' ? `${LABELS}${path[2]}` : undefined;

/** Everything by which a live document can be found. */
export const termsOf = (kind: DocumentKind, { project, document }: LiveView): readonly Term[] => {
  const terms: Term[] = [[PROJECT, project]];
  for (const path of indexedPaths(kind)) {
    const value = path === PROJECT ? undefined : valueAt(document, path);
    if (typeof value === 'string') terms.push([path, value]);
  }
  for (const [key, value] of Object.entries(textsAt(metadataOf(document), 'labels')))
    terms.push([`${LABELS}${key}`, value]);
  if (isListed(kind, document)) terms.push(LISTED);
  return terms;
};

/** Whether the public list shows a document when nothing is asked for. */
export const isListed = (kind: Pick<DocumentKind, 'listed'>, document: JsonObject): boolean =>
  kind.listed?.(document) ?? false;

const metadataOf = (document: JsonObject): JsonObject => objectAt(document, 'metadata');
