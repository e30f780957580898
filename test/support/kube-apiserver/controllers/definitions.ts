import { invalidValue, invalid } from '../errors.ts';
import { kindOfDefinition } from '../kinds.ts';
import type { Store } from '../store.ts';
import type { JsonObject, Kind, KubeObject } from '../types.ts';
import { resourceName } from '../types.ts';
import type { Objects } from '../write/objects.ts';

export const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io';

export const isDefinition = ({ group, plural }: Pick<Kind, 'group' | 'plural'>): boolean =>
  group === 'apiextensions.k8s.io' && plural === 'customresourcedefinitions';

/** A CustomResourceDefinition as it is stored: checked, established at once, held until its objects are gone. */
export const admitDefinition = (
  object: KubeObject,
  before: KubeObject | undefined,
  at: string,
): KubeObject => {
  const kind = kindOfDefinition(object as unknown as JsonObject);
  const { name, finalizers = [], deletionTimestamp } = object.metadata;
  if (name !== resourceName(kind)) {
    const fault = invalidValue('metadata.name', name, 'must be spec.names.plural+"."+spec.group');
    throw invalid('CustomResourceDefinition', 'apiextensions.k8s.io', name, [fault]);
  }
  const held =
    deletionTimestamp !== undefined || finalizers.includes(CLEANUP) ? finalizers : [...finalizers, CLEANUP];
  const condition = (type: string, reason: string, message: string): JsonObject => ({
    type,
    status: 'True',
    reason,
    message,
    lastTransitionTime: at,
  });
  const status = {
    acceptedNames: { plural: kind.plural, singular: kind.singular, kind: kind.kind, listKind: kind.listKind },
    storedVersions: [kind.version],
    conditions: [
      condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
      condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
    ],
  };
  return {
    ...object,
    metadata: held.length === 0 ? object.metadata : { ...object.metadata, finalizers: held },
    status: before === undefined ? status : (before['status'] as JsonObject),
  };
};

/** Serves what definitions define, and takes the objects of a deleted definition along with it. */
export const definitionsController = (store: Store, objects: Objects) => {
  const served = (definition: KubeObject): Kind | undefined => {
    const wanted = kindOfDefinition(definition as unknown as JsonObject);
    return store.find(wanted.group, wanted.plural);
  };
  return {
    changed: (definition: KubeObject): void => {
      if (definition.metadata.deletionTimestamp === undefined) {
        store.register(kindOfDefinition(definition as unknown as JsonObject));
      }
    },
    /** One pass over the definitions that are being deleted. */
    clean: (definitions: Kind): void => {
      for (const definition of store.list(definitions)) {
        const { deletionTimestamp, finalizers = [] } = definition.metadata;
        if (deletionTimestamp === undefined || !finalizers.includes(CLEANUP)) continue;
        const kind = served(definition);
        for (const object of kind === undefined ? [] : store.list(kind))
          objects.remove(kind as Kind, object, {});
        if (kind !== undefined && store.list(kind).length > 0) continue;
        if (kind !== undefined) store.unregister(kind);
        const left = finalizers.filter((one) => one !== CLEANUP);
        const { finalizers: _all, ...rest } = definition.metadata;
        const metadata = left.length === 0 ? rest : { ...rest, finalizers: left };
        if (left.length === 0) store.remove(definitions, { ...definition, metadata });
        else store.put(definitions, { ...definition, metadata });
      }
    },
  };
};
