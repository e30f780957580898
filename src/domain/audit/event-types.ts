import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, jsonObject, list, listOf, mayBe, text, time, typesOf, type Shapes } from '../schemas.ts';

/**
 * Events of the audit context: what was refused, who looked at the history, what was exported, whose data
 * must be kept and whose was erased. They are leaves of the tree like all others. Their types are in events.ts.
 */
const encrypted = z.strictObject({
  alg: z.literal('A256GCM'),
  keyId: text,
  nonce: text,
  ct: text,
  tag: text,
});

/** `refusal-<tenant>.<day>`: commands that were refused, and calls by somebody unknown or without the right. */
export const REFUSALS = {
  RequestRefused: {
    /** Empty: nobody knows who called. */
    subjectId: text,
    outcome: z.enum(['rejected', 'denied', 'unauthenticated']),
    /** Stable reason, for example `NAME_TAKEN`. */
    code: text,
    /** The class of that reason in the catalogue of errors, for example `ALREADY_EXISTS`. */
    error: mayBe,
    /** The called method or the name of the command; of our own surfaces the verb and the path. */
    command: text,
    commandId: mayBe,
    /** What it was about, where that is known; the id only of what is there, and where the service itself made it. */
    kind: mayBe,
    resourceId: mayBe,
    /** HMAC-SHA-256 of the request, hex: equal for equal requests, tells nothing of its body. */
    bodyHash: mayBe,
    /** Names of the fields that the request set: no values. */
    fields: list.exactOptional(),
    /** What the caller was told; it may repeat what the caller wrote, so it is ciphertext. */
    message: encrypted.exactOptional(),
    /** The id that the caller wrote, where nothing has it: it may be anybody's name. */
    named: encrypted.exactOptional(),
    /** What somebody unknown was told, where that repeats nothing of the call: nobody's key could conceal it. */
    told: mayBe,
  },
  /** More was refused than is recorded one by one. `subjectId` absent: of all who did not say who they are. */
  RefusalsSuppressed: { subjectId: mayBe, count, since: time, until: time },
} as const satisfies Shapes;

/** What a look asked for, as far as the tenants may know it in whose history that stands. */
export const asked = z.strictObject({
  /** Id of who did it. */
  subject: mayBe,
  kind: mayBe,
  resource_id: mayBe,
  /** Id of one event, or `<stream>@<revision>`. */
  event: mayBe,
  types: list.exactOptional(),
  outcome: mayBe,
  /** Times, or positions. */
  from: mayBe,
  to: mayBe,
  as_of: mayBe,
});

/** `auditAccess-<tenant of the reader>.<day>`: every look at the history, before it is answered. */
export const ACCESS = {
  AuditRead: {
    subjectId: text,
    /** `events`, `resource`, `diff`, `proof` … */
    what: text,
    /** The question, as it was understood; ids that name nothing are ciphertext: they may be anybody's name. */
    query: jsonObject,
    /** Of which tenants; absent: of all. */
    tenants: list.exactOptional(),
    /** What of it the reader's tenant may know; absent: nothing. */
    asked: asked.exactOptional(),
  },
} as const satisfies Shapes;

/**
 * `auditAccess-<tenant>.<day>`, too: a look that is on record in the history of another tenant, or of the provider, has
 * shown something of this tenant. Its command id is that of the look.
 */
export const NOTICES = {
  AuditReadNoticed: {
    subjectId: text,
    what: text,
    /** The object that was looked at, where it was one; without an id: the kind of those that were asked for. */
    kind: mayBe,
    resourceId: mayBe,
    /** By what else; absent: by nothing. */
    asked: asked.exactOptional(),
  },
} as const satisfies Shapes;

/** What an operator does with the service itself, in the words of the paths under `/api/ledger/v1`. */
export const OPERATOR_ACTS = [
  'audit/keys',
  'hubs/check',
  'kafka/topics',
  'kafka/retry',
  'kafka/replays',
  'pools/agents/clean',
  'pools/agents/retire',
  'lanes/pause',
  'lanes/resume',
  'orders/retry',
  'projections/rebuild',
  'projections/retry',
  'store/backup',
  'store/check',
] as const;

export const OPERATOR = {
  /**
   * `operatorAct-<tenant of the operator>.<day>`: somebody had the service do something that changes no document.
   * Written
   * before it is done: what came of it is in the answer and in the log of the service.
   */
  OperatorActed: {
    subjectId: text,
    act: z.enum(OPERATOR_ACTS),
    /** Name of the lane, projection, topic or parked stream; `lost` for a key that is replaced without the old one. */
    on: mayBe,
    /** The hub or the order. */
    kind: mayBe,
    resourceId: mayBe,
    /** Hosts with their ports, where a hub was looked at with other values than its own. */
    hosts: list.exactOptional(),
    /** What the operator has typed, the file of a backup or the name of a replay: it may be anything. */
    named: encrypted.exactOptional(),
  },
} as const satisfies Shapes;

const RESTORES = {
  /**
   * `operatorAct-_.<day>`: a person has put this log, as it came from a backup, under a new deployment id. What was
   * recorded
   * between its last event, which the backup holds, and this one is not in it.
   */
  LogRestored: { formerId: text, deploymentId: text, lastPosition: text, lastEventAt: time },
} as const satisfies Shapes;

/** What an export holds. */
export const exportRequest = z.strictObject({
  format: z.enum(['native', 'ocsf']),
  /** What may be shown in it; absent: what the tenant may see. */
  audience: z.enum(['tenant', 'provider']).exactOptional(),
  /** Absent: the whole log; only with a grant for all tenants. */
  tenant: mayBe,
  filter: jsonObject,
  /** Recorded from this time on, and before that one. */
  from: time.exactOptional(),
  to: time.exactOptional(),
  /** Sizes of checkpoints that the asker has pinned: the export shows that it continues them. */
  pins: listOf(count).exactOptional(),
});

/** `auditExport-<id>`. */
export const EXPORTS = {
  AuditExportRequested: { subjectId: text, request: exportRequest },
  /** `digest`: SHA-256 of the bundle, hex; `treeSize`: of the signed tree that it is proven by. */
  AuditExportCompleted: { events: count, bytes: count, digest: text, treeSize: count },
  AuditExportFailed: { reason: text },
  AuditExportDownloaded: { subjectId: text },
  /** The file was removed; the history of the export stays. */
  AuditExportDiscarded: { reason: text },
} as const satisfies Shapes;

/** Whose data a legal hold keeps. */
export const holdScope = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('subject'), id: text }),
  z.strictObject({ kind: z.literal('tenant'), id: text }),
  z.strictObject({ kind: z.literal('all') }),
]);

const erasure = {
  erasureId: text,
  subjectId: text,
  tenant: text,
  /** All tenants in whose history the subject appears; absent: only `tenant`. */
  tenants: list.exactOptional(),
  reason: text,
  /** Number of the person's request in the provider's own files. */
  requestId: mayBe,
};

/**
 * `retention-deployment`: holds and erasures in one stream, so that neither can overtake the other.
 */
export const RETENTION = {
  /** `tenant`: the one whom it concerns, in whose history it stands; absent: none, several, or not known. */
  LegalHoldPlaced: { holdId: text, scope: holdScope, tenant: mayBe, reason: text, ticket: mayBe },
  /** `scope`: what it kept. */
  LegalHoldReleased: { holdId: text, scope: holdScope, reason: text },
  /** From here on the key may be gone at any moment; a crash before it is repeated. */
  ErasureBegun: erasure,
  SubjectKeyDestroyed: erasure,
} as const satisfies Shapes;

/** `auditGrant-<id>`: somebody may read the history of tenants that are not its own. */
export const GRANTS = {
  AuditGrantGiven: {
    subjectId: text,
    tenants: z.union([list, z.literal('all')]),
    reason: text,
    expiresAt: time.exactOptional(),
  },
  AuditGrantWithdrawn: { reason: text },
} as const satisfies Shapes;

/** `auditGrantNotice-<grant>.<tenant>`: what a tenant is told of such a grant; the reason is the provider's to read. */
export const GRANT_NOTICES = {
  AuditGrantNoticed: { grantId: text, subjectId: text, expiresAt: time.exactOptional() },
  AuditGrantEndNoticed: { grantId: text },
} as const satisfies Shapes;

/**
 * What a person wrote down as a reason is the provider's to read: it may name somebody, and topics and exports for
 * tenants
 * would hold it in clear text. What an export was asked for by are words of the service and things that are there.
 */
const REASON = { providerOnly: ['reason'] };
// Where else somebody appears is for no tenant to know.
const ERASURE = { providerOnly: ['reason', 'tenants'] };

/** Registry entries of the audit context. Whose history they belong to says their metadata. */
export const auditEventTypes: readonly EventType[] = typesOf(
  { context: 'audit', audience: 'tenant' },
  {
    ...REFUSALS,
    ...ACCESS,
    ...NOTICES,
    ...OPERATOR,
    ...RESTORES,
    ...EXPORTS,
    ...RETENTION,
    ...GRANTS,
    ...GRANT_NOTICES,
  },
  {
    RequestRefused: { personal: ['message', 'named'] },
    AuditRead: { providerOnly: ['query'] },
    OperatorActed: { audience: 'provider', personal: ['named'] },
    LogRestored: { audience: 'provider' },
    LegalHoldPlaced: { providerOnly: ['reason', 'ticket'] },
    LegalHoldReleased: REASON,
    ErasureBegun: ERASURE,
    SubjectKeyDestroyed: ERASURE,
    AuditGrantGiven: REASON,
    AuditGrantWithdrawn: REASON,
  },
);
