import { unfit } from '../errors.ts';
import type { LedgerRoute } from '../ledger/serve.ts';
import { auditEventRoutes } from './events.ts';
import { auditExportRoutes } from './exports.ts';
import { auditGrantRoutes } from './grants.ts';
import { auditProofRoutes } from './proofs.ts';
import { auditResourceRoutes } from './resources.ts';
import { retentionRoutes } from './retention.ts';
import type { AuditServices } from './services.ts';

export const auditRoutes = (services: AuditServices): readonly LedgerRoute[] => [
  ...auditEventRoutes(services),
  ...auditResourceRoutes(services),
  ...auditProofRoutes(services),
  ...auditExportRoutes(services),
  ...retentionRoutes(services),
  ...auditGrantRoutes(services),
];

/** The same routes where the role `auditor` is off: they say so. */
export const withoutAuditor = (): readonly LedgerRoute[] =>
  // The rows need no services; what stands behind them is never called.
  auditRoutes({} as AuditServices).map((route) => ({
    ...route,
    handler: () => {
      throw unfit('this instance does not have the role auditor; ask another one', 'NO_AUDITOR');
    },
  }));
