import { keysIn, type TileLog } from '../../app/audit/bundle/tile-log.ts';
import { MOST_BUNDLE_BYTES } from '../../app/audit/merkle/tiles.ts';
import { ApiError, Unreachable, type ApiClient } from '../api-client.ts';

/** The tiles of a running service, of which nothing is believed. `prefix`: that of C2SP tlog-tiles. */
export const tilesOfService = async (
  api: Pick<ApiClient, 'text' | 'bytes'>,
  prefix: string,
): Promise<TileLog> => ({
  // The head first: the key that signed it is then among the keys, also where it has just been replaced.
  note: await api.text(`${prefix}/checkpoint`),
  keys: keysIn(await api.text(`${prefix}/trust.json?newest=true`)),
  read: async (path) => {
    try {
      return await bounded(await api.bytes(`${prefix}/${path}`));
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined;
      throw error;
    }
  },
});

/** No more than the largest file of a log has, and one more byte. */
const bounded = async ({ body }: Response): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  let held = 0;
  try {
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      held += chunk.length;
      if (held > MOST_BUNDLE_BYTES) break;
    }
  } catch (error) {
    throw new Unreachable('an answer of the service broke off; the tiles so far are kept: try again', {
      cause: error,
    });
  }
  return Buffer.concat(chunks).subarray(0, MOST_BUNDLE_BYTES + 1);
};
