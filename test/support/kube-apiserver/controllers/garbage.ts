import type { Change, Store } from '../store.ts';
import type { Kind, KubeObject } from '../types.ts';
import { resourceName } from '../types.ts';
import type { Objects } from '../write/objects.ts';

type Place = { readonly kind: Kind; readonly namespace: string; readonly name: string };

const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';

/** Follows owner references: what has lost its last owner goes too (background, foreground and orphan deletion). */
export const garbageCollector = (store: Store, objects: Objects) => {
  const dependents = new Map<string, Map<string, Place>>();
  const ownersGone = new Set<string>();
  const alive = new Set<string>();
  /** Owners that are referred to and were never seen. */
  const unknown = new Set<string>();
  const waiting = new Map<string, Place>();

  const placeOf = (kind: Kind, { metadata }: KubeObject): Place => ({
    kind,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
  });

  const at = ({ kind, namespace, name }: Place): KubeObject | undefined => {
    const served = store.find(kind.group, kind.plural);
    return served === undefined ? undefined : store.get(served, namespace, name);
  };

  const link = (kind: Kind, object: KubeObject, add: boolean): void => {
    const place = placeOf(kind, object);
    const key = `${resourceName(kind)}/${place.namespace}/${place.name}`;
    for (const { uid } of object.metadata.ownerReferences ?? []) {
      const of = dependents.get(uid) ?? new Map<string, Place>();
      if (add) of.set(key, place);
      else of.delete(key);
      if (of.size === 0) dependents.delete(uid);
      else dependents.set(uid, of);
    }
  };

  const liveDependents = (uid: string): { place: Place; object: KubeObject }[] =>
    [...(dependents.get(uid)?.values() ?? [])].flatMap((place) => {
      const object = at(place);
      return object === undefined ? [] : [{ place, object }];
    });

  const dropReference = (
    { place, object }: { place: Place; object: KubeObject },
    uid: string,
  ): KubeObject => {
    const left = (object.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid);
    const { ownerReferences: _all, ...rest } = object.metadata;
    const metadata = left.length === 0 ? rest : { ...rest, ownerReferences: left };
    return store.put(place.kind, { ...object, metadata });
  };

  const dropFinalizer = (place: Place, object: KubeObject, finalizer: string): void => {
    const left = (object.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    const { finalizers: _all, ...rest } = object.metadata;
    if (left.length === 0) store.remove(place.kind, { ...object, metadata: rest });
    else store.put(place.kind, { ...object, metadata: { ...rest, finalizers: left } });
  };

  const finishForeground = (place: Place, object: KubeObject): void => {
    const found = liveDependents(object.metadata.uid);
    for (const one of found) {
      if (one.object.metadata.deletionTimestamp === undefined) objects.remove(one.place.kind, one.object, {});
    }
    const blocks = liveDependents(object.metadata.uid).some(({ object: dependent }) =>
      dependent.metadata.ownerReferences?.some(
        (owner) => owner.uid === object.metadata.uid && owner.blockOwnerDeletion === true,
      ),
    );
    if (!blocks) dropFinalizer(place, object, FOREGROUND);
  };

  return {
    changed: (kind: Kind, { type, object, before }: Change): void => {
      if (before !== undefined) link(kind, before, false);
      if (type !== 'DELETED') link(kind, object, true);
      const { uid, finalizers = [], deletionTimestamp, ownerReferences = [] } = object.metadata;
      for (const owner of type === 'DELETED' ? [] : ownerReferences) {
        if (!alive.has(owner.uid)) unknown.add(owner.uid);
      }
      if (type === 'DELETED') {
        alive.delete(uid);
        ownersGone.add(uid);
        waiting.delete(uid);
        return;
      }
      alive.add(uid);
      if (deletionTimestamp !== undefined && finalizers.some((one) => one === FOREGROUND || one === ORPHAN)) {
        waiting.set(uid, placeOf(kind, object));
      }
    },
    /** One pass. */
    collect: (): void => {
      for (const uid of unknown) if (!alive.has(uid)) ownersGone.add(uid);
      unknown.clear();
      for (const uid of ownersGone) {
        for (const found of liveDependents(uid)) {
          const left = dropReference(found, uid);
          if (left.metadata.ownerReferences === undefined) objects.remove(found.place.kind, left, {});
        }
        dependents.delete(uid);
      }
      ownersGone.clear();
      for (const place of waiting.values()) {
        const object = at(place);
        if (object === undefined) continue;
        if ((object.metadata.finalizers ?? []).includes(ORPHAN)) {
          for (const found of liveDependents(object.metadata.uid)) dropReference(found, object.metadata.uid);
          dropFinalizer(place, object, ORPHAN);
        } else finishForeground(place, object);
      }
    },
  };
};
