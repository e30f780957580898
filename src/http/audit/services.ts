import type { Erasures } from '../../app/audit/erasure.ts';
import type { ErasureLog } from '../../app/audit/erasure-log.ts';
import type { AuditExports } from '../../app/audit/exports/exports.ts';
import type { AuditGrants } from '../../app/audit/grants.ts';
import type { AuditProofs } from '../../app/audit/proofs.ts';
import type { AuditHalt } from '../../app/audit/tree-heads.ts';
import type { AuditWords } from '../../app/audit/shown-event.ts';
import type { EventStore } from '../../app/log/event-store.ts';
import type { Timers } from '../../app/ports.ts';
import type { AuditReader } from '../../projections/audit/audit-reader.ts';
import type { ReadModels } from '../../projections/read-models.ts';
import type { LookServices } from '../audit-reads.ts';
import type { Past } from '../osac/as-of.ts';
import type { WriteServices } from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import type { NameSearches } from './name-searches.ts';

export type AuditServices = Pick<
  WriteServices,
  'runner' | 'resources' | 'clock' | 'ids' | 'requestHash' | 'personal'
> &
  LookServices & {
    readonly store: EventStore;
    readonly reader: AuditReader;
    readonly proofs: AuditProofs;
    readonly words: AuditWords;
    readonly past: Past;
    readonly positions: Positions;
    readonly waitFor: ReadModels['waitFor'];
    readonly grants: AuditGrants;
    readonly exports: AuditExports;
    readonly erasures: Erasures;
    readonly erasureLog: ErasureLog;
    readonly timers: Timers;
    readonly searches: NameSearches;
    /** Why no head will come until somebody has mended the store; undefined while heads come. */
    readonly halted: () => AuditHalt | undefined;
  };

export const AUDIT_VIEW = 'audit';
