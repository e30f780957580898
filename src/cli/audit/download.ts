import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import type { ApiClient } from '../api-client.ts';
import { CliFailure, EXIT, exitStatusOf } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';
import { partOf } from './target.ts';

/** Times that a download which breaks off is resumed without having come further. */
const MOST_TRIES = 5;

export type Wanted = { readonly bytes: number; readonly sha256: string };

/**
 * Fetches a file to `target`; what is there of an earlier try (`<target>.part`) is not fetched again, unless it is of
 * another file.
 *
 * @throws Error for another file, CliFailure for what cannot be written or does not come, with what is kept.
 */
export const download = async (
  api: Pick<ApiClient, 'bytes'>,
  path: string,
  target: string,
  wanted: Wanted,
): Promise<void> => {
  const part = partOf(target);
  const resumed = (await sizeOf(part)) > 0;
  try {
    await fill(api, path, part, wanted);
    // What lay there may have been of another export.
    if (resumed && (await digestOf(part)) !== wanted.sha256) {
      await rm(part, { force: true });
      await fill(api, path, part, wanted);
    }
  } catch (error) {
    throw await brokenOff(error, part, wanted);
  }
  if ((await digestOf(part)) !== wanted.sha256) {
    await rm(part, { force: true });
    throw new Error('the file is not the one that was exported; run the command again to fetch it');
  }
  await writing(target, () => rename(part, target));
};

const fill = async (
  api: Pick<ApiClient, 'bytes'>,
  path: string,
  part: string,
  { bytes, sha256 }: Wanted,
): Promise<void> => {
  let have = Math.min(bytes, await sizeOf(part));
  for (let tries = 0; have < bytes; ) {
    const before = have;
    try {
      have = await fetchFrom(api, path, part, have, `"sha256-${sha256}"`);
    } catch (error) {
      // The disk will not be another one in a moment.
      if (error instanceof CliFailure) throw error;
      have = await sizeOf(part);
      tries = have > before ? 0 : tries + 1;
      if (tries >= MOST_TRIES) throw error;
    }
  }
};

/** Nothing is left of a download of which nothing came; of another one it is said what is there, and that it counts. */
const brokenOff = async (error: unknown, part: string, { bytes }: Wanted): Promise<CliFailure> => {
  const have = await sizeOf(part);
  if (have === 0) await rm(part, { force: true }).catch(() => undefined);
  const kept =
    have === 0 ? 'nothing of the file has come' : `${part} keeps the first ${have} of ${bytes} bytes`;
  const why = error instanceof Error ? error.message : String(error);
  const status = error instanceof CliFailure ? EXIT.failed : exitStatusOf(error);
  return new CliFailure(status, `${why}; ${kept}`, { cause: error });
};

const fetchFrom = async (
  api: Pick<ApiClient, 'bytes'>,
  path: string,
  part: string,
  from: number,
  etag: string,
): Promise<number> => {
  const response = await api.bytes(path, from === 0 ? {} : { range: `bytes=${from}-`, 'if-range': etag });
  // Another file than before comes whole.
  const at = response.status === 206 ? from : 0;
  const file = await writing(part, () => open(part, at === 0 ? 'w' : 'r+', 0o600));
  let end = at;
  try {
    for await (const chunk of response.body ?? []) {
      await writing(part, () => writeAll(file, chunk, end));
      end += chunk.length;
    }
    await writing(part, () => synced(file));
  } finally {
    await file.close();
  }
  return end;
};

/** A write may take less than it was given: of the rest the next one tells why. */
const writeAll = async (file: FileHandle, chunk: Uint8Array, at: number): Promise<void> => {
  for (let done = 0; done < chunk.length; )
    done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
};

/** Devices and some network file systems know no sync: what they have taken they have. */
const synced = async (file: FileHandle): Promise<void> => {
  try {
    await file.sync();
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
};

const writing = async <T>(file: string, run: () => Promise<T>): Promise<T> => {
  try {
    return await run();
  } catch (error) {
    throw fileFailure(error, `cannot write ${file}`, EXIT.failed);
  }
};

const sizeOf = async (file: string): Promise<number> => {
  const there = await stat(file).catch(() => undefined);
  return there?.isFile() === true ? there.size : 0;
};

const digestOf = async (file: string): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
};
