import { numberAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError } from '../api-client.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { desiredOf, identityOf, type FileDocument } from './documents.ts';
import { allOf, hiddenToo, literal, type ResourceApi, type Tagged } from './resource-api.ts';

export type Outcome = {
  readonly done: 'created' | 'configured' | 'unchanged';
  readonly object: JsonObject;
};

export type ApplyOptions = {
  readonly dryRun: boolean;
  /** A fresh key per write; a repetition of the call by the client keeps it. */
  readonly newKey: () => string;
};

/** How often a write starts over because its object changed between the look and the write. */
const ROUNDS = 5;

/**
 * Creates the object when it is absent, else changes it to what the file says; fields that the file does not name stay.
 * The write names the state that was looked at, so that "unchanged" is certain; when another write comes first it looks
 * again. A file that holds `metadata.version` is applied to that version only.
 */
export const applyDocument = async (
  api: ResourceApi,
  { kind, document, where }: FileDocument,
  { dryRun, newKey }: ApplyOptions,
): Promise<Outcome> => {
  const { desired, version } = desiredOf(document);
  let absent = 0;
  for (let round = 1; ; round += 1) {
    try {
      const current = await currentOf(api, { kind, document, where });
      if (current === undefined) {
        absent += 1;
        return { done: 'created', object: await api.create(kind, desired, { dryRun, key: newKey() }) };
      }
      const leaving = stringAt(objectAt(current.object, 'metadata'), 'deletion_timestamp');
      if (leaving !== '')
        throw new CliFailure(
          EXIT.notFoundOrConflict,
          `${where}: it is being deleted since ${leaving}, and goes whatever is changed about it; ` +
            `when it is gone, apply the file again`,
        );
      const body =
        version === undefined
          ? desired
          : { ...desired, metadata: { ...objectAt(desired, 'metadata'), version } };
      const object = await api.update(kind, stringAt(current.object, 'id'), body, {
        dryRun,
        key: newKey(),
        ...(version === undefined ? tagOf(current) : { lock: true }),
      });
      const done = versionOf(object) === versionOf(current.object) && !dryRun ? 'unchanged' : 'configured';
      return { done: dryRun && sameBut(object, current.object) ? 'unchanged' : done, object };
    } catch (error) {
      if (version !== undefined && isStatus(error, 409))
        throw new CliFailure(
          EXIT.notFoundOrConflict,
          `${where}: it was changed since version ${version}, which the file is made from: get it again, ` +
            `or take metadata.version out of the file`,
          { cause: error },
        );
      // Changed by somebody else, or created by somebody else, since it was looked at.
      if (absent > 1 && isStatus(error, 409) && !isOfSpec(error))
        throw new CliFailure(
          EXIT.notFoundOrConflict,
          `${where}: it exists, but this surface does not show it to this caller; with --private it may`,
          { cause: error },
        );
      const raced =
        isStatus(error, 412) || (isStatus(error, 409) && !isOfSpec(error)) || isStatus(error, 404);
      if (!raced || round === ROUNDS) throw error;
    }
  }
};

/** Not its name or id is taken, but what it wants: a range that overlaps another one. */
const isOfSpec = ({ violations }: ApiError): boolean =>
  violations.some(({ field }) => field.startsWith('spec'));

const isStatus = (error: unknown, status: number): error is ApiError =>
  error instanceof ApiError && error.status === status;

const versionOf = (object: JsonObject): number => numberAt(objectAt(object, 'metadata'), 'version');

/** A dry run counts no version. */
const sameBut = (left: JsonObject, right: JsonObject): boolean =>
  JSON.stringify(withoutVersion(left)) === JSON.stringify(withoutVersion(right));

const withoutVersion = (object: JsonObject): JsonObject => {
  const { version: _version, ...metadata } = objectAt(object, 'metadata');
  return { ...object, metadata };
};

const tagOf = ({ etag }: Tagged): { readonly ifMatch?: string } =>
  etag === undefined ? {} : { ifMatch: etag };

/** What is stored under the file's id or name; undefined when nothing is. Throws CliFailure when several are. */
const currentOf = async (
  api: ResourceApi,
  { kind, document, where }: FileDocument,
): Promise<Tagged | undefined> => {
  const { id, name } = identityOf(kind, document);
  if (id !== undefined) return api.read(kind, id);
  if (name === undefined)
    throw new CliFailure(EXIT.failed, `${where}: without "id" and "metadata.name" it cannot be found again`);
  const metadata = objectAt(document, 'metadata');
  const filter = allOf([
    `this.metadata.name == ${literal(name)}`,
    api.surfaceOf(kind, 'List') === 'public' ? hiddenToo(kind) : undefined,
    ...(['tenant', 'project'] as const).map((scope) => {
      const value = stringAt(metadata, scope);
      return value === '' ? undefined : `this.metadata.${scope} == ${literal(value)}`;
    }),
  ]);
  const [only, ...others] = await api.list(kind, { filter: filter ?? '' });
  if (only === undefined) return kind.kind.ids === 'equals-name' ? api.read(kind, name) : undefined;
  if (others.length > 0) {
    const ids = [only, ...others].map((object) => stringAt(object, 'id')).join(', ');
    throw new CliFailure(
      EXIT.failed,
      `${where}: several have the name '${name}' (${ids}); give "id", or metadata.tenant or metadata.project`,
    );
  }
  return api.read(kind, stringAt(only, 'id'));
};
