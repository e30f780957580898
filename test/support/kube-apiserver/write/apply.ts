import { isObject, sameJson } from '../../../../src/domain/json-tools.ts';
import { badRequest, StatusError } from '../errors.ts';
import type { ResourceCall } from '../server/resources.ts';
import type { Store } from '../store.ts';
import { apiVersionOf, type JsonObject, type Kind, type KubeObject, type ManagedFields } from '../types.ts';
import { fromFieldsV1, layOver, ownedLeaves, pathText, withoutLeaf, type Leaves } from './field-set.ts';
import { isManager, withEntry, withoutPaths, type Manager } from './managed-fields.ts';
import type { Objects, WriteContext } from './objects.ts';

/** Server-side apply: the caller says the whole of what it owns; what others own and differs is a conflict. */
export const applyPatch = (
  store: Store,
  objects: Objects,
  call: ResourceCall,
  sent: JsonObject,
  context: WriteContext,
): { created: boolean; object: KubeObject } => {
  const { kind, target, query } = call;
  const name = target.name ?? '';
  if (query.get('fieldManager') === null) {
    throw badRequest(
      'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
    );
  }
  const body = kind.schema?.admit(sent).object ?? sent;
  const metadata = isObject(body['metadata']) ? body['metadata'] : {};
  if (metadata['managedFields'] !== undefined) throw badRequest('metadata.managedFields must be nil');
  const status = context.subresource === 'status';
  const who: Manager = {
    manager: context.manager,
    operation: 'Apply',
    ...(status ? { subresource: 'status' } : {}),
  };
  const wanted = ownedLeaves(kind, body, status);
  const at = objects.stamp();
  const current = store.get(kind, target.namespace ?? '', name);
  if (current === undefined) {
    const managed = withEntry([], kind, who, [...wanted.keys()], at, false);
    const created = { ...body, metadata: { ...metadata, name } };
    return {
      created: true,
      object: objects.create(kind, target.namespace ?? '', created, { ...context, managed }),
    };
  }
  const document = current as unknown as JsonObject;
  const entries = current.metadata.managedFields ?? [];
  const taken = differing(ownedLeaves(kind, current, status), wanted);
  const conflicts = query.get('force') === 'true' ? [] : conflictsWith(entries, taken, who);
  if (conflicts.length > 0) throw applyConflict(kind, name, conflicts);

  const left = withoutPaths(entries, taken, who);
  const dropped = abandoned(entries, left, who, wanted);
  const merged = dropped.reduce((one, path) => withoutLeaf(kind, one, path), layOver(kind, document, body));
  const managed = withEntry(left, kind, who, [...wanted.keys()], at, false);
  const next = {
    ...merged,
    metadata: { ...(merged['metadata'] as JsonObject), ...serverMeta(current, metadata) },
  };
  return { created: false, object: objects.update(kind, current, next, { ...context, managed }, false) };
};

/** Apply never needs a version; one that is sent is checked like any other. */
const serverMeta = (current: KubeObject, given: JsonObject): JsonObject => ({
  name: current.metadata.name,
  uid: current.metadata.uid,
  resourceVersion: given['resourceVersion'] ?? current.metadata.resourceVersion,
});

const differing = (now: Leaves, wanted: Leaves): ReadonlySet<string> =>
  new Set(
    [...wanted]
      .filter(([path, value]) => now.has(path) && !sameJson(now.get(path), value))
      .map(([path]) => path),
  );

type Conflict = { readonly entry: ManagedFields; readonly path: string };

const conflictsWith = (
  entries: readonly ManagedFields[],
  taken: ReadonlySet<string>,
  who: Manager,
): Conflict[] =>
  entries
    .filter((entry) => !isManager(entry, who))
    .flatMap((entry) =>
      [...fromFieldsV1(entry.fieldsV1)].filter((path) => taken.has(path)).map((path) => ({ entry, path })),
    );

/** What this manager applied before and does not any more, and nobody else owns. */
const abandoned = (
  entries: readonly ManagedFields[],
  left: readonly ManagedFields[],
  who: Manager,
  wanted: Leaves,
): string[] => {
  const mine = entries.find((entry) => isManager(entry, who));
  if (mine === undefined) return [];
  const others = new Set(
    left.filter((entry) => !isManager(entry, who)).flatMap(({ fieldsV1 }) => [...fromFieldsV1(fieldsV1)]),
  );
  return [...fromFieldsV1(mine.fieldsV1)].filter((path) => !wanted.has(path) && !others.has(path));
};

const applyConflict = (kind: Kind, name: string, conflicts: readonly Conflict[]): StatusError => {
  const causes = conflicts.map(({ entry, path }) => {
    const how = entry.operation === 'Apply' ? '' : ` using ${apiVersionOf(kind)}`;
    return {
      reason: 'FieldManagerConflict',
      message: `conflict with "${entry.manager}"${how}`,
      field: pathText(path),
    };
  });
  const count = `${causes.length} conflict${causes.length === 1 ? '' : 's'}`;
  const words = causes.map(({ message, field }) => `${message}: ${field}`).join(', ');
  const details = { name, ...(kind.group === '' ? {} : { group: kind.group }), kind: kind.plural, causes };
  return new StatusError(409, 'Conflict', `Apply failed with ${count}: ${words}`, details);
};
