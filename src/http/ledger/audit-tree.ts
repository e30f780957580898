import { AuditKeyMissing, AuditKeyReplaced, type AuditKeys } from '../../app/audit/audit-keys.ts';
import type { SignerStatus } from '../../app/audit/signer.ts';
import { ApiError, unfit } from '../errors.ts';
import type { ActServices } from './acts.ts';
import { AUDIT_TREE, KEYS_BODY, type AuditTree, type NewKey } from './audit-tree-operations.ts';
import { fieldsOf, readBody, rendered } from './forms.ts';
import type { LedgerCall, LedgerRoute } from './serve.ts';

/** The tree over the log: how far its signatures are, and the keys that sign it. */
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
    fields: fieldsOf(KEYS_BODY),
    handler: async (call) => ({ json: await rotated(call, services) }),
  },
];

const withRole = ({ auditing }: AuditTreeServices): NonNullable<AuditTreeServices['auditing']> => {
  if (auditing === undefined) throw unfit('this instance does not have the role auditor', 'NO_AUDITOR');
  return auditing;
};

const statusOf = async (services: AuditTreeServices): Promise<AuditTree> => {
  const { origin, keys, status, progress } = withRole(services);
  return rendered(AUDIT_TREE, { origin, ...status(), ...(await progress()), keys: await keys.chain() });
};

const rotated = async (call: LedgerCall, services: AuditTreeServices): Promise<NewKey> => {
  const { keys } = withRole(services);
  const { lost } = readBody(call.body, KEYS_BODY);
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
