import type { LogDamaged, Position } from '../app/log/event-store.ts';
import type { PastAppend } from '../app/commands/loaded-streams.ts';
import type { FilterNode, OrderTerm } from './filter/ast.ts';
import type { AuditReader } from './audit/audit-reader.ts';
import type { AsOfRequest } from './resources/as-of-table.ts';
import type { ChangeReader } from './resources/change-reader.ts';
import type { UsageReader } from './usage/usage-reader.ts';
import type { Visibility } from './visibility.ts';

export type { Visibility } from './visibility.ts';

/** What the HTTP thread reads. Every statement behind these is indexed and bounded. */
export type ResourceRow = {
  readonly kind: string;
  readonly id: string;
  readonly tenant: string;
  readonly project: string;
  readonly name: string;
  /** Revision of the resource's stream that the row shows; the ETag. */
  readonly revision: number;
  /** OSAC's `metadata.version`. */
  readonly version: number;
  readonly position: Position;
  readonly deleting: boolean;
  /** Rendered JSON texts, `metadata.version` included. */
  readonly publicJson: string;
  readonly privateJson: string;
};
/** With its place in the order of creation. */
export type PlacedRow = ResourceRow & { readonly created: string };

/**
 * `documents` are JSON texts of one surface; `total` counts all matches, whatever the page. `places` stand instead of
 * the documents where these are longer together than the query lets be read at once: for `documentAt`, in their order.
 */
export type ListPage = {
  readonly documents: readonly string[];
  readonly total: number;
  readonly places?: readonly string[];
  /** Of a list of the past: objects that the caller has to fold from their streams and ask with again; nothing else is told. */
  readonly unknown?: readonly string[];
};

export type ListQuery = {
  readonly kind: string;
  readonly visibility: Visibility;
  readonly surface: 'public' | 'private';
  readonly offset: number;
  readonly limit: number;
  readonly filter?: FilterNode;
  /** Default: the order of creation, which also decides between equals (backwards when the last term descends). */
  readonly order?: readonly OrderTerm[];
  /** Only what public lists show by themselves (`ResourceKind.listed`). */
  readonly listedOnly?: boolean;
  /** Paths of this kind whose values are indexed, beside labels: `indexedPaths` of its declaration. */
  readonly indexed: ReadonlySet<string>;
  /** What `now` reads as, milliseconds since 1970. */
  readonly nowMs: number;
  /** Who takes a share of what scans: not what is looked at, which a filter chooses. Default: nobody in particular. */
  readonly caller?: string;
  /** Most characters of documents that are read at once. Default: any. */
  readonly atOnce?: number;
  /** The objects as they were at a position, inside what `changes` reaches back to. */
  readonly asOf?: AsOfRequest;
  /** Ends a scan whose answer nobody waits for any more. */
  readonly signal: AbortSignal;
};

/** A list that is not answered now; the same request may be later, or a narrower one at once. */
export class ListRefused extends Error {
  override readonly name = 'ListRefused';
  readonly reason: 'busy' | 'too-long' | 'cancelled';
  constructor(reason: ListRefused['reason']) {
    super(`the list was not answered: ${reason}`);
    this.reason = reason;
  }
}

export type Referring = { readonly tenant: string; readonly kind: string; readonly id: string };

export type ResourceReader = {
  /** Foreign and absent ids run the same statement and both give undefined. */
  get(kind: string, id: string, visibility: Visibility): ResourceRow | undefined;
  /**
   * The folded state of an object, also of one that was deleted, whoever may see it. Foreign and absent ids run the
   * same
   * statement; undefined: it never was.
   */
  stateOf(kind: string, id: string): unknown;
  /** Live (not archived) objects of this name that the caller may see, all projects, lowest id first. */
  findByName(kind: string, name: string, visibility: Visibility): readonly ResourceRow[];
  /** In the order of creation, of whole tenants: not for callers. `limit` 0 gives only the total. */
  list(
    kind: string,
    visibility: Visibility,
    page: { readonly offset: number; readonly limit: number },
  ): { readonly rows: readonly ResourceRow[]; readonly total: number };
  /**
   * All objects of a kind in the order of creation. Each page of `limit` is read when it is asked for and goes on
   * behind the
   * last row of the one before, so that the last costs no more than the first.
   */
  pages(kind: string, limit: number): Iterable<readonly ResourceRow[]>;
  /** Objects of a kind that others hold a part of (`ResourceKind.lends`), read page by page as `pages`. */
  lent(kind: string, limit: number): Iterable<readonly Pick<ResourceRow, 'id' | 'tenant' | 'project'>[]>;
  /** The last created first, of one tenant or all, beginning before the place `created` of a row. */
  newest(
    kind: string,
    page: { readonly tenant?: string; readonly before?: string; readonly limit: number },
  ): readonly PlacedRow[];
  /**
   * A page of what matches a filter, in any order. Answered at once where an index bounds the work, else from a thread
   * that scans. Throws (or rejects with) ListRefused when too many scans run or one takes too long.
   */
  query(query: ListQuery): ListPage | Promise<ListPage>;
  /** The document at a place of a page as it is now; undefined once it is gone. The page says who may see it. */
  documentAt(kind: string, place: string, surface: 'public' | 'private'): string | undefined;
  /** Objects that carry a mark of their declaration, for example the default ClusterVersion. */
  marked(kind: string, mark: string, visibility: Visibility): readonly ResourceRow[];
  /** How many objects carry a mark; 10,000 means that many or more. */
  countMarked(kind: string, mark: string): number;
  /** Grows whenever objects of this kind may have changed: what was read at the same number is still so. */
  generation(kind: string): number;
  /** True when a live object of these tenants, wherever it lies in them, points at it. */
  isReferenced(kind: string, id: string, visibility: Visibility): boolean;
  /** Live objects of any tenant that point at it, by kind and id; for callers who see all. */
  referencedBy(
    kind: string,
    id: string,
    page: { readonly limit: number },
  ): readonly { readonly kind: string; readonly id: string }[];
  /** The same page by page, in the order of tenant, kind and id. */
  referring(
    kind: string,
    id: string,
    page: { readonly after?: Referring; readonly limit: number },
  ): readonly Referring[];
  /** Objects whose last event, at `revision` and before a position, announces that they will point at it (`app/referrals.ts`). */
  announcedTo(
    kind: string,
    id: string,
    page: { readonly before: Position; readonly limit: number },
  ): readonly { readonly kind: string; readonly id: string; readonly revision: number }[];
  /** The next thing that a live object points at, in the order of kind and id, whether it is there or not. */
  nextReferred(after: {
    readonly kind: string;
    readonly id: string;
  }): { readonly kind: string; readonly id: string } | undefined;
  /** The next kind and tenant of which there are live objects, in that order, whether the tenant is there or not. */
  nextOwner(after: {
    readonly kind: string;
    readonly tenant: string;
  }): { readonly kind: string; readonly tenant: string } | undefined;
  /** Where a command id was carried out, for keys older than what is folded beside the state. */
  findCommand(commandId: string): { stream: string; revision: number; requestHash: string } | undefined;
  /** The append that a command made to one stream: what the command runner's index of old appends asks for. */
  findAppend(stream: string, commandId: string): PastAppend | undefined;
};

export type TimelineEntry = {
  readonly position: Position;
  readonly at: string;
  readonly type: string;
  /** Events of the object and of its workflow run, redacted for the audience. */
  readonly audience: 'tenant' | 'provider' | 'internal';
  /** One sentence for people. */
  readonly summary: string;
  readonly data: string;
  readonly actor: string;
  readonly correlationId: string;
};

export type TimelineReader = {
  /**
   * Entries of one order after a position and up to another, oldest first: at most `limit`, and fewer once their
   * data have
   * `characters` together (default: any number).
   */
  of(
    kind: string,
    id: string,
    options: {
      after?: Position;
      upTo?: Position;
      limit: number;
      audience: 'tenant' | 'provider';
      characters?: number;
    },
  ): readonly TimelineEntry[];
};

export type ProjectionStatus = {
  readonly name: string;
  readonly version: number;
  readonly position: Position | undefined;
  readonly caughtUp: boolean;
  /** Seconds since the recorded time of the last applied event, when not caught up; 0 when it is. */
  readonly lagSeconds: number;
  readonly parkedStreams: readonly {
    readonly stream: string;
    /** Of the event that could not be applied. */
    readonly revision: number;
    readonly position: Position;
    readonly error: string;
  }[];
  readonly state: 'live' | 'rebuilding' | 'stopped' | 'failed';
  /** It has failed at something in the log that is not what was written to it; `at`: the event, where it is known. */
  readonly damaged?: Pick<LogDamaged, 'at'>;
  readonly rebuild?: {
    readonly position: Position | undefined;
    readonly target: Position | undefined;
    readonly events: number;
  };
  readonly error?: string;
};

export type ReadModels = {
  readonly resources: ResourceReader;
  readonly timeline: TimelineReader;
  /** Billable time; undefined without its view. */
  readonly usage: UsageReader | undefined;
  /** How documents changed, in the order of the log: what a watch tells. */
  readonly changes: ChangeReader;
  /** The Merkle tree over the log and the index of auditors; undefined without the role `auditor`. */
  readonly audit: AuditReader | undefined;
  /**
   * Resolves true when the view has applied this position, false past the bound. The events of a parked stream are
   * passed over: its rows stay as they were (`status` names it).
   */
  waitFor(
    view: string,
    position: Position,
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<boolean>;
  status(): readonly ProjectionStatus[];
  /** Builds a fresh copy beside the live one, checks it, catches up and switches. */
  rebuild(
    view: string,
    options?: {
      signal?: AbortSignal;
      onProgress?: (events: number) => void;
      /** Switch although the copies differ (the log is right, so the new one is). Default: report and keep. */
      force?: boolean;
    },
  ): Promise<RebuildReport>;
  /** SHA-256 over every table's rows by primary key in canonical JSON, at the stated position. */
  digest(
    view: string,
  ): Promise<{ readonly position: Position | undefined; readonly digest: string; readonly rows: number }>;
  /** Tries the parked events of a stream again. */
  retryParked(view: string, stream: string): Promise<boolean>;
  close(): Promise<void>;
};

export type RebuildReport = {
  readonly view: string;
  readonly events: number;
  readonly seconds: number;
  readonly position: Position | undefined;
  readonly outcome: 'switched' | 'cancelled' | 'differs';
  /** First differing rows, when the digests of the same version differ. */
  readonly differences: readonly string[];
};
