import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join, posix, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BundleSink } from '../../app/audit/bundle/format.ts';

/** Export bundles are readable by the service alone: they hold what auditors may see. */
const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

/** Writes a bundle to a directory, which is made. What is closed is on the disk. */
export const directorySink = (directory: string): BundleSink => ({
  file: async (name) => {
    const path = join(directory, ...name.split('/'));
    await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
    const handle = await open(path, 'w', FILE_MODE);
    return {
      write: async (bytes) => {
        for (let at = 0; at < bytes.length; ) at += (await handle.write(bytes, at)).bytesWritten;
      },
      close: async () => {
        try {
          await handle.sync();
        } finally {
          await handle.close();
        }
      },
    };
  },
});

/** Names of all files of a directory, with `/`, in one order on every machine. */
const filesOf = async (directory: string): Promise<string[]> => {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join(posix.sep))
    .sort();
};

/**
 * A directory as one tar (ustar), the same bytes each time, so that a download can be resumed. The small files come
 * first, as whoever reads a stream needs them.
 */
export const tarOf = async (directory: string): Promise<Readable> => {
  const sizes = await Promise.all(
    (await filesOf(directory)).map(async (name) => ({
      name,
      size: (await stat(join(directory, name))).size,
    })),
  );
  const { pack } = await import('tar-stream');
  const archive = pack();
  const fill = async (): Promise<void> => {
    for (const { name, size } of sizes.sort((left, right) => left.size - right.size)) {
      const entry = archive.entry({ name, size, mode: 0o644, mtime: new Date(0) });
      if (size === 0) entry.end();
      else await pipeline(createReadStream(join(directory, name)), entry);
    }
    archive.finalize();
  };
  fill().catch((error: unknown) =>
    archive.destroy(error instanceof Error ? error : new Error(String(error))),
  );
  return Readable.from(archive, { objectMode: false });
};
