import { invalid, mustNotBeEmpty } from '../errors.ts';
import { wholeNumber } from '../ledger/query.ts';

/** What a query may name, and what is answered without each; `NEEDED`: nothing is. */
export type Parameters = { readonly [name: string]: string };
export const NEEDED = '';

/** Refuses what nobody would read: a condition that is misspelt, or empty, would be a wider answer. Throws ApiError 400. */
export const assertKnownParameters = (query: URLSearchParams, known: Parameters): void => {
  const names = Object.keys(known);
  const unknown = [...query.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const name = unknown.slice(0, 100);
    const what = names.length === 0 ? 'this route has none' : `there are ${names.join(', ')}`;
    throw invalid(`there is no query parameter '${name}'; ${what}`, name);
  }
  for (const [name, without] of Object.entries(known))
    if (without !== NEEDED && query.getAll(name).includes('')) throw emptyParameter(name, without);
};

export const emptyParameter = (name: string, without: string) =>
  mustNotBeEmpty(`query parameter '${name}'`, name, without);

export const limitIn = (query: URLSearchParams, fallback: number, most: number): number =>
  wholeNumber(query, 'limit', fallback, most, 1);
