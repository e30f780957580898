import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import { extract, type Entry } from 'tar-stream';
import type { BundleSource } from '../../app/audit/bundle/format.ts';

const CHUNK = 256 * 1024;

/** A bundle in a directory or in a tar. Throws when there is neither. */
export const openBundle = async (path: string): Promise<BundleSource> =>
  (await stat(path)).isDirectory() ? directorySource(path) : tarSource(path);

const directorySource = (directory: string): BundleSource => ({
  names: async () => {
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join(posix.sep))
      .sort();
  },
  read: (name) => createReadStream(join(directory, ...name.split('/')), { highWaterMark: CHUNK }),
});

/** The tar is read anew for each file: nothing of it is held, whatever its size and order. */
const tarSource = (file: string): BundleSource => ({
  names: async () => {
    const names: string[] = [];
    for await (const entry of entriesOf(file)) {
      if (entry.header.type !== 'directory') names.push(plainName(entry.header.name));
      entry.resume();
    }
    return names;
  },
  read: async function* (name) {
    for await (const entry of entriesOf(file)) {
      if (plainName(entry.header.name) === name) {
        for await (const chunk of entry) yield chunk as Uint8Array;
        return;
      }
      entry.resume();
    }
    throw new Error('the archive does not hold this file');
  },
});

/** As other tools write it: `./proofs.json`. */
const plainName = (name: string): string => name.replace(/^(\.\/)+/, '');

async function* entriesOf(file: string): AsyncGenerator<Entry> {
  const bytes = createReadStream(file, { highWaterMark: CHUNK });
  const entries = extract();
  bytes.on('error', (error) => entries.destroy(error));
  try {
    yield* bytes.pipe(entries);
  } finally {
    // Whoever has found a file reads no further.
    bytes.destroy();
    entries.destroy();
  }
}
