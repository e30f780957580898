import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../app/event-store.ts';
import type { EventFilter } from '../app/event-store.ts';

/**
 * A read model: SQLite tables folded from the log by one pure function (design §5). Disposable, never migrated:
 * a new `version` is rebuilt beside the live one and switched to.
 *
 * `apply` uses the event and its own tables only: no clock, no random, nothing of the batch it came in.
 */
export type View = {
  readonly name: string;
  /** Bump when tables or `apply` change. */
  readonly version: number;
  /** DDL of STRICT tables; every table has a primary key (the digest orders by it). */
  readonly schema: string;
  readonly tables: readonly string[];
  readonly filter?: EventFilter;
  /**
   * True when each row belongs to one stream: a poison event then parks its stream and the rest goes on.
   * False: a poison event stops the view and turns the service not ready.
   */
  readonly rowsBelongToOneStream: boolean;
  /** Prepares statements once per connection and returns the function that applies one event. */
  readonly open: (db: DatabaseSync) => (event: RecordedEvent) => void;
};
