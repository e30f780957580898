import { open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join, posix, relative, sep } from 'node:path';
import { FILES } from '../../app/audit/bundle/format.ts';
import type { MirrorStore } from '../../app/audit/bundle/mirror.ts';
import { KEYS_FILE } from '../../app/audit/bundle/tile-log.ts';
import { MOST_BUNDLE_BYTES, parseTilePath, TILE_WIDTH } from '../../app/audit/merkle/tiles.ts';
import { makeDirectory } from '../../app/deployment/make-directory.ts';
import { EXIT } from '../exit.ts';
import { fileFailure, isFileError } from '../file-errors.ts';

const TILES = 'tile';
/** As the umask of the user has it: tiles are often served to others from where they lie. */
const READABLE = 0o777;

/** Files of a mirror in a directory; see `MirrorStore`. Whoever may write there may have put anything into it. */
export const tileDirectory = (
  directory: string,
): MirrorStore & { readonly holds: (folder: string) => Promise<boolean> } => {
  const pathOf = (path: string): string => join(directory, ...path.split('/'));
  const tiles = join(directory, TILES);
  return {
    read: (path) => readBounded(pathOf(path)),
    holds: (folder) =>
      readdir(pathOf(folder)).then(
        (names) => names.length > 0,
        (error: unknown) => {
          if (isFileError(error) && NO_FILE.includes(error.code)) return false;
          throw error;
        },
      ),
    write: async (path, bytes) => {
      const target = pathOf(path);
      const fresh = `${target}.new`;
      try {
        await makeDirectory(dirname(target), READABLE);
        // Whatever stands there, a link to something else too, is not written into.
        await rm(fresh, { force: true });
        const file = await open(fresh, 'wx');
        try {
          await file.writeFile(bytes);
          // A tile that a power cut leaves empty is fetched anew; beside an empty head the mirror could not go on.
          if (!path.startsWith(`${TILES}/`)) await file.sync();
        } finally {
          await file.close();
        }
        await rename(fresh, target);
      } catch (error) {
        await rm(fresh, { force: true }).catch(() => undefined);
        throw fileFailure(error, `cannot write ${target}`, EXIT.failed);
      }
    },
    partial: async () => {
      const entries = await readdir(tiles, { recursive: true, withFileTypes: true }).catch(
        (error: unknown) => {
          // Of a log without events there are none.
          if (isFileError(error) && error.code === 'ENOENT') return [];
          throw error;
        },
      );
      return entries
        .filter((entry) => entry.isFile())
        .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join(posix.sep))
        .filter((path) => (parseTilePath(path)?.width ?? TILE_WIDTH) < TILE_WIDTH);
    },
    remove: async (path) => {
      await rm(pathOf(path), { force: true });
      // The folder of the partial tiles of one index, unless others are there.
      await rmdir(dirname(pathOf(path))).catch(() => undefined);
    },
  };
};

/** What else may stand where a file is looked for. */
const NO_FILE: readonly string[] = ['ENOENT', 'ENOTDIR', 'EISDIR'];

/** At most as many bytes as the largest file of a mirror has, and one more; undefined when there is no file. */
const readBounded = async (path: string): Promise<Uint8Array | undefined> => {
  try {
    // Opening a pipe would wait for who writes into it.
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    const file = await open(path, 'r');
    try {
      const bytes = Buffer.alloc(Math.min(found.size, MOST_BUNDLE_BYTES + 1));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytes.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isFileError(error) && NO_FILE.includes(error.code)) return undefined;
    throw error;
  }
};

/** What a directory is to a mirror: its own, empty (or not there yet), or full of other things. */
export const mirrorAt = async (directory: string): Promise<'mirror' | 'empty' | 'other'> => {
  const names: readonly string[] = await readdir(directory).catch((error: unknown) => {
    if (isFileError(error) && error.code === 'ENOENT') return [];
    throw fileFailure(error, `cannot read ${directory}`);
  });
  if (names.length === 0) return 'empty';
  return names.some((name) => [FILES.checkpoint, KEYS_FILE, TILES].includes(name)) ? 'mirror' : 'other';
};
