import type { HoldScope } from '../../domain/audit/events.ts';
import { user } from '../../domain/kinds.ts';
import { streamName } from '../../domain/stream-name.ts';
import { SYSTEM_SUBJECT } from '../../app/log/metadata.ts';
import { ApiError, notReached } from '../errors.ts';
import { breathe } from '../ledger/query.ts';
import { AUDIT_VIEW, type AuditServices } from './services.ts';

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
    throw notReached('this instance has not taken in the latest events yet; try again');
};

type ActedIn = (subjectId: string, tenants: 'all' | readonly string[]) => Promise<boolean>;

/** Whether a subject has acted in the history of tenants. Lets others have the thread in between. */
const createActedIn = ({ reader, clock }: Pick<Known, 'reader' | 'clock'>, signal: AbortSignal): ActedIn => {
  let since = clock.monotonicMs();
  const rest = async (): Promise<void> => {
    if (clock.monotonicMs() - since < SLICE_MS) return;
    await breathe();
    signal.throwIfAborted();
    since = clock.monotonicMs();
  };
  return async (subjectId, tenants) => {
    await rest();
    // The service itself is nobody whose data could be kept or erased.
    return subjectId !== SYSTEM_SUBJECT && reader.hasActed(tenants, subjectId);
  };
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
  const actedIn = createActedIn({ reader, clock }, signal);
  if (named !== '' && reader.tenantTree(named).size() === 0)
    throw notThere('NOT_FOUND', 'TENANT_NOT_FOUND', 'tenant', noHistory('tenant', named));
  const known = resources.get(user.kind, subjectId, { all: true });
  if (known === undefined ? !(await actedIn(subjectId, [named])) : known.tenant !== named)
    throw notThere(
      'NOT_FOUND',
      'SUBJECT_NOT_FOUND',
      'subject_id',
      named === ''
        ? `nobody of no tenant has this id, nothing was erased: give the tenant of the person in 'tenant', or ${GIVE_SUBJECT}`
        : `this tenant has no such subject, nothing was erased: ${GIVE_SUBJECT}`,
    );
  const all = new Set([named]);
  for (let after = 0; ; ) {
    const page = reader.tenants(after, PAGE);
    for (const { tenant } of page) if (tenant !== '' && (await actedIn(subjectId, [tenant]))) all.add(tenant);
    const next = page.at(-1);
    if (next === undefined) return [...all];
    after = next.tree;
  }
};

/** Whether a subject has ever called. Throws ApiError 503. */
export const hasActed = async (subjectId: string, known: Known, signal: AbortSignal): Promise<boolean> => {
  await takenIn(known, signal);
  return createActedIn(known, signal)(subjectId, 'all');
};

/** A hold over what is not there would be believed in, and keep nothing. Throws ApiError 400, or 503. */
export const assertScopeThere = async (
  scope: HoldScope,
  known: Known,
  signal: AbortSignal,
): Promise<void> => {
  if (scope.kind === 'all') return;
  const { kind, id } = scope;
  await takenIn(known, signal);
  if (kind === 'tenant') {
    if (known.reader.tenantTree(id).size() === 0)
      throw notThere('INVALID_ARGUMENT', 'TENANT_NOT_FOUND', 'scope.id', noHistory('scope.id', id));
    return;
  }
  // A User who was removed has a history all the same.
  const isUser = known.reader.indexOf(streamName(user.kind, id), 0) !== undefined;
  if (isUser || (await hasActed(id, known, signal))) return;
  const shown = id.slice(0, 100);
  throw notThere(
    'INVALID_ARGUMENT',
    'SUBJECT_NOT_FOUND',
    'scope.id',
    `field 'scope.id' names no subject that is known here, '${shown}': ${GIVE_SUBJECT}`,
  );
};

const GIVE_SUBJECT = "give the id of a User, or 'actor.subject' of an event";

const noHistory = (field: string, tenant: string): string =>
  `field '${field}': tenant '${tenant.slice(0, 100)}' has no history: give the name of a tenant`;

const notThere = (
  error: 'NOT_FOUND' | 'INVALID_ARGUMENT',
  reason: string,
  field: string,
  description: string,
): ApiError => new ApiError(error, description, { reason, violations: [{ field, description }] });
