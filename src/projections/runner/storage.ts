import { DatabaseSync } from 'node:sqlite';
import type { View } from '../view.ts';
import { syncFile, viewFiles } from './pointer.ts';
import { MEMORY, openSnapshot, openViewFile } from './view-file.ts';

/** Where the copies of one view are kept: files of a directory, or memory for specs and the simulation. */
export type Storage = {
  /** The copy to go on with, if there is one of this view, version, settings and log. Leftovers are removed. */
  readonly current: () => string | undefined;
  /** Name of a copy that does not exist yet. */
  readonly next: () => string;
  /** From now on this is the copy that is read, also after a restart. */
  readonly point: (copy: string) => void;
  readonly remove: (copy: string) => Promise<void>;
  /** Opens a copy for writing while others may read it. */
  readonly open: (copy: string) => DatabaseSync;
  /** Creates or opens a copy that nobody reads yet, for building it fast; `seal` it before it is pointed at. */
  readonly build: (copy: string) => DatabaseSync;
  /** Closes what `build` gave and syncs it to the disk, which may take a while: never on the HTTP thread. */
  readonly seal: (copy: string, db: DatabaseSync) => void;
  /** What readers see as long as there is no copy: the view's tables without a row. */
  readonly blank: () => DatabaseSync;
  /** Closes what `open` gave. */
  readonly close: (copy: string, db: DatabaseSync) => void;
  /** The copy as it is now, to be closed by the caller. */
  readonly snapshot: (copy: string) => DatabaseSync;
  /** What a reader opens: a path, or in memory the one connection there is. */
  readonly readable: (copy: string) => string | DatabaseSync;
};

export const fileStorage = (dir: string, view: View, storeId: string): Storage => {
  const files = viewFiles(dir, view, storeId);
  return {
    ...files,
    open: (path) => openViewFile(path, view, storeId),
    build: (path) => openViewFile(path, view, storeId, 'building'),
    seal: (path, db) => {
      db.close();
      syncFile(path);
    },
    blank: () => openViewFile(MEMORY, view, storeId),
    close: (_path, db) => db.close(),
    snapshot: openSnapshot,
    readable: (path) => path,
  };
};

export const memoryStorage = (view: View, storeId: string): Storage => {
  const copies = new Map<string, DatabaseSync>();
  let number = 0;
  const find = (copy: string): DatabaseSync => {
    const found = copies.get(copy) ?? openViewFile(MEMORY, view, storeId);
    copies.set(copy, found);
    return found;
  };
  return {
    current: () => undefined,
    next: () => {
      number += 1;
      return `${view.name}-v${view.version}-${number}`;
    },
    point: () => {},
    remove: async (copy) => {
      copies.get(copy)?.close();
      copies.delete(copy);
    },
    open: find,
    build: find,
    seal: () => {},
    blank: () => openViewFile(MEMORY, view, storeId),
    close: () => {}, // the one connection stays open for reads until the copy is removed
    snapshot: (copy) => {
      const clone = new DatabaseSync(MEMORY);
      clone.deserialize(find(copy).serialize());
      return clone;
    },
    readable: find,
  };
};
