import type { DatabaseSync } from 'node:sqlite';
import type { EventFilter, RecordedEvent } from '../app/log/event-store.ts';

/**
 * A read model: SQLite tables folded from the log by one pure function. Disposable, never migrated:
 * a new `version` is rebuilt beside the live one and switched to.
 *
 * `apply` uses the event and its own tables only: no clock, no random, nothing of the batch it came in.
 */
export type View = {
  readonly name: string;
  /** Bump when tables or `apply` change. */
  readonly version: number;
  /**
   * Settings that shape the rows (a retention, say), as one text. A file that was built with others counts as a file
   * of another version: it is rebuilt at the next start. Default: none.
   */
  readonly settings?: string;
  /** DDL of STRICT tables; every table has a primary key (the digest orders by it). */
  readonly schema: string;
  readonly tables: readonly string[];
  /** Indexes that `apply` does without: while a copy is built they are left out, and made in one go at its end. */
  readonly indexesForReads?: readonly string[];
  readonly filter?: EventFilter;
  /**
   * True when each row belongs to one stream: a poison event then parks its stream and the rest goes on.
   * False: a poison event stops the view and turns the service not ready.
   */
  readonly rowsBelongToOneStream: boolean;
  /**
   * True for events that a caller may be waiting for: they are committed at once, others a few milliseconds later
   * with what came meanwhile, which saves most of the commits. False: none of them. Default: all of them.
   */
  readonly isUrgent?: false | ((event: RecordedEvent) => boolean);
  /**
   * Milliseconds that events gather while none is urgent: fewer commits, later rows. Who waits for a position of a view without
   * urgent events shortens it. Default 15.
   */
  readonly gatherMs?: number;
  /** Prepares statements once per connection and returns the function that applies one event. */
  readonly open: (db: DatabaseSync) => ApplyEvent;
  /**
   * Checks a freshly built file of a new version, which no older one can be compared with: counts must agree with each
   * other and sampled streams, folded again from the log, must give the stored rows. Returns what is wrong.
   */
  readonly verify?: (db: DatabaseSync, readStream: ReadStream) => Promise<readonly string[]>;
};

export type ReadStream = (stream: string) => AsyncIterable<RecordedEvent>;

/**
 * Applies one event. A view may keep rows in memory until `flush`, so that a stream that is touched often in one
 * transaction is written once; the rows after a flush depend on the events only, never on where it fell.
 */
export type ApplyEvent = {
  (event: RecordedEvent): void;
  /** Writes everything that is still only in memory. Called before every COMMIT. */
  flush?: () => void;
  /** Forgets everything in memory, for the transaction was rolled back. */
  reset?: () => void;
  /** Called after every COMMIT, outside of a transaction. Must not throw. */
  committed?: () => void;
};
