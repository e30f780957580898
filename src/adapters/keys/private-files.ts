import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { link, open, readFile, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeDirectory } from '../../app/deployment/make-directory.ts';

/** Files that only this user may read, written so that a crash leaves either the old or the new content. */
export class UnsafePermissions extends Error {
  override readonly name = 'UnsafePermissions';
  constructor(path: string, mode: number, wanted: string) {
    super(
      `${path} can be read by others (mode ${(mode & 0o777).toString(8).padStart(4, '0')}); ` +
        `run: chmod ${wanted} '${path}'`,
    );
  }
}

/** Creates the directory with mode 0700; throws UnsafePermissions when it exists with wider ones. */
export const privateDirectory = async (path: string): Promise<void> => {
  await makeDirectory(path);
  const { mode } = await stat(path);
  if ((mode & 0o077) !== 0) throw new UnsafePermissions(path, mode, '0700');
};

/** Undefined when there is no such file; throws UnsafePermissions when others may read it. */
export const readPrivate = async (path: string): Promise<Buffer | undefined> => {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) throw new UnsafePermissions(path, mode, '0600');
    return await readFile(path);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
};

/** Replaces the file: a reader sees the old or the new content, also after a power loss. */
export const writePrivate = async (path: string, content: string | Uint8Array): Promise<void> => {
  const temporary = await writeTemporary(path, content);
  await rename(temporary, path);
  await syncDirectory(dirname(path));
};

/** Creates the file unless it exists; false when it did. Two processes at once: exactly one creates it. */
export const createPrivate = async (path: string, content: string | Uint8Array): Promise<boolean> => {
  const temporary = await writeTemporary(path, content);
  try {
    await link(temporary, path);
    await syncDirectory(dirname(path));
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
};

/** Removes the file, durably; nothing happens when there is none. */
export const removeFile = async (path: string): Promise<void> => {
  try {
    await unlink(path);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  await syncDirectory(dirname(path));
};

/** Overwrites the content before removing it; on journalling or flash storage that alone proves nothing. */
export const destroyFile = async (path: string): Promise<void> => {
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(path, constants.O_WRONLY);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  try {
    const { size } = await file.stat();
    await file.write(randomBytes(size), 0, size, 0);
    await file.sync();
  } finally {
    await file.close();
  }
  await removeFile(path);
};

export const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && 'code' in error && error.code === code;

/** Names of files being written begin with this; a crash may leave one behind. */
const TEMPORARY = '.new-';
/** Milliseconds after which nobody can still be writing one. */
const STALE_MS = 60_000;

/**
 * Removes what a crash left half written: it may hold a key that was destroyed since.
 */
export const removeStaleTemporaries = async (directory: string): Promise<void> => {
  for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !entry.name.startsWith(TEMPORARY)) continue;
    const path = join(entry.parentPath, entry.name);
    try {
      const { mtimeMs } = await stat(path);
      if (Date.now() - mtimeMs > STALE_MS) await destroyFile(path);
    } catch (error) {
      // Whoever wrote it has just finished.
      if (!isCode(error, 'ENOENT')) throw error;
    }
  }
};

const writeTemporary = async (path: string, content: string | Uint8Array): Promise<string> => {
  const temporary = join(dirname(path), `${TEMPORARY}${randomBytes(8).toString('hex')}`);
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  return temporary;
};

const syncDirectory = async (path: string): Promise<void> => {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
};
