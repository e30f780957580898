import type { CommandOutcome } from '../../app/commands/command.ts';
import { OutcomeUnknown, StoreUnavailable } from '../../app/log/event-store.ts';
import type { CommandContext } from '../../app/log/metadata.ts';
import type { AuditGrant, AuditGrantCommand, AuditGrantState } from '../../domain/audit/grant.ts';
import type { JsonObject } from '../../domain/json.ts';
import { auditGrantAggregate } from '../../domain/kinds.ts';
import { streamName } from '../../domain/stream-name.ts';
import { ApiError, invalid } from '../errors.ts';
import { fieldsOf, readBody, readQuery, rendered } from '../ledger/forms.ts';
import type { LedgerRoute } from '../ledger/serve.ts';
import { adminsList, assertAdmin } from './access.ts';
import { AUDIT_GRANT, type Grant } from './answers.ts';
import { GRANT_BODY, REASON_QUERY } from './operations.ts';
import type { AuditServices } from './services.ts';
import { hasActed, takenIn } from './subject-tenants.ts';
import { answered, writing } from './writes.ts';

/** Who may read the history of tenants that are not its own: given and withdrawn by the provider's admins. */
export const auditGrantRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  adminsList(services, 'grants', async (signal) =>
    (await services.grants.list(signal)).map(({ id, state, givenAt }) => grantJson(id, state, givenAt)),
  ),
  {
    verb: 'POST',
    path: 'grants',
    fields: fieldsOf(GRANT_BODY),
    handler: async (call) => {
      assertAdmin(call.principal);
      const grant = readGrant(call.body);
      await assertThere(grant, services, call.signal);
      // An auditor may be let in before the first login: whoever grants is told, since the id may as well be misspelt.
      // Before anything is written: an instance that is behind answers 503, which says that nothing was.
      const seen = await hasActed(grant.subjectId, services, call.signal);
      const { state, write, headers } = await writing(call, services, '', (context, { creationId }) =>
        changed(
          creationId,
          { type: 'GiveAuditGrant', at: services.clock.now(), ...grant },
          context,
          services,
        ),
      );
      return answered({ ...grantJson(write.creationId, state), subject_seen: seen }, headers);
    },
  },
  {
    verb: 'DELETE',
    path: 'grants/{id}',
    handler: async (call) => {
      assertAdmin(call.principal);
      const id = call.path['id'] ?? '';
      const { reason } = readQuery(call.query, REASON_QUERY);
      const { state, headers } = await writing(call, services, '', (context) =>
        changed(id, { type: 'WithdrawAuditGrant', at: services.clock.now(), reason }, context, services),
      );
      return answered(grantJson(id, state), headers);
    },
  },
];

/**
 * Gives or withdraws, and tells the tenants; a repetition tells those whom a failure left out. Throws OutcomeUnknown where that is
 * needed.
 */
const changed = async (
  id: string,
  command: AuditGrantCommand,
  context: CommandContext,
  { runner, grants }: AuditServices,
): Promise<CommandOutcome<AuditGrantState>> => {
  const outcome = await runner.execute(auditGrantAggregate, id, command, context);
  if (outcome.outcome === 'accepted')
    await grants.tell(id, context.signal).catch((error: unknown) => {
      // It stands: who reads that nothing was stored would give another one.
      throw error instanceof StoreUnavailable
        ? new OutcomeUnknown(streamName(auditGrantAggregate.category, id), { cause: error })
        : error;
    });
  return outcome;
};

const readGrant = (body: JsonObject): AuditGrant => {
  const { subject: subjectId, tenants, reason, expires_at: expiresAt } = readBody(body, GRANT_BODY);
  return { subjectId, tenants, reason, ...(expiresAt === undefined ? {} : { expiresAt }) };
};

/**
 * A name that is misspelt would be told of a grant that lets nobody see anything, and be found by whoever comes to have it.
 * Tenants that are gone have a history all the same. Throws ApiError 400.
 */
const assertThere = async (
  { tenants }: AuditGrant,
  services: AuditServices,
  signal: AbortSignal,
): Promise<void> => {
  if (tenants === 'all') return;
  await takenIn(services, signal);
  const unknown = tenants.find((name) => services.reader.tenantTree(name).size() === 0);
  if (unknown !== undefined)
    throw invalid(
      `field 'tenants': tenant '${unknown.slice(0, 100)}' has no history: give the name of a tenant`,
      'tenants',
    );
};

const grantJson = (id: string, state: AuditGrantState, givenAt?: string): Grant => {
  if (state.status === 'none') throw new ApiError('NOT_FOUND', 'no audit grant with this id');
  return rendered(AUDIT_GRANT, { ...state, id, subject: state.subjectId, givenAt });
};
