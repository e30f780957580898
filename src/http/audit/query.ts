import { invalid } from '../errors.ts';
import { wholeNumber } from '../ledger/query.ts';

/** Refuses what nobody would read: a misspelt condition would be a wider answer. Throws ApiError 400. */
export const assertKnownParameters = (query: URLSearchParams, known: readonly string[]): void => {
  const unknown = [...query.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const name = unknown.slice(0, 100);
  const what = known.length === 0 ? 'this route has none' : `there are ${known.join(', ')}`;
  throw invalid(`there is no query parameter '${name}'; ${what}`, name);
};

/** How many at most. Throws ApiError 400. */
export const limitIn = (query: URLSearchParams, fallback: number, most: number): number => {
  const limit = wholeNumber(query, 'limit', fallback, most);
  if (limit === 0) throw invalid(`query parameter 'limit' must be a whole number from 1 to ${most}`, 'limit');
  return limit;
};
