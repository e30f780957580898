import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, stat } from 'node:fs/promises';
import type { ApiClient } from '../api-client.ts';

/** A file that came whole is not what the service said it was. */
export class WrongDigest extends Error {
  override readonly name = 'WrongDigest';
}

/** Times that a download which breaks off is resumed without having come further. */
const MOST_TRIES = 5;

/**
 * Fetches a file to `target`; what is there of an earlier try (`<target>.part`) is not fetched again. Throws WrongDigest.
 */
export const download = async (
  api: Pick<ApiClient, 'bytes'>,
  path: string,
  target: string,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): Promise<void> => {
  const part = `${target}.part`;
  let have = Math.min(bytes, await sizeOf(part));
  for (let tries = 0; have < bytes; ) {
    const before = have;
    try {
      have = await fetchFrom(api, path, part, have, `"sha256-${sha256}"`);
    } catch (error) {
      have = await sizeOf(part);
      tries = have > before ? 0 : tries + 1;
      if (tries >= MOST_TRIES) throw error;
    }
  }
  if ((await digestOf(part)) !== sha256) {
    await (await open(part, 'w')).close();
    throw new WrongDigest('the file is not the one that was exported; it is fetched anew the next time');
  }
  await rename(part, target);
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
  const file = await open(part, at === 0 ? 'w' : 'r+', 0o600);
  let end = at;
  try {
    for await (const chunk of response.body ?? []) {
      await file.write(chunk, 0, chunk.length, end);
      end += chunk.length;
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return end;
};

const sizeOf = async (file: string): Promise<number> => (await stat(file).catch(() => undefined))?.size ?? 0;

const digestOf = async (file: string): Promise<string> => {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return hash.digest('hex');
};
