import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

/**
 * The id by which a service knows its data directory again after a restart: an id made once and kept there, the host, and
 * the file that keeps it (device and inode). A copy has the kept id too, but another file, so that an instance on it does
 * not take the one on the original for its predecessor; a directory that was moved to another disk or host is a new one
 * as well. Call it while the directory is locked. Throws what the file system says.
 */
export const directoryId = (dataDir: string, host: string = hostname()): string => {
  const file = join(dataDir, 'directory.id');
  const kept = readKept(file) ?? make(file);
  const { dev, ino } = statSync(file, { bigint: true });
  return `${kept}@${host}:${dev}:${ino}`;
};

const make = (file: string): string => {
  const made = randomUUID();
  // Renamed into its place: a crash leaves the whole id or none.
  writeFileSync(`${file}.new`, `${made}\n`);
  renameSync(`${file}.new`, file);
  return made;
};

const readKept = (file: string): string | undefined => {
  try {
    const text = readFileSync(file, 'utf8').trim();
    return /^[0-9a-f-]{36}$/.test(text) ? text : undefined;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
};
