import type { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import {
  StoreUnavailable,
  type EventFilter,
  type EventStore,
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
} from '../../../app/log/event-store.ts';
import { pagedSubscription, type Growth } from '../shared/paged-subscription.ts';
import { formatPosition, parsePosition } from '../shared/position.ts';
import { createContexts, type Contexts } from './contexts.ts';
import { readError } from './errors.ts';
import { EVENT_COLUMNS, rowSize, toEvent, type EventRow } from './rows.ts';
import { prepareLastNumber, readStoreId } from './schema.ts';
import type { SharedPages, SizedPage } from './shared-pages.ts';

/** The reading half of the port: all that a projection needs, in any thread. */
export type EventLogReader = Pick<
  EventStore,
  | 'storeId'
  | 'readStream'
  | 'readAll'
  | 'subscribe'
  | 'currentRevision'
  | 'lastPosition'
  | 'end'
  | 'idAt'
  | 'close'
>;

/**
 * Bounds of one look into the file. Parsing 256 KiB takes about 2 ms; one event adds at most its own 1 MiB
 * (about 10 ms), so that no look holds the HTTP thread for 20 ms.
 */
const PAGE_EVENTS = 500;
const PAGE_BYTES = 256 * 1024;
/** Positions a filtered look passes over at most. */
const PAGE_POSITIONS = 2000;

/** Milliseconds before another look into a file that could not be read. */
const RECOVER_MS = 200;

const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
  // Ends early on the signal; the loop looks at it next.
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
};

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * Reads on a connection of its own; `growth` wakes subscriptions. Closes the connection, not the growth. `shared`: what
 * several readers in one thread follow the log by.
 */
export const createLogReader = (
  db: DatabaseSync,
  file: string,
  growth: Growth,
  shared?: SharedPages,
): EventLogReader => {
  const storeId = readStoreId(db, file);
  const lastNumber = prepareLastNumber(db);
  const contexts = createContexts(db);
  let all: ReturnType<typeof pageReader> | undefined;
  let closed = false;

  const refuse = (signal?: AbortSignal): void => {
    if (closed) throw new StoreUnavailable('the event log is closed', 'closed');
    signal?.throwIfAborted();
  };
  const guarded = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw readError(file, error);
    }
  };
  const select = (rest: string) => {
    const statement = db.prepare(
      `SELECT ${EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream ${rest}`,
    );
    statement.setReturnArrays(true);
    return statement;
  };
  const lastPosition = async (signal?: AbortSignal): Promise<Position | undefined> => {
    refuse(signal);
    const last = guarded(lastNumber);
    return last === 0 ? undefined : formatPosition(last);
  };
  const OF_STREAM = 'WHERE e.stream = (SELECT id FROM streams WHERE name = ?)';
  const sql = {
    forward: select(`${OF_STREAM} AND e.revision >= ? ORDER BY e.revision LIMIT ?`),
    backward: select(`${OF_STREAM} AND e.revision <= ? ORDER BY e.revision DESC LIMIT ?`),
    all: select('WHERE e.position > ? ORDER BY e.position LIMIT ?'),
    id: db.prepare('SELECT id FROM events WHERE position = ?'),
    revision: db.prepare(
      'SELECT max(revision) AS last FROM events WHERE stream = (SELECT id FROM streams WHERE name = ?)',
    ),
  };

  /** Events of one look, and whether it ended by a bound: then there may be more. */
  const look = (
    statement: typeof sql.all,
    parameters: (string | number)[],
  ): { events: RecordedEvent[]; bounded: boolean } =>
    guarded(() => {
      const events: RecordedEvent[] = [];
      let bytes = 0;
      for (const row of statement.iterate(...parameters)) {
        const eventRow = row as unknown as EventRow;
        events.push(toEvent(file, eventRow, contexts));
        bytes += rowSize(eventRow);
        if (bytes >= PAGE_BYTES || events.length >= PAGE_EVENTS) return { events, bounded: true };
      }
      return { events, bounded: false };
    });

  /** Looks one after the other, the thread left to others between them. */
  async function* pages(
    next: (last: RecordedEvent | undefined, limit: number) => { events: RecordedEvent[]; bounded: boolean },
    limit: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<RecordedEvent> {
    refuse(signal);
    let left = limit;
    let last: RecordedEvent | undefined;
    while (left > 0) {
      const { events, bounded } = next(last, Math.min(left, PAGE_EVENTS));
      for (const event of events) {
        yield event;
        refuse(signal);
      }
      last = events.at(-1);
      left -= events.length;
      if (!bounded || left <= 0) return;
      await breathe();
      refuse(signal);
    }
  }

  return {
    storeId,
    readStream: (stream, { from, direction = 'forward', limit = Infinity, signal } = {}) => {
      const forward = direction === 'forward';
      const statement = forward ? sql.forward : sql.backward;
      const start = from ?? (forward ? 0 : Number.MAX_SAFE_INTEGER);
      const step = forward ? 1 : -1;
      return pages(
        (last, most) => look(statement, [stream, last === undefined ? start : last.revision + step, most]),
        limit,
        signal,
      );
    },
    readAll: ({ after, limit, signal }) => {
      const start = parsePosition(after);
      return pages(
        (last, most) => look(sql.all, [last === undefined ? start : Number(last.position), most]),
        limit,
        signal,
      );
    },
    subscribe: ({ after, filter, signal, patienceMs = 0 }) => {
      const own = pageReader(db, file, filter, lastNumber, contexts);
      return pagedSubscription(
        {
          readPage:
            shared?.reader((all ??= pageReader(db, file, undefined, lastNumber, contexts)), own, filter) ??
            own,
          changed: async (reached, until) => {
            await growth.changed(reached, until);
            if (patienceMs > 0) await pause(patienceMs, until);
          },
          isClosed: () => closed,
          recover: (until) => pause(RECOVER_MS, until),
          breathe,
        },
        parsePosition(after),
        signal,
      );
    },
    currentRevision: async (stream, signal): Promise<ExpectedRevision> => {
      refuse(signal);
      const last = guarded(() => sql.revision.get(stream))?.['last'];
      return typeof last === 'number' ? last : 'no_stream';
    },
    lastPosition,
    end: lastPosition,
    idAt: async (position, signal) => {
      refuse(signal);
      const id = guarded(() => sql.id.get(parsePosition(position)))?.['id'];
      return typeof id === 'string' ? id : undefined;
    },
    close: async () => {
      if (closed) return;
      closed = true;
      growth.wakeAll();
      db.close();
    },
  };
};

/** Looks of one subscription: its filter is part of the statement, so that rows outside it are not even copied. */
const pageReader = (
  db: DatabaseSync,
  file: string,
  filter: EventFilter | undefined,
  lastNumber: () => number,
  contexts: Contexts,
) => {
  const { condition, parameters } = filterSql(filter);
  const prepare = () => {
    const prepared = db.prepare(
      `SELECT ${EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream
       WHERE e.position > ? AND e.position <= ? ${condition} ORDER BY e.position`,
    );
    prepared.setReturnArrays(true);
    return prepared;
  };
  let statement: ReturnType<typeof prepare> | undefined;
  const readPage = (after: number): SizedPage => {
    statement ??= prepare();
    // The end is read first: what is committed between the two statements waits for the next look.
    const last = lastNumber();
    const upper = Math.min(last, after + PAGE_POSITIONS);
    const events: RecordedEvent[] = [];
    let bytes = 0;
    for (const row of statement.iterate(after, upper, ...parameters)) {
      const eventRow = row as unknown as EventRow;
      events.push(toEvent(file, eventRow, contexts));
      bytes += rowSize(eventRow);
      if (bytes >= PAGE_BYTES || events.length >= PAGE_EVENTS)
        return { events, considered: eventRow[0], atEnd: eventRow[0] === last, last, bytes };
    }
    return { events, considered: Math.max(after, upper), atEnd: upper === last, last, bytes };
  };
  return (after: number): SizedPage => {
    try {
      return readPage(after);
    } catch (error) {
      throw readError(file, error);
    }
  };
};

/** No name or type holds it. */
const LAST_CODE_POINT = '\u{10ffff}';

const filterSql = (
  filter: EventFilter | undefined,
): { condition: string; parameters: (string | number)[] } => {
  if (filter === undefined || 'alsoStoreRecords' in filter) return { condition: '', parameters: [] };
  // Unary plus: the log is walked by position, whatever indexes promise.
  const [column, prefixes] =
    'streamPrefixes' in filter ? ['+s.name', filter.streamPrefixes] : ['+e.type', filter.typePrefixes];
  // Whole categories, as those of views, are looked up in one set: a view names dozens of them.
  if ('streamPrefixes' in filter && prefixes.every((prefix) => /^[^-]+-$/.test(prefix)))
    return {
      condition: `AND substr(s.name, 1, instr(s.name, '-')) IN (${prefixes.map(() => '?').join(', ')})`,
      parameters: [...prefixes],
    };
  const tests = prefixes.map(() => `(${column} >= ? AND ${column} < ?)`).join(' OR ');
  return {
    condition: `AND (${tests || 'FALSE'})`,
    // Compared, and not cut: that takes twice as long, and some subscriptions walk a whole log at the start.
    parameters: prefixes.flatMap((prefix) => [prefix, `${prefix}${LAST_CODE_POINT}`]),
  };
};
