import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { View } from '../view.ts';
import { fitsView } from './view-file.ts';

/**
 * Which file of a view is read: `<view>.current` holds its name and is replaced by a rename, so that a crash leaves
 * either the old or the new name. Files are `<view>-v<version>-<n>.sqlite`; what nobody points at is a leftover.
 */
export type ViewFiles = {
  /** The file to go on with, if it was built by this version from this log. Everything else is removed. */
  readonly current: () => string | undefined;
  /** Path of a file that does not exist yet. */
  readonly next: () => string;
  readonly point: (path: string) => void;
  /** Removes a file with its WAL; no complaint when it is not there. Large ones take a while, so not on this thread. */
  readonly remove: (path: string) => Promise<void>;
};

export const viewFiles = (dir: string, view: View, storeId: string): ViewFiles => {
  mkdirSync(dir, { recursive: true });
  const pointer = join(dir, `${view.name}.current`);
  const pattern = new RegExp(`^${view.name}-v\\d+-(\\d+)\\.sqlite(-wal|-shm|-journal)?$`);
  let lastNumber = 0;

  const ours = (): RegExpMatchArray[] =>
    readdirSync(dir).flatMap((name) => {
      const match = pattern.exec(name);
      return match === null ? [] : [match];
    });
  const remove = async (path: string): Promise<void> => {
    for (const suffix of ['', '-wal', '-shm', '-journal']) await rm(`${path}${suffix}`, { force: true });
  };

  return {
    current: () => {
      const name = readPointer(pointer);
      const path = name !== undefined && pattern.test(name) ? join(dir, name) : undefined;
      const kept = path !== undefined && fitsView(path, view, storeId) ? path : undefined;
      for (const [file] of ours()) {
        if (kept === undefined || !join(dir, file).startsWith(kept)) rmSync(join(dir, file), { force: true });
      }
      rmSync(`${pointer}.new`, { force: true });
      return kept;
    },
    next: () => {
      const highest = Math.max(lastNumber, ...ours().map((match) => Number(match[1])));
      lastNumber = highest + 1;
      return join(dir, `${view.name}-v${view.version}-${lastNumber}.sqlite`);
    },
    point: (path) => {
      writeDurably(`${pointer}.new`, `${path.slice(path.lastIndexOf('/') + 1)}\n`);
      renameSync(`${pointer}.new`, pointer);
      syncFile(dir);
    },
    remove,
  };
};

const readPointer = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
};

const writeDurably = (path: string, text: string): void => {
  const file = openSync(path, 'w');
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/** Also of a directory: the rename in it is then on the disk. */
export const syncFile = (path: string): void => {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};
