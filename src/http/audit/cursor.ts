import type { RequestHash } from '../../app/commands/request-hash.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject } from '../../domain/json-tools.ts';
import { invalid, type ApiError } from '../errors.ts';
import type { Reach } from './access.ts';

export type Place = {
  /** Leaf behind which it goes on, in the order of the list. */
  readonly after: number;
  /** Leaves that there were when the first page was asked for: all pages are of one moment. */
  readonly below: number;
};

/**
 * Cursors are signed, and good for one question over one set of tenants only: a cursor that travelled shows nobody
 * anything, and none can be made up.
 */
export type Cursors = {
  readonly write: (place: Place, tenants: Reach['tenants'], filter: JsonObject) => string;
  /** Throws ApiError 400 that says what it does not belong to. */
  readonly read: (cursor: string, tenants: Reach['tenants'], filter: JsonObject) => Place;
};

export const createCursors = (requestHash: RequestHash): Cursors => {
  const mac = (what: string, body: JsonValue): string =>
    requestHash({ method: 'cursor', route: what, body }).slice(0, 32);
  const tenantsMac = (tenants: Reach['tenants']): string =>
    mac('tenants', tenants === 'all' ? 'all' : tenants.toSorted());
  const placeMac = (...parts: readonly JsonValue[]): string => mac('place', [...parts]);

  return {
    write: ({ after, below }, tenants, filter) => {
      const [t, f] = [tenantsMac(tenants), mac('filter', filter)];
      return Buffer.from(JSON.stringify({ after, below, t, f, m: placeMac(after, below, t, f) })).toString(
        'base64url',
      );
    },
    read: (cursor, tenants, filter) => {
      const { after, below, t, f, m } = parsed(cursor);
      if (!Number.isSafeInteger(after) || !Number.isSafeInteger(below)) throw unreadable();
      if (m !== placeMac(after as number, below as number, t ?? null, f ?? null)) throw unreadable();
      if (t !== tenantsMac(tenants))
        throw refused('this cursor belongs to a list over other tenants; begin without a cursor');
      if (f !== mac('filter', filter))
        throw refused('this cursor belongs to another query; repeat that query, or begin without a cursor');
      return { after: after as number, below: below as number };
    },
  };
};

const parsed = (cursor: string): JsonObject => {
  try {
    const value = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch {
    // said below
  }
  throw unreadable();
};

const refused = (message: string): ApiError => invalid(message, 'cursor', 'CURSOR_MISMATCH');
const unreadable = (): ApiError =>
  invalid("'cursor' is not one that this service gave", 'cursor', 'CURSOR_INVALID');
