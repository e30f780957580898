import { invalid } from '../errors.ts';
import { onlyOne } from '../osac/query.ts';

/** A whole number of a query. Throws ApiError 400 that names the parameter and its bounds. */
export const wholeNumber = (
  query: URLSearchParams,
  name: string,
  fallback: number,
  most: number,
  least = 0,
): number => {
  const text = onlyOne(query, name);
  if (text === null || text === '') return fallback;
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw invalid(`query parameter '${name}' must be a whole number from ${least} to ${most}`, name);
  return value;
};

export const flag = (query: URLSearchParams, name: string): boolean => {
  const text = onlyOne(query, name);
  if (text === null || text === 'false' || text === '') return false;
  if (text === 'true') return true;
  throw invalid(`query parameter '${name}' must be true or false`, name);
};

/** Lets other requests run: a long loop on the HTTP thread calls it every so many steps (design §5, Threads). */
export const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
