import {
  isRejection,
  reject,
  type Decision,
  type Rejection,
  type RejectionKind,
} from '../../domain/decider.ts';
import type { ExpectedRevision } from '../log/event-store.ts';
import type { FoldedStream } from './loaded-streams.ts';
import type { CommandContext } from '../log/metadata.ts';
import type { RejectionRecord } from '../ports.ts';
import { defined } from '../../domain/json-tools.ts';

/** The kinds of "no" of the domain, by their names in the catalogue of public errors. */
export const ERROR_OF = {
  invalid: 'INVALID_ARGUMENT',
  'not-found': 'NOT_FOUND',
  'already-exists': 'ALREADY_EXISTS',
  'failed-precondition': 'FAILED_PRECONDITION',
  conflict: 'ABORTED',
  denied: 'PERMISSION_DENIED',
} as const satisfies { readonly [kind in RejectionKind]: string };

/** What a command is told that others overtook again and again. */
export const TOO_MANY_CONFLICTS = reject(
  'conflict',
  'CONCURRENT_MODIFICATION',
  'concurrent modification detected, please retry',
);

/**
 * Why the command is refused. Absence and missing rights come before a stale version: a caller learns nothing about
 * the version of what it may not see.
 */
export const refusalOf = (
  decision: Decision<unknown>,
  folded: FoldedStream<unknown>,
  { ifRevision, ifVersion }: CommandContext,
): Rejection | undefined => {
  const refusal = isRejection(decision) ? decision : undefined;
  if (refusal?.kind === 'not-found' || refusal?.kind === 'denied') return refusal;
  const { version } = folded.version;
  const stale = staleRevision(ifRevision, folded.revision);
  if (stale !== undefined) return stale;
  if (ifVersion !== undefined && ifVersion !== version) return versionMismatch(ifVersion, version);
  return refusal;
};

/** Why a command that was meant for one revision is refused at another. */
export const staleRevision = (
  wanted: number | undefined,
  current: ExpectedRevision,
): Rejection | undefined =>
  wanted !== undefined && wanted !== current ? versionMismatch(wanted, current) : undefined;

const versionMismatch = (requested: number, current: ExpectedRevision): Rejection =>
  reject(
    'conflict',
    'VERSION_MISMATCH',
    `the object has been modified: requested version is ${requested} but current version is ${current}`,
    { facts: { requested, current } },
  );

/** What is recorded of a refused command. `about`: category and id of the stream that it was meant for. */
export const refusedCommand = (
  command: string,
  rejection: Rejection,
  context: CommandContext,
  at: string,
  about: { readonly category: string; readonly id: string },
): RejectionRecord => ({
  tenant: context.tenant,
  project: context.project,
  subjectId: context.actor.subjectId,
  command,
  commandId: context.commandId,
  outcome: rejection.kind === 'denied' ? 'denied' : 'rejected',
  code: rejection.code,
  error: ERROR_OF[rejection.kind],
  message: rejection.message,
  at,
  correlationId: context.correlationId,
  ...defined({ traceparent: context.traceparent, ticket: context.ticket, source: context.source }),
  actor: context.actor,
  kind: about.category,
  resourceId: about.id,
  requestHash: context.requestHash,
  ...defined({ fields: context.fields }),
});
