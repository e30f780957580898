import type { z } from 'zod';
import type { Position } from '../../app/log/event-store.ts';
import type { AuditAudience } from '../../app/audit/shown-event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, asRecorded, denied } from '../errors.ts';
import { NO_QUERY, readQuery } from '../ledger/forms.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { once, osacCall } from '../ledger/osac-call.ts';
import { contextOf, type LookedAt } from '../audit-reads.ts';
import type { Principal } from '../osac/principal.ts';
import { askedAtHome, askedOfOthers } from './tenant-question.ts';
import { AUDIT_VIEW, type AuditServices } from './services.ts';
import { withTypedConcealed } from './typed-values.ts';

/** Whose history a caller may read, and as whom. */
export type Reach = {
  readonly tenants: 'all' | readonly string[];
  readonly audience: AuditAudience;
};

/** Only who audits may come in at all. Throws ApiError 403. */
export const onlyAuditors = ({ admin, roles }: Principal): void => {
  if (!admin && !roles.includes('auditor'))
    throw denied('only auditors (realm role auditor) may use this surface');
};

/** Throws ApiError 403. */
export const assertAdmin = ({ admin }: Principal): void => {
  if (!admin) throw denied('only provider admins may do this; ask one of them for it');
};

/** Auditors read their own tenants and what they were granted; the provider's admins read everything. */
export const reachOf = async (
  { admin, tenants, subjectId }: Principal,
  { grants }: Pick<AuditServices, 'grants'>,
  signal?: AbortSignal,
): Promise<Reach> => {
  if (admin) return { tenants: 'all', audience: 'provider' };
  const granted = await grants.reachOf(subjectId, signal);
  if (granted.all) return { tenants: 'all', audience: 'provider' };
  return { tenants: [...new Set([...tenants, ...granted.tenants])], audience: 'tenant' };
};

export const reaches = ({ tenants }: Reach, tenant: string): boolean =>
  tenants === 'all' || tenants.includes(tenant);

/** What is left of the reach when only these tenants are asked about; none: everything. */
export const narrowed = ({ tenants }: Reach, asked: readonly string[]): Reach['tenants'] =>
  asked.length === 0
    ? tenants
    : tenants === 'all'
      ? asked
      : asked.filter((tenant) => tenants.includes(tenant));

/** One look at the history: what is written down of it, and then how it is answered. */
export type Look = {
  readonly what: string;
  readonly query: JsonObject;
  /** Default: all that the caller may read. */
  readonly tenants?: Reach['tenants'];
  readonly answer: (seen: Seen) => Promise<LedgerAnswer> | LedgerAnswer;
};

/** What is known of a look while it is answered. */
export type Seen = {
  /** Where it stands in the log. */
  readonly recorded: Position;
  /**
   * Says that the answer shows something of the history of this tenant that the tenant may see itself; `object`:
   * what was
   * looked at, where it is one that the tenant may know of.
   */
  readonly shows: (tenant: string, object?: LookedAt) => void;
};

const answerOf = async ({ answer }: Pick<Look, 'answer'>, seen: Seen): Promise<LedgerAnswer> => {
  try {
    return await answer(seen);
  } catch (error) {
    throw error instanceof ApiError ? asRecorded(error) : error;
  }
};

type Ask<Query extends z.ZodObject> = (
  call: LedgerCall,
  reach: Reach,
  services: AuditServices,
  query: z.output<Query>,
) => Promise<Look> | Look;

/**
 * A route that only looks: it is recorded before it is answered, and tenants of whom it shows something to
 * others are told before that, too. What is refused before it is a question is recorded as refusals are, within
 * their caps;
 * a question to which there is no answer has its record by then.
 *
 * @param schema what its query may say.
 */
export const looking =
  <Query extends z.ZodObject>(services: AuditServices, ask: Ask<Query>, schema: Query) =>
  async (call: LedgerCall): Promise<LedgerAnswer> => {
    const { principal, headers = {}, signal } = call;
    const query = readQuery(call.query, schema);
    await services.positions.waitForMinimum(headers['x-ledger-min-position'], AUDIT_VIEW);
    const reach = await reachOf(principal, services, signal);
    const look = { tenants: reach.tenants, ...(await ask(call, reach, services, query)) };
    const context = await contextOf(osacCall(once(call), AUDIT_VIEW), look, services);
    const recorded = await services.access.record(
      {
        what: look.what,
        query: await withTypedConcealed(look, principal.subjectId, services),
        tenants: look.tenants === 'all' ? undefined : look.tenants,
        asked: askedAtHome(look, context.tenant, services),
      },
      context,
    );
    const shown = new Map<string, LookedAt | undefined>();
    const shows: Seen['shows'] = (tenant, object) => {
      // The service's own history is nobody's; the one that has the look itself needs no notice.
      if (tenant !== '' && tenant !== context.tenant) shown.set(tenant, shown.get(tenant) ?? object);
    };
    const answer = await answerOf(look, { recorded, shows });
    if (shown.size > 0) {
      const notice = { what: look.what, tenants: shown, asked: askedOfOthers(look) };
      await services.access.notice(notice, context);
    }
    return answer;
  };

export const lookAt = <Query extends z.ZodObject = typeof NO_QUERY>(
  services: AuditServices,
  path: string,
  ask: Ask<Query>,
  schema: Query = NO_QUERY as unknown as Query,
): LedgerRoute => ({ verb: 'GET', path, handler: looking(services, ask, schema) });

/** A list that only admins may look at, all of it. */
export const adminsList = (
  services: AuditServices,
  what: string,
  list: (signal: AbortSignal) => Promise<readonly object[]>,
): LedgerRoute =>
  lookAt(services, what, ({ principal, signal }) => {
    assertAdmin(principal);
    return { what, query: {}, answer: async () => ({ json: { items: [...(await list(signal))] } }) };
  });
