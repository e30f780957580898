import { user } from '../../domain/kinds.ts';
import { ApiError } from '../errors.ts';
import { breathe } from '../ledger/query.ts';
import { AUDIT_VIEW, type AuditServices } from './services.ts';

/** Tenants that are read at once. */
const PAGE = 100;
/** Milliseconds of the thread until others get it. */
const SLICE_MS = 5;

type Known = Pick<AuditServices, 'reader' | 'resources' | 'store' | 'waitFor' | 'clock'>;

/** Waits until the audit view knows everything that was stored. Throws ApiError 503 where that takes too long. */
export const takenIn = async (
  { store, waitFor }: Pick<AuditServices, 'store' | 'waitFor'>,
  signal: AbortSignal,
): Promise<void> => {
  const last = await store.lastPosition(signal);
  if (last !== undefined && !(await waitFor(AUDIT_VIEW, last, { timeoutMs: 5_000 })))
    throw new ApiError('UNAVAILABLE', 'this instance has not taken in the latest events yet; try again', {
      reason: 'POSITION_NOT_REACHED',
      retryAfterSeconds: 1,
    });
};

/**
 * All tenants in whose history a subject appears, the one that was named first: a hold over any of them keeps the key, which
 * is one for all. The named one may not be said wrongly: it is that of the User, or, of somebody who is none, one in which
 * the subject has acted. Throws ApiError 404, or 503 when this instance has not taken in yet what was stored.
 */
export const tenantsOfSubject = async (
  subjectId: string,
  named: string,
  { reader, resources, store, waitFor, clock }: Known,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  await takenIn({ store, waitFor }, signal);
  let since = clock.monotonicMs();
  const rest = async (): Promise<void> => {
    if (clock.monotonicMs() - since < SLICE_MS) return;
    await breathe();
    signal.throwIfAborted();
    since = clock.monotonicMs();
  };
  const actedIn = async (tenant: string): Promise<boolean> => {
    for (let after = -1; ; ) {
      const { leaves, next } = reader.find({ tenants: [tenant], subject: subjectId, after, limit: 1 });
      await rest();
      if (leaves.length > 0) return true;
      // The work of one look is bounded: it may have found nothing yet.
      if (next === undefined) return false;
      after = next;
    }
  };

  const known = resources.get(user.kind, subjectId, { all: true });
  if (known === undefined ? !(await actedIn(named)) : known.tenant !== named) throw subjectNotFound();
  const all = new Set([named]);
  for (let after = 0; ; ) {
    const page = reader.tenants(after, PAGE);
    for (const { tenant } of page) if (tenant !== '' && (await actedIn(tenant))) all.add(tenant);
    const next = page.at(-1);
    if (next === undefined) return [...all];
    after = next.tree;
  }
};

const subjectNotFound = (): ApiError =>
  new ApiError('NOT_FOUND', 'this tenant has no such subject: nothing was erased', {
    reason: 'SUBJECT_NOT_FOUND',
    violations: [{ field: 'subject_id', description: 'this tenant has no such subject' }],
  });
