import type { DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { Encrypted } from '../personal.ts';

/**
 * Events of the audit context (design §4, §7): what was refused, who looked at the history, what was exported, whose data
 * must be kept and whose was erased. They are leaves of the tree like all others.
 */

/** `refusal-<tenant>.<day>`: commands that were refused, and calls by somebody unknown or without the right. */
export type RefusalEvent =
  | DomainEvent<
      'RequestRefused',
      {
        readonly at: string;
        /** Empty: nobody knows who called. */
        readonly subjectId: string;
        readonly outcome: 'rejected' | 'denied' | 'unauthenticated';
        /** Stable reason, for example `NAME_TAKEN`. */
        readonly code: string;
        /** The class of that reason in the catalogue of errors, for example `ALREADY_EXISTS`. */
        readonly error?: string;
        /** The called method or the name of the command; of our own surfaces the verb and the path. */
        readonly command: string;
        readonly commandId?: string;
        /** What it was about, where that is known; the id only of what is there, and where the service itself made it. */
        readonly kind?: string;
        readonly resourceId?: string;
        /** HMAC-SHA-256 of the request, hex: equal for equal requests, tells nothing of its body. */
        readonly bodyHash?: string;
        /** Names of the fields that the request set: no values. */
        readonly fields?: readonly string[];
        /** What the caller was told; it may repeat what the caller wrote, so it is ciphertext. */
        readonly message?: Encrypted;
        /** The id that the caller wrote, where nothing has it: it may be anybody's name. */
        readonly named?: Encrypted;
        /** What somebody unknown was told, where that repeats nothing of the call: nobody's key could conceal it. */
        readonly told?: string;
      }
    >
  /** More was refused than is recorded one by one. */
  | DomainEvent<
      'RefusalsSuppressed',
      {
        readonly at: string;
        /** Whose; absent: of all who did not say who they are. */
        readonly subjectId?: string;
        readonly count: number;
        readonly since: string;
        readonly until: string;
      }
    >;

/** What a look asked for, as far as the tenants may know it in whose history that stands. */
export type Asked = {
  /** Id of who did it. */
  readonly subject?: string;
  readonly kind?: string;
  readonly resource_id?: string;
  /** Id of one event, or `<stream>@<revision>`. */
  readonly event?: string;
  readonly types?: readonly string[];
  readonly outcome?: string;
  /** Times, or positions. */
  readonly from?: string;
  readonly to?: string;
  readonly as_of?: string;
};

export const ACCESS_ASKED: readonly (keyof Asked)[] = [
  'subject',
  'kind',
  'resource_id',
  'event',
  'types',
  'outcome',
  'from',
  'to',
  'as_of',
];

/** `auditAccess-<tenant of the reader>.<day>`: every look at the history, before it is answered. */
export type AuditAccessEvent = DomainEvent<
  'AuditRead',
  {
    readonly at: string;
    readonly subjectId: string;
    /** `events`, `resource`, `diff`, `proof` … */
    readonly what: string;
    /** The question, as it was understood; ids that name nothing are ciphertext: they may be anybody's name. */
    readonly query: JsonObject;
    /** What of it the reader's tenant may know; absent: nothing. */
    readonly asked?: Asked;
    /** Of which tenants; absent: of all. */
    readonly tenants?: readonly string[];
  }
>;

/**
 * `auditAccess-<tenant>.<day>`, too: a look that is on record in the history of another tenant, or of the provider, has
 * shown something of this tenant. Its command id is that of the look.
 */
export type AuditNoticeEvent = DomainEvent<
  'AuditReadNoticed',
  {
    readonly at: string;
    readonly subjectId: string;
    readonly what: string;
    /** The object that was looked at, where it was one; without an id: the kind of those that were asked for. */
    readonly kind?: string;
    readonly resourceId?: string;
    /** By what else; absent: by nothing. */
    readonly asked?: Asked;
  }
>;

/** What an operator does with the service itself, in the words of the paths under `/api/ledger/v1`. */
export const OPERATOR_ACTS = [
  'audit/keys',
  'hubs/check',
  'kafka/topics',
  'kafka/retry',
  'kafka/replays',
  'lanes/pause',
  'lanes/resume',
  'orders/retry',
  'projections/rebuild',
  'projections/retry',
  'store/backup',
  'store/check',
] as const;

/**
 * `operatorAct-<tenant of the operator>.<day>`: somebody had the service do something that changes no document. Written
 * before it is done: what came of it is in the answer and in the log of the service.
 */
export type OperatorActEvent = DomainEvent<
  'OperatorActed',
  {
    readonly at: string;
    readonly subjectId: string;
    readonly act: (typeof OPERATOR_ACTS)[number];
    /** Name of the lane, projection, topic or parked stream; `lost` for a key that is replaced without the old one. */
    readonly on?: string;
    /** The hub or the order. */
    readonly kind?: string;
    readonly resourceId?: string;
    /** Hosts with their ports, where a hub was looked at with other values than its own. */
    readonly hosts?: readonly string[];
    /** What the operator has typed, the file of a backup or the name of a replay: it may be anything. */
    readonly named?: Encrypted;
  }
>;

/**
 * `operatorAct-_.<day>`: a person has put this log, as it came from a backup, under a new deployment id. What was recorded
 * between its last event and this one is not in it.
 */
export type LogRestoredEvent = DomainEvent<
  'LogRestored',
  {
    readonly at: string;
    readonly formerId: string;
    readonly deploymentId: string;
    /** Of the last event that the backup holds. */
    readonly lastPosition: string;
    readonly lastEventAt: string;
  }
>;

/** What an export holds. */
export type ExportRequest = {
  readonly format: 'native' | 'ocsf';
  /** What may be shown in it; absent: what the tenant may see. */
  readonly audience?: 'tenant' | 'provider';
  /** Absent: the whole log; only with a grant for all tenants. */
  readonly tenant?: string;
  readonly filter: JsonObject;
  /** Recorded from this time on, and before that one. */
  readonly from?: string;
  readonly to?: string;
  /** Sizes of checkpoints that the asker has pinned: the export shows that it continues them. */
  readonly pins?: readonly number[];
};

/** `auditExport-<id>`. */
export type AuditExportEvent =
  | DomainEvent<
      'AuditExportRequested',
      { readonly at: string; readonly subjectId: string; readonly request: ExportRequest }
    >
  | DomainEvent<
      'AuditExportCompleted',
      {
        readonly at: string;
        readonly events: number;
        readonly bytes: number;
        /** SHA-256 of the bundle, hex. */
        readonly digest: string;
        /** Size of the signed tree that it is proven by. */
        readonly treeSize: number;
      }
    >
  | DomainEvent<'AuditExportFailed', { readonly at: string; readonly reason: string }>
  | DomainEvent<'AuditExportDownloaded', { readonly at: string; readonly subjectId: string }>
  /** The file was removed; the history of the export stays. */
  | DomainEvent<'AuditExportDiscarded', { readonly at: string; readonly reason: string }>;

/** Whose data a legal hold keeps. */
export type HoldScope =
  | { readonly kind: 'subject'; readonly id: string }
  | { readonly kind: 'tenant'; readonly id: string }
  | { readonly kind: 'all' };

/**
 * `retention-deployment`: holds and erasures in one stream, so that neither can overtake the other
 * (fleet-and-networks.md §1.9 rules 4 and 5).
 */
export type RetentionEvent =
  | DomainEvent<
      'LegalHoldPlaced',
      {
        readonly at: string;
        readonly holdId: string;
        readonly scope: HoldScope;
        /** The one tenant whom it concerns, in whose history it stands; absent: none, several, or not known. */
        readonly tenant?: string;
        readonly reason: string;
        readonly ticket?: string;
      }
    >
  | DomainEvent<
      'LegalHoldReleased',
      {
        readonly at: string;
        readonly holdId: string;
        /** What it kept. */
        readonly scope: HoldScope;
        readonly reason: string;
      }
    >
  /** From here on the key may be gone at any moment; a crash before it is repeated. */
  | DomainEvent<
      'ErasureBegun',
      {
        readonly at: string;
        readonly erasureId: string;
        readonly subjectId: string;
        readonly tenant: string;
        /** All tenants in whose history the subject appears; absent: only `tenant`. */
        readonly tenants?: readonly string[];
        readonly reason: string;
        /** Number of the person's request in the provider's own files. */
        readonly requestId?: string;
      }
    >
  | DomainEvent<
      'SubjectKeyDestroyed',
      {
        readonly at: string;
        readonly erasureId: string;
        readonly subjectId: string;
        readonly tenant: string;
        readonly tenants?: readonly string[];
        readonly reason: string;
        readonly requestId?: string;
      }
    >;

/** `auditGrant-<id>`: somebody may read the history of tenants that are not its own. */
export type AuditGrantEvent =
  | DomainEvent<
      'AuditGrantGiven',
      {
        readonly at: string;
        readonly subjectId: string;
        readonly tenants: readonly string[] | 'all';
        readonly reason: string;
        readonly expiresAt?: string;
      }
    >
  | DomainEvent<'AuditGrantWithdrawn', { readonly at: string; readonly reason: string }>;

/** `auditGrantNotice-<grant>.<tenant>`: what a tenant is told of such a grant; the reason is the provider's to read. */
export type AuditGrantNoticeEvent =
  | DomainEvent<
      'AuditGrantNoticed',
      {
        readonly at: string;
        readonly grantId: string;
        readonly subjectId: string;
        readonly expiresAt?: string;
      }
    >
  | DomainEvent<'AuditGrantEndNoticed', { readonly at: string; readonly grantId: string }>;

const NOTICES: { readonly [Type in AuditNoticeEvent['type'] | AuditGrantNoticeEvent['type']]: true } = {
  AuditReadNoticed: true,
  AuditGrantNoticed: true,
  AuditGrantEndNoticed: true,
};

/** Whether events of a type are only there to tell a tenant what others did with its history. */
export const isNotice = (type: string): boolean => Object.hasOwn(NOTICES, type);

export type AuditEvent =
  | RefusalEvent
  | AuditAccessEvent
  | AuditNoticeEvent
  | OperatorActEvent
  | AuditExportEvent
  | RetentionEvent
  | AuditGrantEvent
  | AuditGrantNoticeEvent;
