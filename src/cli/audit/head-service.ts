import type { HeadOptions } from '../../app/audit/bundle/head-check.ts';
import { keysIn } from '../../app/audit/bundle/tile-log.ts';
import { listAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, type ApiClient } from '../api-client.ts';

/**
 * What a running service is asked for to check a head that it has shown: of the answers nothing is believed. To be asked
 * behind the head, whose key is then among the keys, also where it has just been replaced. `prefix`: that of the audit API.
 */
export const headAskedOf = async (
  api: Pick<ApiClient, 'get' | 'text'>,
  prefix: string,
): Promise<Pick<HeadOptions, 'shipped' | 'between'>> => ({
  shipped: keysIn(await api.text(`${prefix}/trust.json?newest=true`)),
  between: betweenOf(api, prefix),
});

/** Asks a running service for the proof that the log of one size continues that of a smaller one. */
export const betweenOf =
  (api: Pick<ApiClient, 'get'>, prefix: string): NonNullable<HeadOptions['between']> =>
  async (from, to) => {
    try {
      const proof = await api.get<JsonObject>(`${prefix}/consistency?from=${from}&to=${to}`);
      return listAt(proof, 'path').map(String);
    } catch (error) {
      // Its tree is smaller, or it is too old to be asked: either way nothing is shown.
      if (error instanceof ApiError && [400, 404].includes(error.status)) return undefined;
      throw error;
    }
  };
