import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open as openFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BundleSink } from '../../app/audit/bundle/format.ts';
import type { ExportFiles } from '../../app/audit/exports/ports.ts';
import { directorySink, tarOf } from './bundle-files.ts';

/**
 * Exports in one directory: `<id>.wanted` while it is expected, `<id>.parts/` while it is made, `<id>.tar` when it is
 * there. Readable by the service alone.
 */
export const openExportFiles = async (directory: string): Promise<ExportFiles> => {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const at = (id: string, end: string): string => {
    if (!ID.test(id)) throw new TypeError('this is not the id of an export');
    return join(directory, `${id}.${end}`);
  };
  /** Files that an export which broke off has left open. */
  const open = new Map<string, Set<SinkFile>>();
  const clear = async (id: string): Promise<void> => {
    for (const file of open.get(id) ?? []) await file.close();
    open.delete(id);
    for (const end of ['parts', 'part']) await rm(at(id, end), { recursive: true, force: true });
  };

  return {
    expect: (id) => writeFile(at(id, 'wanted'), '', { mode: 0o600, flush: true }),
    list: async () => {
      const names = await readdir(directory);
      return [
        ...new Set(names.flatMap((name) => /^(.+)\.(wanted|parts|part|tar)$/.exec(name)?.[1] ?? [])),
      ].filter((id) => ID.test(id));
    },
    begin: async (id) => {
      await clear(id);
      await mkdir(at(id, 'parts'), { recursive: true, mode: 0o700 });
      const files = new Set<SinkFile>();
      open.set(id, files);
      return remembering(directorySink(at(id, 'parts')), files);
    },
    finish: async (id, signal) => {
      const digest = createHash('sha256');
      let bytes = 0;
      const counted = new Transform({
        transform: (chunk: Buffer, _encoding, done) => {
          digest.update(chunk);
          bytes += chunk.length;
          done(null, chunk);
        },
      });
      const file = createWriteStream(at(id, 'part'), { mode: 0o600, flush: true });
      await pipeline(await tarOf(at(id, 'parts')), counted, file, { signal });
      await rename(at(id, 'part'), at(id, 'tar'));
      await synced(directory);
      await clear(id);
      return { bytes, digest: digest.digest('hex') };
    },
    find: async (id) => {
      const path = at(id, 'tar');
      const found = await stat(path).catch(() => undefined);
      if (found === undefined) return undefined;
      return {
        bytes: found.size,
        // Both ends of a stream belong to it.
        read: (from, to) => (to <= from ? nothing() : createReadStream(path, { start: from, end: to - 1 })),
      };
    },
    forget: async (id) => {
      await clear(id);
      for (const end of ['tar', 'wanted']) await rm(at(id, end), { force: true });
    },
  };
};

type SinkFile = Awaited<ReturnType<BundleSink['file']>>;

/** Knows which files are open. */
const remembering = ({ file }: BundleSink, files: Set<SinkFile>): BundleSink => ({
  file: async (name) => {
    const opened = await file(name);
    files.add(opened);
    return {
      write: opened.write,
      close: async () => {
        files.delete(opened);
        await opened.close();
      },
    };
  },
});

const ID = /^[0-9a-f-]{36}$/;

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** So that the new name outlives a loss of power. */
const synced = async (directory: string): Promise<void> => {
  const handle = await openFile(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};
