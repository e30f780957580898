import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory, and those above it that are missing; one that is there is left as it is. Level by level, since Node's
 * own `recursive` never ends, and cannot be interrupted, where the system says of a directory that is there that it is not
 * when something is to be made in it, as in `/proc`. Throws what the file system says.
 */
export const makeDirectory = async (path: string, mode = 0o700): Promise<void> => {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && (await isDirectory(path))) return;
    const above = dirname(path);
    if (code !== 'ENOENT' || above === path) throw error;
    if (!(await isDirectory(above))) await makeDirectory(above, mode);
    // Another process may have made either of them meanwhile: what is said now is true.
    await mkdir(path, { mode }).catch(async (again: unknown) => {
      if (!(await isDirectory(path))) throw again;
    });
  }
};

const isDirectory = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
};
