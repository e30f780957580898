import { isObject } from '../../../../src/domain/json-tools.ts';
import type { Store } from '../store.ts';
import type { JsonObject, Kind, KubeObject } from '../types.ts';
import type { Objects } from '../write/objects.ts';

/** Empties terminating namespaces, says what is left in them, and lets them go when nothing is. */
export const namespacesController = (store: Store, objects: Objects, delayMs: number, now: () => Date) => {
  const due = (namespace: KubeObject): boolean =>
    now().getTime() - Date.parse(namespace.metadata.deletionTimestamp ?? '') >= delayMs;

  const leftovers = (name: string): KubeObject[] =>
    store.kinds().flatMap((kind) => (kind.namespaced ? store.list(kind, name) : []));

  const empty = (name: string): void => {
    for (const kind of store.kinds()) {
      if (!kind.namespaced) continue;
      for (const object of store.list(kind, name)) {
        if (object.metadata.deletionTimestamp === undefined) objects.remove(kind, object, {});
      }
    }
  };

  const finish = (namespaces: Kind, namespace: KubeObject): void => {
    const rest = { ...namespace, spec: { finalizers: [] } };
    if ((namespace.metadata.finalizers ?? []).length > 0) store.put(namespaces, rest);
    else store.remove(namespaces, rest);
  };

  const report = (namespaces: Kind, namespace: KubeObject, left: readonly KubeObject[]): void => {
    const held = left.flatMap(({ metadata }) => metadata.finalizers ?? []);
    const condition = (type: string, reason: string, message: string): JsonObject => ({
      type,
      status: 'True',
      reason,
      message,
      lastTransitionTime: namespace.metadata.deletionTimestamp ?? '',
    });
    const conditions = [
      condition(
        'NamespaceContentRemaining',
        'SomeResourcesRemain',
        `Some resources are remaining: ${left.length}`,
      ),
      ...(held.length === 0
        ? []
        : [
            condition(
              'NamespaceFinalizersRemaining',
              'SomeFinalizersRemain',
              `Some content in the namespace has finalizers remaining: ${[...new Set(held)].sort().join(', ')}`,
            ),
          ]),
    ];
    store.put(namespaces, { ...namespace, status: { ...statusOf(namespace), conditions } });
  };

  return {
    /** One pass; milliseconds until the next namespace is due, undefined when none waits. */
    clean: (namespaces: Kind): number | undefined => {
      let wait: number | undefined;
      for (const found of store.list(namespaces)) {
        if (found.metadata.deletionTimestamp === undefined || !isHeld(found)) continue;
        const { name } = found.metadata;
        empty(name);
        if (!due(found)) {
          wait = Math.min(wait ?? delayMs, delayMs);
          continue;
        }
        const left = leftovers(name);
        const namespace = store.get(namespaces, '', name) ?? found;
        if (left.length === 0) finish(namespaces, namespace);
        else report(namespaces, namespace, left);
      }
      return wait;
    },
  };
};

const statusOf = ({ status }: KubeObject): JsonObject =>
  isObject(status as JsonObject) ? (status as JsonObject) : {};

const isHeld = ({ spec }: KubeObject): boolean => {
  const finalizers = isObject(spec as JsonObject) ? (spec as JsonObject)['finalizers'] : undefined;
  return Array.isArray(finalizers) && finalizers.length > 0;
};
