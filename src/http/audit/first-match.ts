import type { AuditLeaf } from '../../app/audit/tree.ts';
import type { AuditQuery } from '../../projections/audit/find.ts';
import { ApiError } from '../errors.ts';
import { breathe } from '../ledger/query.ts';
import type { AuditServices } from './services.ts';

/** Pages that are looked at for one leaf, a few milliseconds each. */
const MOST_PAGES = 500;

/**
 * The first leaf that fits; undefined: none does. The work for one page is bounded, so that one without a leaf says nothing
 * yet: others have the thread, and it is gone on. Throws ApiError 503 where one call cannot tell.
 */
export const firstFound = async (
  query: Omit<AuditQuery, 'limit' | 'after'>,
  { reader }: { readonly reader: Pick<AuditServices['reader'], 'find'> },
  signal: AbortSignal,
): Promise<AuditLeaf | undefined> => {
  let after = -1;
  for (let looked = 0; looked < MOST_PAGES; looked += 1) {
    const { leaves, next } = reader.find({ ...query, after, limit: 1 });
    if (leaves[0] !== undefined || next === undefined) return leaves[0];
    after = next;
    await breathe();
    signal.throwIfAborted();
  }
  throw new ApiError(
    'UNAVAILABLE',
    'the search through all the history that you may read takes longer than one call may; ' +
      'search fewer tenants, or use other names',
    { reason: 'SEARCH_TOO_LONG', retryAfterSeconds: 5 },
  );
};
