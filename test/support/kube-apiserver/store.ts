import { sameJson } from '../../../src/domain/json-tools.ts';
import type { Kind, KubeObject } from './types.ts';
import { resourceName } from './types.ts';

/** One step of one kind. `before` lets a watch with a selector tell "left my selection" from "changed". */
export type Change = {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
  readonly before?: KubeObject;
};

/** The objects of one kind in one namespace; `names` is their order, made when it is asked for. */
type Room = { readonly objects: Map<string, KubeObject>; names: string[] | undefined };

type Shelf = {
  readonly kind: Kind;
  readonly namespaces: Map<string, Room>;
  /** Newest last; bounded. Watches read it with a cursor, so that no watcher holds a copy of its own. */
  history: Change[];
  /** Watching from before this version is 410. */
  oldest: number;
  readonly listeners: Set<() => void>;
};

/** Objects of every kind under one rising version, as etcd and the watch cache keep them. */
export type Store = ReturnType<typeof createStore>;

export const createStore = (historyLimit: number) => {
  const shelves = new Map<string, Shelf>();
  const observers = new Set<(kind: Kind, change: Change) => void>();
  let version = 100;

  const shelfOf = (kind: Kind): Shelf => {
    const shelf = shelves.get(resourceName(kind));
    if (shelf === undefined) throw new Error(`kind ${resourceName(kind)} is not registered`);
    return shelf;
  };

  const record = (shelf: Shelf, change: Change): void => {
    shelf.history.push(change);
    if (shelf.history.length > historyLimit * 2) forget(shelf, historyLimit);
    for (const listener of shelf.listeners) listener();
    for (const observer of observers) observer(shelf.kind, change);
  };

  const forget = (shelf: Shelf, keep: number): void => {
    const cut = shelf.history.length - keep;
    const last = shelf.history[cut - 1];
    if (last === undefined) return;
    shelf.oldest = last.version;
    shelf.history = shelf.history.slice(cut);
  };

  const stamped = (object: KubeObject): KubeObject => {
    version += 1;
    return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
  };

  return {
    /** The version of the newest change of anything. */
    version: (): number => version,
    kinds: (): Kind[] => [...shelves.values()].map(({ kind }) => kind),
    find: (group: string, plural: string): Kind | undefined =>
      shelves.get(resourceName({ group, plural }))?.kind,

    /** Adds a kind, or replaces its definition and keeps its objects. */
    register: (kind: Kind): void => {
      const known = shelves.get(resourceName(kind));
      shelves.set(resourceName(kind), {
        ...(known ?? { namespaces: new Map(), history: [], oldest: version, listeners: new Set() }),
        kind,
      });
    },
    /** Ends serving a kind; its watches end with 410. */
    unregister: (kind: Kind): void => {
      const shelf = shelves.get(resourceName(kind));
      shelves.delete(resourceName(kind));
      for (const listener of shelf?.listeners ?? []) listener();
    },

    get: (kind: Kind, namespace: string, name: string): KubeObject | undefined =>
      shelfOf(kind).namespaces.get(namespace)?.objects.get(name),

    /** Ordered by namespace and name, as the real server lists. */
    list: (kind: Kind, namespace?: string): KubeObject[] => {
      const { namespaces } = shelfOf(kind);
      const chosen = namespace === undefined ? [...namespaces.keys()].sort() : [namespace];
      return chosen.flatMap((one) => {
        const room = namespaces.get(one);
        if (room === undefined) return [];
        room.names ??= [...room.objects.keys()].sort();
        return room.names.map((name) => room.objects.get(name) as KubeObject);
      });
    },

    /** Stores an object under its name with the next version; an equal one changes nothing. */
    put: (kind: Kind, object: KubeObject): KubeObject => {
      const shelf = shelfOf(kind);
      const namespace = object.metadata.namespace ?? '';
      const room = shelf.namespaces.get(namespace) ?? {
        objects: new Map<string, KubeObject>(),
        names: undefined,
      };
      const before = room.objects.get(object.metadata.name);
      if (before !== undefined && sameJson(before, object)) return before;
      const stored = stamped(object);
      if (before === undefined) room.names = undefined;
      room.objects.set(object.metadata.name, stored);
      shelf.namespaces.set(namespace, room);
      const change = { version, type: before === undefined ? 'ADDED' : 'MODIFIED', object: stored } as const;
      record(shelf, before === undefined ? change : { ...change, before });
      return stored;
    },

    /** The event carries a new version: a client that stored the old one would resume in the past. */
    remove: (kind: Kind, object: KubeObject): KubeObject => {
      const shelf = shelfOf(kind);
      const namespace = object.metadata.namespace ?? '';
      const room = shelf.namespaces.get(namespace);
      const before = room?.objects.get(object.metadata.name);
      if (room?.objects.delete(object.metadata.name) === true) room.names = undefined;
      if (room?.objects.size === 0) shelf.namespaces.delete(namespace);
      const last = stamped(object);
      record(shelf, { version, type: 'DELETED', object: last, before: before ?? object });
      return last;
    },

    /** Changes after a version, oldest first; undefined when the history does not reach that far. */
    changesAfter: (kind: Kind, after: number, limit: number): readonly Change[] | undefined => {
      const shelf = shelves.get(resourceName(kind));
      if (shelf === undefined || after < shelf.oldest) return undefined;
      const { history } = shelf;
      let low = 0;
      let high = history.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if ((history[middle]?.version ?? 0) <= after) low = middle + 1;
        else high = middle;
      }
      return history.slice(low, low + limit);
    },

    /** Called after each change of the kind, until the returned function is called. */
    listen: (kind: Kind, listener: () => void): (() => void) => {
      const { listeners } = shelfOf(kind);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    /** Called with each change of anything: the controllers inside the server. */
    observe: (observer: (kind: Kind, change: Change) => void): (() => void) => {
      observers.add(observer);
      return () => void observers.delete(observer);
    },

    /** Forgets all history: watches that start from any earlier version meet a 410. */
    compact: (): void => {
      version += 1;
      for (const shelf of shelves.values()) {
        shelf.history = [];
        shelf.oldest = version;
      }
    },
  };
};
