import { createReadStream } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { extract, type Entry } from 'tar-stream';
import { FILES, type BundleSource } from '../../app/audit/bundle/format.ts';
import { NotABundle } from '../../app/audit/bundle/reading.ts';
import { messageFor } from '../file-errors.ts';

const CHUNK = 256 * 1024;

/** A bundle in a directory or in a tar. Throws when there is neither. */
export const openBundle = async (path: string): Promise<BundleSource> =>
  (await stat(path)).isDirectory() ? directorySource(path) : tarSource(path);

const directorySource = (directory: string): BundleSource => ({
  names: async () => {
    const top = await readdir(directory);
    // Whatever it is, it is not read to its depths: somebody's home is no bundle.
    if (!top.some((name) => BUNDLE_FILES.includes(name))) return top;
    const entries = await readdir(directory, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => {
        const name = relative(directory, join(entry.parentPath, entry.name)).split(sep).join(posix.sep);
        return entry.isFile() ? name : noFile(name);
      })
      .sort();
  },
  read: (name) => createReadStream(join(directory, ...name.split('/')), { highWaterMark: CHUNK }),
});

/** What it leads to, or who writes into it, is not part of the export; a pipe or a device may never end. */
const noFile = (name: string): never => {
  throw new Error(`${name} is not a file: it is a link, a pipe or a device`);
};

/** Without the one that whoever works in a folder has there, too. */
const BUNDLE_FILES: readonly string[] = Object.values(FILES).filter((name) => name !== FILES.trust);

/** Bytes of small files that are kept from the first reading of a tar, each and together. */
const SMALL = 4 * 1024 * 1024;
const MOST_KEPT = 32 * 1024 * 1024;

/**
 * A tar has no directory: it is read once for the names, when small files are kept, and once more for each large
 * one, of which nothing is held. So it may have any size and order.
 */
const tarSource = (file: string): BundleSource => {
  const kept = new Map<string, Buffer>();
  let held = 0;
  const keep = async (name: string, entry: Entry): Promise<void> => {
    const { size = 0 } = entry.header;
    if (size > SMALL || held + size > MOST_KEPT || kept.has(name)) {
      entry.resume();
      return;
    }
    held += size;
    kept.set(name, await buffer(entry));
  };
  return {
    names: async () => {
      await assertTar(file);
      const names: string[] = [];
      let odd: string | undefined;
      try {
        for await (const entry of entriesOf(file)) {
          const name = plainName(entry.header.name);
          const { type } = entry.header;
          if (type === 'directory') entry.resume();
          else {
            if (type !== 'file' && type !== 'contiguous-file') odd ??= name;
            names.push(name);
            await keep(name, entry);
          }
        }
      } catch (error) {
        throw new Error(`the tar ${file} is damaged: ${messageFor(error)}`, { cause: error });
      }
      return odd === undefined ? names : noFile(odd);
    },
    read: async function* (name) {
      const known = kept.get(name);
      if (known !== undefined) {
        yield known;
        return;
      }
      for await (const entry of entriesOf(file)) {
        if (plainName(entry.header.name) === name) {
          for await (const chunk of entry) yield chunk as Uint8Array;
          return;
        }
        entry.resume();
      }
      throw new Error('the archive does not hold this file');
    },
  };
};

const BLOCK = 512;
/** Where the first header of a tar says that it is one. */
const MAGIC_AT = 257;

/** Throws NotABundle for a file that never was a tar. What is a damaged one shows when it is read. */
const assertTar = async (path: string): Promise<void> => {
  // It is read more than once; opening a pipe would wait for who writes into it.
  if (!(await stat(path)).isFile()) throw new NotABundle('it is neither a file nor a directory');
  const file = await open(path);
  try {
    const { bytesRead, buffer: head } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, 0);
    if (bytesRead === 0) throw new NotABundle('the file is empty');
    if (head[0] === 0x1f && head[1] === 0x8b)
      throw new NotABundle('the file is compressed with gzip: unpack it first');
    const tar = bytesRead === BLOCK && head.toString('latin1', MAGIC_AT, MAGIC_AT + 5) === 'ustar';
    if (!tar) throw new NotABundle('the file is not a tar');
  } finally {
    await file.close();
  }
};

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
