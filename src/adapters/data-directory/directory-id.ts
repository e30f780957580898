import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The id by which a service knows its data directory again after a restart: made once and kept there. Call it while the
 * directory is locked. Throws what the file system says.
 */
export const directoryId = (dataDir: string): string => {
  const file = join(dataDir, 'directory.id');
  const kept = readKept(file);
  if (kept !== undefined) return kept;
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
