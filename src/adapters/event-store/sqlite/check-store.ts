import { existsSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { createContexts, type Contexts } from './contexts.ts';
import { isDamage, messageOf, StoreDamaged, StoreTooNew } from './errors.ts';
import { logFile } from './files.ts';
import { contextFinding, EVENT_COLUMNS, rowFinding, type EventRow } from './rows.ts';
import { lastNumber, openLogForReading } from './schema.ts';

/** Findings of one kind that are listed; the rest is counted. */
const LISTED = 100;
/** Events between two breaths. */
const LOOK = 2000;

export type StoreFinding = {
  readonly check: 'file' | 'structure' | 'checksum' | 'json' | 'revisions' | 'positions' | 'reference';
  readonly finding: string;
};

export type StoreCheck = {
  readonly file: string;
  readonly events: number;
  readonly streams: number;
  /** Empty when the log is sound. At most 100 of each check. */
  readonly findings: readonly StoreFinding[];
  /** How many findings there were, listed or not. */
  readonly count: number;
};

/**
 * Checks a whole log, offline or beside a running service: the structure of the file, the checksum and JSON of
 * every event, gap-free revisions of every stream (bounded streams may begin late), and that no more positions are
 * unused than bounded streams let go. Never writes; never throws
 * for a finding.
 */
export const checkSqliteStore = (dataDir: string): Promise<StoreCheck> => checkSqliteLog(logFile(dataDir));

/** The same for a file of any name, for example a backup. */
export const checkSqliteLog = async (file: string): Promise<StoreCheck> => {
  const findings: StoreFinding[] = [];
  let count = 0;
  const report = (check: StoreFinding['check'], finding: string): void => {
    count += 1;
    if (findings.filter((known) => known.check === check).length < LISTED) findings.push({ check, finding });
  };
  const sizes = { events: 0, streams: 0 };
  if (!existsSync(file)) report('file', `${file} not found`);
  else {
    try {
      const db = openLogForReading(file);
      try {
        Object.assign(sizes, await checkAll(db, report));
      } finally {
        db.close();
      }
    } catch (error) {
      if (!(error instanceof StoreDamaged || error instanceof StoreTooNew || isDamage(error))) throw error;
      // The check has been run already: what is found counts, not the advice to run it.
      report('file', error instanceof StoreDamaged ? error.finding : messageOf(error));
    }
  }
  return { file, ...sizes, findings, count };
};

type Report = (check: StoreFinding['check'], finding: string) => void;

const checkAll = async (db: DatabaseSync, report: Report): Promise<{ events: number; streams: number }> => {
  for (const row of db.prepare(`PRAGMA integrity_check(${LISTED})`).all()) {
    const found = String(row['integrity_check']);
    if (found !== 'ok') for (const line of found.split('\n')) report('structure', line);
  }
  const events = await survive(report, () => checkEvents(db, report));
  // One state of the log: a service that writes meanwhile would add positions that no stream was counted with.
  db.exec('BEGIN');
  const streams = await survive(report, async () => checkRevisions(db, report));
  if (db.isTransaction) db.exec('COMMIT');
  return { events, streams };
};

/** A part that cannot be read is a finding; the other parts are still looked at. */
const survive = async (report: Report, part: () => Promise<number>): Promise<number> => {
  try {
    return await part();
  } catch (error) {
    if (!isDamage(error)) throw error;
    report('structure', messageOf(error));
    return 0;
  }
};

const checkEvents = async (db: DatabaseSync, report: Report): Promise<number> => {
  const look = db.prepare(
    `SELECT ${EVENT_COLUMNS} FROM events e LEFT JOIN streams s ON s.id = e.stream
     WHERE e.position > ? AND e.position <= ? ORDER BY e.position`,
  );
  look.setReturnArrays(true);
  const contexts = createContexts(db);
  let seen = 0;
  const last = lastNumber(db);
  for (let after = 0; after < last; after += LOOK) {
    for (const row of look.iterate(after, after + LOOK)) {
      seen += 1;
      checkRow(row as unknown as EventRow, contexts, report);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
};

const checkRow = (row: EventRow, contexts: Contexts, report: Report): void => {
  const [position, stream] = row;
  // The join found no stream: the checksum, which covers its name, cannot be asked.
  if (stream === null) return report('reference', `the event at position ${position} belongs to no stream`);
  const finding = rowFinding(row);
  if (finding !== undefined) report('checksum', finding);
  const unknown = contextFinding(row, contexts);
  if (unknown !== undefined) return report('reference', unknown);
  for (const [what, text] of [
    ['data', row[7]],
    ['metadata', `${contexts.textOf(row[9])}${row[8]}`],
  ] as const) {
    try {
      JSON.parse(text);
    } catch (error) {
      report('json', `${what} of ${stream}@${row[2]} at position ${position}: ${messageOf(error)}`);
    }
  }
};

const checkRevisions = (db: DatabaseSync, report: Report): number => {
  const streams = db.prepare(
    `SELECT s.name, s.max_count, count(e.position) AS events, min(e.revision) AS first, max(e.revision) AS last
     FROM streams s LEFT JOIN events e ON e.stream = s.id GROUP BY s.id`,
  );
  let seen = 0;
  let stored = 0;
  let letGo = 0;
  for (const row of streams.iterate()) {
    seen += 1;
    const [name, events, first, last] = [
      String(row['name']),
      Number(row['events']),
      Number(row['first']),
      Number(row['last']),
    ];
    stored += events;
    if (events === 0) continue;
    if (row['max_count'] !== null) letGo += first;
    else if (first > 0) report('revisions', `${name} begins at revision ${first}, not at 0`);
    if (last - first + 1 !== events)
      report('revisions', `${name} has ${events} events from ${first} to ${last}`);
  }
  const missing = lastNumber(db) - stored - letGo;
  if (missing !== 0)
    report(
      'positions',
      `the log has ${missing} more position${missing === 1 ? '' : 's'} than events account for`,
    );
  return seen;
};
