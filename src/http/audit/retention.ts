import type { ListedErasure } from '../../app/audit/erasure-log.ts';
import type { Hold } from '../../domain/audit/retention.ts';
import type { HoldScope } from '../../domain/audit/events.ts';
import { user } from '../../domain/kinds.ts';
import { ApiError } from '../errors.ts';
import { fieldsOf, readBody, readQuery, rendered } from '../ledger/forms.ts';
import type { LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { adminsList, assertAdmin, lookAt } from './access.ts';
import { ERASURE, LEGAL_HOLD, type Erasure, type Hold as HoldAnswer } from './answers.ts';
import { ERASURE_BODY, HOLD_BODY, REASON_QUERY } from './operations.ts';
import type { AuditServices } from './services.ts';
import { assertScopeThere, tenantsOfSubject } from './subject-tenants.ts';
import { answered, writing } from './writes.ts';

/** Legal holds and erasures of persons, both for the provider's admins. */
export const retentionRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  adminsList(services, 'holds', async () => (await services.erasures.state()).holds.map(holdJson)),
  {
    verb: 'POST',
    path: 'holds',
    fields: fieldsOf(HOLD_BODY),
    handler: (call) => placeHold(call, services),
  },
  {
    verb: 'DELETE',
    path: 'holds/{id}',
    handler: async (call) => {
      assertAdmin(call.principal);
      const holdId = call.path['id'] ?? '';
      const { reason } = readQuery(call.query, REASON_QUERY);
      const at = services.clock.now();
      const hold = (await services.erasures.state()).holds.find((each) => each.holdId === holdId);
      const tenant = hold === undefined ? undefined : (hold.tenant ?? tenantOf(hold.scope, services));
      const { headers } = await writing(call, services, tenant ?? '', (context) =>
        services.erasures.hold({ type: 'ReleaseLegalHold', at, holdId, reason }, context),
      );
      return answered({ id: holdId, released: true }, headers);
    },
  },
  adminsList(services, 'erasures', async (signal) =>
    (await services.erasureLog.list(signal)).map(listedJson),
  ),
  lookAt(services, 'erasures/{id}', ({ principal, path, signal }) => {
    assertAdmin(principal);
    const id = path['id'] ?? '';
    return {
      what: 'erasure',
      query: { id: id.slice(0, 100) },
      answer: async () => {
        const found = (await services.erasureLog.list(signal)).find((each) => each.id === id);
        if (found === undefined) throw new ApiError('NOT_FOUND', 'no erasure with this id');
        return { json: listedJson(found) };
      },
    };
  }),
  {
    verb: 'POST',
    path: 'erasures',
    fields: fieldsOf(ERASURE_BODY),
    handler: (call) => erase(call, services),
  },
];

const placeHold = async (call: LedgerCall, services: AuditServices) => {
  assertAdmin(call.principal);
  const { scope, reason, ticket = '' } = readBody(call.body, HOLD_BODY);
  const at = services.clock.now();
  await assertScopeThere(scope, services, call.signal);
  const tenant = tenantOf(scope, services);
  const placing = {
    type: 'PlaceLegalHold' as const,
    at,
    scope,
    ...(tenant === undefined ? {} : { tenant }),
    reason,
    ...(ticket === '' ? {} : { ticket }),
  };
  const { write, state, headers } = await writing(
    call,
    services,
    tenant ?? '',
    (context, { creationId: holdId }) => services.erasures.hold({ ...placing, holdId }, context),
  );
  const { creationId: holdId } = write;
  const placed = state.holds.find((hold) => hold.holdId === holdId);
  return answered(holdJson(placed ?? { holdId, scope, reason, placedAt: at }), headers);
};

/** The one tenant whom a hold concerns: it stands in that tenant's history. One that nothing is known of has none. */
const tenantOf = (scope: HoldScope, { reader, resources }: AuditServices): string | undefined => {
  if (scope.kind === 'all') return undefined;
  const tenant =
    scope.kind === 'tenant' ? scope.id : resources.get(user.kind, scope.id, { all: true })?.tenant;
  return tenant === undefined || reader.tenantTree(tenant).size() === 0 ? undefined : tenant;
};

const holdJson = (hold: Hold): HoldAnswer => rendered(LEGAL_HOLD, { ...hold, id: hold.holdId });

const erase = async (call: LedgerCall, services: AuditServices) => {
  assertAdmin(call.principal);
  const asked = readBody(call.body, ERASURE_BODY);
  // Who calls with a token of no tenant has a history all the same: that of the service.
  const { subject_id: subjectId, tenant, reason, request_id: requestId = '' } = asked;
  const tenants = await tenantsOfSubject(subjectId, tenant, services, call.signal);
  const wanted = {
    subjectId,
    tenant,
    ...(tenants.length > 1 ? { tenants } : {}),
    reason,
    ...(requestId === '' ? {} : { requestId }),
  };
  const done: { already?: string | undefined } = {};
  const { write, headers } = await writing(call, services, tenant, async (context) => {
    const outcome = await services.erasures.erase(wanted, context);
    done.already = outcome.already;
    return outcome;
  });
  if (done.already !== undefined)
    return answered(await erasedBefore(done.already, wanted, services, call.signal), headers);
  await services.exports.erased(tenants);
  return answered(erasureJson({ id: write.commandId, ...wanted }, 'complete'), headers);
};

/** The erasure that has left nothing to do: when it was, and who asked for it. */
const erasedBefore = async (
  id: string,
  wanted: Named,
  { erasureLog }: AuditServices,
  signal: AbortSignal,
): Promise<Erasure> => {
  const found = (await erasureLog.list(signal)).find((each) => each.id === id);
  const known = found === undefined ? erasureJson({ id, ...wanted }, 'complete') : listedJson(found);
  return { ...known, already: true };
};

type Named = Pick<ListedErasure, 'subjectId' | 'tenant' | 'reason'> & Partial<ListedErasure>;

const erasureJson = (erasure: Named & { readonly id: string }, state: Erasure['state']): Erasure =>
  rendered(ERASURE, {
    ...erasure,
    state,
    tenants: erasure.tenants?.length === 0 ? undefined : erasure.tenants,
    requestId: erasure.requestId || undefined,
    by: erasure.by || undefined,
  });

const listedJson = (erasure: ListedErasure): Erasure =>
  erasureJson(erasure, erasure.completedAt === undefined ? 'running' : 'complete');
