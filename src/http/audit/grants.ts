import type { CommandOutcome } from '../../app/command.ts';
import { OutcomeUnknown, StoreUnavailable } from '../../app/event-store.ts';
import type { CommandContext } from '../../app/metadata.ts';
import type { AuditGrant, AuditGrantCommand, AuditGrantState } from '../../domain/audit/grant.ts';
import { own } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { auditGrantAggregate } from '../../domain/kinds.ts';
import { streamName } from '../../domain/stream-name.ts';
import { ApiError, invalid } from '../errors.ts';
import type { LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { adminsList, assertAdmin } from './access.ts';
import { timeOf } from './events.ts';
import type { AuditServices } from './services.ts';
import { hasActed, takenIn } from './subject-tenants.ts';
import { answered, assertFilled, assertKnown, textIn, writing } from './writes.ts';

const FIELDS = ['subject', 'tenants', 'reason', 'expires_at'] as const;

/** Who may read the history of tenants that are not its own: given and withdrawn by the provider's admins. */
export const auditGrantRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  adminsList(services, 'grants', async (signal) =>
    (await services.grants.list(signal)).map(({ id, state, givenAt }) => grantJson(id, state, givenAt)),
  ),
  {
    verb: 'POST',
    path: 'grants',
    fields: FIELDS,
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
      const { state, headers } = await writing(call, services, '', (context) =>
        changed(
          id,
          { type: 'WithdrawAuditGrant', at: services.clock.now(), reason: reasonOf(call) },
          context,
          services,
        ),
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

/** A DELETE has no body: its reason is a query parameter. */
export const reasonOf = ({ query }: LedgerCall): string => {
  const reason = query.get('reason') ?? '';
  if (reason.trim() === '') throw invalid("query parameter 'reason' is needed: why", 'reason');
  if (reason.length > 1_000) throw invalid("query parameter 'reason' is too long", 'reason');
  return reason;
};

const readGrant = (body: JsonObject): AuditGrant => {
  assertKnown(body, FIELDS);
  const tenants = own(body, 'tenants');
  if (tenants !== 'all' && !isTexts(tenants))
    throw invalid("field 'tenants' must be 'all' or a list of names of tenants", 'tenants');
  assertFilled(body, { expires_at: 'a grant until it is withdrawn' });
  const expires = textIn(body, 'expires_at');
  return {
    subjectId: subjectIn(body),
    tenants,
    reason: textIn(body, 'reason', { required: true }),
    ...(expires === '' ? {} : { expiresAt: timeOf(expires, 'expires_at') }),
  };
};

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Nobody's id is a name: a grant to one would let nobody see anything. Throws ApiError 400. */
const subjectIn = (body: JsonObject): string => {
  const subject = textIn(body, 'subject', { required: true, most: 100 });
  if (UUID.test(subject)) return subject;
  throw invalid(
    "field 'subject' must be the id of a subject, a UUID in lower case ('actor.subject' of its events), not a name",
    'subject',
  );
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
      `field 'tenants' names '${unknown.slice(0, 100)}', of which there is no history: give the name of a tenant`,
      'tenants',
    );
};

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length <= 1_000 &&
  value.every((name) => typeof name === 'string' && name !== '');

const grantJson = (id: string, state: AuditGrantState, givenAt?: string): JsonObject => {
  if (state.status === 'none') throw new ApiError('NOT_FOUND', 'there is no audit grant with this id');
  return {
    id,
    status: state.status,
    subject: state.subjectId,
    tenants: state.tenants === 'all' ? 'all' : [...state.tenants],
    reason: state.reason,
    ...(givenAt === undefined ? {} : { given_at: givenAt }),
    ...(state.expiresAt === undefined ? {} : { expires_at: state.expiresAt }),
  };
};
