import { AuditKeyMissing, AuditKeyReplaced, type AuditKeys } from '../../app/audit/audit-keys.ts';
import type { SignerStatus } from '../../app/audit/signer.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError, unfit } from '../errors.ts';
import type { ActServices } from './acts.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/** The tree over the log: how far its signatures are, and the keys that sign it (design §7, Audit). */
export type AuditTreeServices = ActServices & {
  /** Absent without the role `auditor`. */
  readonly auditing?: {
    readonly origin: string;
    readonly keys: Pick<AuditKeys, 'chain' | 'rotate'>;
    status(): SignerStatus;
    progress(): Promise<{
      readonly signedSize: number;
      readonly unsignedLeaves: number;
      readonly headAgeSeconds: number;
      readonly caughtUp: boolean;
    }>;
  };
};

export const auditTreeRoutes = (services: AuditTreeServices): readonly LedgerRoute[] => [
  { verb: 'GET', path: 'audit/tree', handler: async () => ({ json: await statusOf(services) }) },
  {
    verb: 'POST',
    path: 'audit/keys',
    fields: ['lost'],
    handler: async (call) => ({ json: { ...(await rotated(call, services)) } }),
  },
];

const withRole = ({ auditing }: AuditTreeServices): NonNullable<AuditTreeServices['auditing']> => {
  if (auditing === undefined) throw unfit('this instance does not have the role auditor', 'NO_AUDITOR');
  return auditing;
};

const statusOf = async (services: AuditTreeServices): Promise<JsonObject> => {
  const { origin, keys, status, progress } = withRole(services);
  const { signedSize, unsignedLeaves, headAgeSeconds, caughtUp } = await progress();
  const { state, failures, error } = status();
  return {
    origin,
    state,
    failures,
    ...(error !== undefined && { error }),
    signed_size: signedSize,
    unsigned_leaves: unsignedLeaves,
    head_age_seconds: headAgeSeconds,
    caught_up: caughtUp,
    keys: (await keys.chain()).map(({ vkey, since }) => ({ vkey, since })),
  };
};

const rotated = async (
  call: LedgerCall,
  services: AuditTreeServices,
): Promise<{ vkey: string; since: string; announced: boolean }> => {
  const { keys } = withRole(services);
  const lost = call.body['lost'] === true;
  await services.recordAct(call, { act: 'audit/keys', ...(lost ? { on: 'lost' } : {}) });
  try {
    const { vkey, since, rotation } = await keys.rotate({ lost });
    return { vkey, since, announced: rotation !== undefined };
  } catch (error) {
    if (error instanceof AuditKeyReplaced) throw new ApiError('ABORTED', error.message);
    if (error instanceof AuditKeyMissing)
      throw new ApiError('FAILED_PRECONDITION', error.message, { reason: 'AUDIT_KEY_MISSING' });
    throw error;
  }
};
