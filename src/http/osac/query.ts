import { invalid, mustNotBeEmpty } from '../errors.ts';
import type { Positions } from '../positions.ts';
import type { ExtraMessage, ListMessage, UpdateMessage } from './call.ts';

/** Query strings of OSAC's surfaces. Unknown parameters are ignored; bad values are 400. */
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
const INT32 = 2 ** 31;
const MAX_MASK_PATHS = 100;

/**
 * `offset`, `limit`, `filter` and `order` by OSAC's rules of lists; the last two as texts, since only the kind
 * knows its fields. Unknown parameters are ignored. Throws ApiError 400.
 */
export const readListQuery = (url: string): ListMessage => {
  if (!url.includes('?')) return { offset: 0, limit: DEFAULT_LIMIT };
  const query = queryOf(url);
  return {
    ...listMessage({
      offset: readInteger(query, 'offset'),
      limit: readInteger(query, 'limit'),
      filter: onlyOne(query, 'filter') ?? '',
      order: onlyOne(query, 'order') ?? '',
    }),
    ...readAsOf(query),
  };
};

/** The same of whole numbers and texts. Throws ApiError 400. */
export const listMessage = ({
  offset = 0,
  limit = DEFAULT_LIMIT,
  filter = '',
  order = '',
}: {
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
  readonly filter?: string | undefined;
  readonly order?: string | undefined;
}): ListMessage => {
  if (limit < 0) throw invalid(`limit must be a non-negative integer, but it is ${limit}`, 'limit');
  return {
    offset: Math.max(0, offset),
    limit: Math.min(limit, MAX_LIMIT),
    ...(filter.trim() === '' ? {} : { filter }),
    ...(order.trim() === '' ? {} : { order }),
  };
};

/** The moment of the past that a Get or List asks about: our own, so that it is not taken for none. Throws ApiError 400. */
export const readAsOf = (query: URLSearchParams): { readonly asOf?: string } => {
  const asOf = onlyOne(query, 'as_of');
  if (asOf === '') throw mustNotBeEmpty("query parameter 'as_of'", 'as_of', 'the present');
  return asOf === null ? {} : { asOf };
};

/** `limit` and `after` (a position) of what is told oldest first; throws ApiError 400. */
export const readPage = (url: string, positions: Positions): Omit<ExtraMessage, 'id'> => {
  if (!url.includes('?')) return { limit: MAX_LIMIT };
  const query = queryOf(url);
  const limit = readInteger(query, 'limit') ?? MAX_LIMIT;
  if (limit < 0) throw invalid(`limit must be a non-negative integer, but it is ${limit}`, 'limit');
  const after = onlyOne(query, 'after');
  return {
    limit: Math.min(limit, MAX_LIMIT),
    ...(after === null || after === '' ? {} : { after: positions.parse(after, 'after') }),
  };
};

/**
 * `update_mask` (or `updateMask`, as the gateway's JSON form has it) and `lock` of an update. A mask that is given
 * more than once is one mask; an empty one is none. Throws ApiError 400.
 */
export const readUpdateQuery = (url: string): Pick<UpdateMessage, 'updateMask' | 'lock'> => {
  const query = queryOf(url);
  const updateMask = [...query.getAll('update_mask'), ...query.getAll('updateMask')]
    .filter((text) => text.trim() !== '')
    .flatMap((text) => text.split(',').map((path) => path.trim()));
  return { ...maskOf(updateMask), lock: readBoolean(query, 'lock') };
};

/** A mask without paths is none. Throws ApiError 400. */
export const maskOf = (updateMask: readonly string[]): Pick<UpdateMessage, 'updateMask'> => {
  if (updateMask.length > MAX_MASK_PATHS)
    throw invalid(
      `an update mask may hold at most ${MAX_MASK_PATHS} paths, but it holds ${updateMask.length}`,
      'update_mask',
    );
  return updateMask.length === 0 ? {} : { updateMask };
};

export const queryOf = (url: string): URLSearchParams => {
  const at = url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
};

/** A parameter that may be given once; null when it is not. Which of two was meant cannot be known: throws ApiError 400. */
export const onlyOne = (query: URLSearchParams, name: string): string | null => {
  const [text = null, ...more] = query.getAll(name);
  if (more.length > 0) throw invalid(`query parameter '${name}' may be given once`, name);
  return text;
};

export const readInteger = (query: URLSearchParams, name: string): number | undefined => {
  const text = onlyOne(query, name);
  if (text === null || text === '') return undefined;
  const value = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= -INT32 && value < INT32))
    throw invalid(`parsing field "${name}": "${text.slice(0, 64)}" is not a whole number of 32 bits`, name);
  return value;
};

const readBoolean = (query: URLSearchParams, name: string): boolean => {
  const text = onlyOne(query, name);
  if (text === null || text === '' || text === 'false' || text === '0') return false;
  if (text === 'true' || text === '1') return true;
  throw invalid(`parsing field "${name}": "${text.slice(0, 64)}" is not true or false`, name);
};
