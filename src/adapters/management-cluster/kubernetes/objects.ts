import {
  digestOfLook,
  HubError,
  type CallOptions,
  type ManagementCluster,
} from '../../../app/hubs/management-cluster.ts';
import {
  isLabelValue,
  manifestFaults,
  fieldOfObject,
  objectOf,
  patchFaults,
  type Companion,
  type Fault,
  type HubObject,
  type Manifest,
  type ObjectPlace,
  type OwnedObject,
  type OwnedShown,
} from '../../../domain/hubs/hub-object.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { isObject, objectAt, sameJson, stringAt } from '../../../domain/json-tools.ts';
import type { Api, Kind, Listed } from './api.ts';
import type { Rights } from './rights.ts';

export type ObjectOperations = Pick<
  ManagementCluster,
  'create' | 'patch' | 'delete' | 'get' | 'find' | 'read'
> &
  Pick<Required<ManagementCluster>, 'digests'>;

/** Reads and writes of declared kinds. */
export const objectOperations = (api: Api, rights: Pick<Rights, 'has'>): ObjectOperations => {
  /** Undefined when the rights do not show them (OSAC's operator), or the kind is not there. */
  const partOf = async (
    { of, label }: NonNullable<HubObject['parts']>[string],
    { namespace, name }: ObjectPlace,
    by: CallOptions,
  ): Promise<readonly JsonObject[] | undefined> => {
    if (!isLabelValue(name) || !(await rights.has({ kind: of, verb: 'list' }, by))) return undefined;
    try {
      return await listed(api, of, { namespace, labelSelector: `${label}=${name}` }, by);
    } catch (error) {
      if (error instanceof HubError && (error.kind === 'not-ready' || error.kind === 'unauthorized'))
        return undefined;
      throw error;
    }
  };

  const get: ObjectOperations['get'] = async (kind, place, by) => {
    const object = await api.get(kind, at(place), by);
    if (object === undefined) return undefined;
    const parts: { [part: string]: readonly JsonObject[] } = {};
    for (const [name, part] of Object.entries(kind.parts ?? {})) {
      const found = await partOf(part, place, by);
      if (found !== undefined) parts[name] = found;
    }
    return kind.shown(object, parts);
  };

  /**
   * Those of these places that are there, by `keyOf`, in one list. `label`: each of them has it. Undefined: the rights
   * allow no such list.
   */
  const manyAt = async <Shown>(
    kind: HubObject<Shown>,
    places: readonly ObjectPlace[],
    label: string | undefined,
    by: CallOptions,
  ): Promise<ReadonlyMap<string, Shown> | undefined> => {
    const [namespace, ...others] = new Set(places.map((place) => place.namespace));
    const where = namespace === undefined || others.length > 0 ? {} : { namespace };
    if (!(await rights.has({ kind, verb: 'list', ...where }, by))) return undefined;
    const parts: { [part: string]: ReadonlyMap<string, readonly JsonObject[]> } = {};
    for (const [name, { of, label: ofOwner }] of Object.entries(kind.parts ?? {})) {
      if (!(await rights.has({ kind: of, verb: 'list' }, by))) continue;
      const all = await listed(api, of, { ...where, labelSelector: ofOwner }, by);
      const ownerOf = (object: JsonObject): string =>
        stringAt(objectAt(objectAt(object, 'metadata'), 'labels'), ofOwner);
      parts[name] = Map.groupBy(all, (object) => keyOf({ ...placeIn(object), name: ownerOf(object) }));
    }
    const wanted = new Set(places.map(keyOf));
    const found = new Map<string, Shown>();
    const selected = label === undefined ? where : { ...where, labelSelector: label };
    for await (const page of api.list(kind, selected, by)) {
      if (page.first) found.clear();
      for (const object of page.items) {
        const key = keyOf(placeIn(object));
        const mine = Object.entries(parts).map(([name, all]) => [name, all.get(key) ?? []] as const);
        if (wanted.has(key)) found.set(key, kind.shown(object, Object.fromEntries(mine)));
      }
    }
    return found;
  };

  const digests: ObjectOperations['digests'] = async (kind, looks, by) => {
    const { observed, backLabel, idLabel } = kind;
    const objects = await manyAt(
      kind,
      looks.map(({ place }) => place),
      idLabel,
      by,
    );
    const places = looks.flatMap(({ beside }) => beside ?? []);
    const others =
      observed && places.length > 0 ? await manyAt(observed.beside, places, backLabel, by) : new Map();
    if (objects === undefined || others === undefined) return undefined;
    return looks.map(({ place, beside }) => {
      const object = objects.get(keyOf(place));
      const other: unknown = beside === undefined ? undefined : others.get(keyOf(beside));
      return object === undefined ? undefined : digestOfLook(object, other ?? null);
    });
  };

  /** Whose the name is decides what its caller does; a name that has just gone is free at the next try. */
  const taken = async (
    kind: OwnedObject,
    place: ObjectPlace,
    error: HubError,
    by: CallOptions,
  ): Promise<HubError> => {
    const object = await get(kind, place, by);
    const more = { facts: error.facts, cause: error };
    return object === undefined
      ? new HubError('conflict', `${kind.kind} ${place.name} has just gone; its name is free again`, more)
      : new HubError('already-exists', error.message, { ...more, object });
  };

  const create = async <Spec extends object, Shown extends OwnedShown>(
    kind: OwnedObject<Spec, Shown>,
    manifest: Manifest<Spec>,
    by: CallOptions,
  ): Promise<Shown> => {
    refuse(kind, manifest.name, manifestFaults(kind, manifest));
    try {
      const object = await api.create(kind, objectOf(kind, manifest), by, secretsIn(kind, manifest.spec));
      return kind.shown(object);
    } catch (error) {
      if (error instanceof HubError && error.kind === 'already-exists')
        throw await taken(kind, manifest, error, by);
      throw error;
    }
  };

  return {
    create,
    get,
    digests,
    patch: async (kind, place, spec, by) => {
      if (place.part === 'status') {
        const status = JSON.parse(JSON.stringify(kind.status?.parse(spec) ?? {})) as JsonObject;
        return kind.shown(await api.mergePatch(kind, { ...at(place), part: 'status' }, { status }, by));
      }
      refuse(kind, place.name, patchFaults(kind, spec));
      const wanted = JSON.parse(JSON.stringify(kind.spec.partial().parse(spec))) as JsonObject;
      const patch = { [fieldOfObject(kind)]: wanted };
      const stored = await api.mergePatch(kind, at(place), patch, by, secretsIn(kind, spec));
      return kind.shown(stored);
    },
    delete: (kind, place, by) => api.remove(kind, at(place), by, place.uid),
    find: async (kind, namespace, id, by) => {
      // No object can carry another value, and a selector with it would be refused.
      if (id === '' || !isLabelValue(id)) return [];
      const found = await listed(api, kind, { namespace, labelSelector: `${kind.idLabel}=${id}` }, by);
      return found.map((object) => kind.shown(object));
    },
    read: async (kind, place, by) => {
      const object = await api.get(kind, at(place), by);
      return object === undefined ? undefined : wholeObject(object);
    },
  };
};

/** All of a list. */
export const listed = async (
  api: Api,
  kind: Kind,
  where: Listed,
  by: CallOptions,
): Promise<readonly JsonObject[]> => {
  const found: JsonObject[] = [];
  for await (const page of api.list(kind, where, by)) {
    if (page.first) found.length = 0;
    found.push(...page.items);
  }
  return found;
};

const refuse = (kind: OwnedObject, name: string, faults: readonly Fault[]): void => {
  if (faults.length === 0) return;
  const text = faults.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new HubError('invalid', `${kind.kind} ${name} was not sent: ${text}`, {
    facts: { causes: faults.map((fault) => ({ ...fault })) },
  });
};

const secretsIn = ({ secretFields }: OwnedObject, spec: object): readonly string[] =>
  secretFields.map((field) => stringAt(spec as JsonObject, field));

/** As an operator hands it to Ansible, without the bookkeeping of who wrote which field. */
const wholeObject = (object: JsonObject): JsonObject => {
  const { metadata } = object;
  if (!isObject(metadata)) return object;
  const { managedFields: _managed, ...kept } = metadata;
  return { ...object, metadata: kept };
};

const keyOf = ({ namespace, name }: ObjectPlace): string => `${namespace}/${name}`;
const placeIn = (object: JsonObject): ObjectPlace => ({
  namespace: stringAt(objectAt(object, 'metadata'), 'namespace'),
  name: stringAt(objectAt(object, 'metadata'), 'name'),
});

const at = ({ namespace, name }: ObjectPlace): ObjectPlace => ({ namespace, name });

/**
 * Makes an object where there is none; true when it had to. One of that name whose label says something else is
 * somebody's, and never used; one that has just been made is looked at by the next try.
 */
export const ensure = async (
  api: Api,
  { of, word, name, namespace, object }: Companion,
  label: string,
  by: CallOptions,
): Promise<boolean> => {
  const existing = await api.get(of, { name, ...(namespace === undefined ? {} : { namespace }) }, by);
  if (existing === undefined) {
    try {
      await api.create(of, object, by);
      return true;
    } catch (error) {
      if (!(error instanceof HubError) || error.kind !== 'already-exists') throw error;
      throw new HubError('conflict', `${word} ${name} was just made by another client`, { cause: error });
    }
  }
  const labelOf = (one: JsonObject): string => stringAt(objectAt(objectAt(one, 'metadata'), 'labels'), label);
  if (stringAt(objectAt(existing, 'metadata'), 'deletionTimestamp') !== '')
    throw new HubError('conflict', `${word} ${name} is being deleted`);
  if (labelOf(existing) !== labelOf(object))
    throw new HubError(
      'already-exists',
      `${word} ${name} belongs to another owner: it has no label ${label}=${labelOf(object)}`,
    );
  if (!sameJson(existing['roleRef'] ?? null, object['roleRef'] ?? null))
    throw new HubError('already-exists', `${word} ${name} grants another role; remove it`);
  return false;
};
