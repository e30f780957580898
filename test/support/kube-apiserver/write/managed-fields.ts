import { sameJson } from '../../../../src/domain/json-tools.ts';
import { apiVersionOf, type Kind, type KubeObject, type ManagedFields } from '../types.ts';
import { fromFieldsV1, ownedLeaves, toFieldsV1, type Leaves } from './field-set.ts';

/** Who writes what he owns: one entry of `managedFields`. */
export type Manager = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource?: 'status';
};

/**
 * Notes who wrote which fields last (`metadata.managedFields`): a plain write takes the fields that it changed away
 * from whoever had them. Server-side apply decides conflicts by this.
 */
export const trackUpdate = (
  kind: Kind,
  before: KubeObject | undefined,
  after: KubeObject,
  writer: { readonly manager: string; readonly subresource?: string },
  at: string,
): KubeObject => {
  const status = writer.subresource === 'status';
  const [old, now] = [
    before === undefined ? NONE : ownedLeaves(kind, before, status),
    ownedLeaves(kind, after, status),
  ];
  const changed = [...now].filter(([path, value]) => !sameJson(old.get(path), value)).map(([path]) => path);
  const removed = [...old.keys()].filter((path) => !now.has(path));
  if (changed.length === 0 && removed.length === 0) return after;
  const who: Manager = {
    manager: writer.manager,
    operation: 'Update',
    ...(status ? { subresource: 'status' } : {}),
  };
  const entries = withoutPaths(before?.metadata.managedFields ?? [], new Set([...changed, ...removed]), who);
  return withManaged(after, withEntry(entries, kind, who, changed, at, true));
};

const NONE: Leaves = new Map();

export const withManaged = (object: KubeObject, entries: readonly ManagedFields[]): KubeObject => {
  const { managedFields: _old, ...metadata } = object.metadata;
  return { ...object, metadata: entries.length === 0 ? metadata : { ...metadata, managedFields: entries } };
};

export const isManager = (entry: ManagedFields, who: Manager): boolean =>
  entry.manager === who.manager && entry.operation === who.operation && entry.subresource === who.subresource;

/** Every entry without these paths, but the one of `who`, which only loses what is gone for good. */
export const withoutPaths = (
  entries: readonly ManagedFields[],
  paths: ReadonlySet<string>,
  who: Manager,
): ManagedFields[] =>
  entries.flatMap((entry) => {
    if (isManager(entry, who)) return [entry];
    const left = [...fromFieldsV1(entry.fieldsV1)].filter((path) => !paths.has(path));
    return left.length === 0 ? [] : [{ ...entry, fieldsV1: toFieldsV1(left) }];
  });

/** Entries with the one of `who` set to these paths, or to these beside what it had (`add`). */
export const withEntry = (
  entries: readonly ManagedFields[],
  kind: Kind,
  who: Manager,
  paths: readonly string[],
  at: string,
  add: boolean,
): ManagedFields[] => {
  const known = entries.find((entry) => isManager(entry, who));
  const held = known === undefined || !add ? [] : [...fromFieldsV1(known.fieldsV1)];
  const fieldsV1 = toFieldsV1(new Set([...held, ...paths]));
  const others = entries.filter((entry) => !isManager(entry, who));
  if (Object.keys(fieldsV1).length === 0) return others;
  if (known !== undefined && sameJson(known.fieldsV1, fieldsV1)) return [...others, known];
  const { manager, operation, subresource } = who;
  const entry: ManagedFields = {
    manager,
    operation,
    apiVersion: apiVersionOf(kind),
    time: at,
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource === undefined ? {} : { subresource }),
  };
  return [...others, entry];
};
