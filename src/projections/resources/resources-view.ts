import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { RETENTION_CATEGORY } from '../../domain/audit/retention.ts';
import { placesOf, valueAtPlace, withValueAtPlace } from '../../domain/document-places.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ERASED } from '../../domain/personal.ts';
import type { ResourceView } from '../../domain/resource.ts';
import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import type { View } from '../view.ts';
import { openChangeLog, type ChangeType } from './changes.ts';
import { openCommandLog } from './commands.ts';
import { newEntry, type Entry } from './entry.ts';
import {
  announcedBy,
  changesDocument,
  commandIdOf,
  foldEvent,
  isLive,
  privateDocument,
  textIn,
  viewOf,
  type Decode,
  type DocumentKind,
} from './fold.ts';
import { RESOURCES_INDEXES_FOR_READS, RESOURCES_SCHEMA, RESOURCES_TABLES } from './schema.ts';
import { openStateTables } from './state-tables.ts';
import { verifyResources } from './verify.ts';

/** Milliseconds that the write-ahead log waits for readers before it is tried again after the next commit. */
const PATIENCE_MS = 100;

/** What of erased text could stay in the file of a view beside its rows. */
export type Pages = {
  /** Within a transaction: what is removed or replaced from now on leaves no text in free pages. */
  readonly overwrite: () => void;
  /**
   * After a commit: moves the write-ahead log into the file and empties it, when something was erased since. While
   * somebody reads what was before, it cannot be emptied: then it is tried again after the next commit.
   */
  readonly committed: () => void;
};

const openPages = (db: DatabaseSync): Pages => {
  // A crash may have come between an erasure and the emptying behind it.
  let holdsErased = true;
  return {
    overwrite: () => {
      db.exec('PRAGMA secure_delete = ON');
      holdsErased = true;
    },
    committed: () => {
      if (holdsErased) holdsErased = !emptied(db);
    },
  };
};

/** True when the write-ahead log is empty, or there is none. */
const emptied = (db: DatabaseSync): boolean => {
  const before = Number(db.prepare('PRAGMA busy_timeout').get()?.['timeout'] ?? 0);
  try {
    db.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`);
    return db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
  } catch {
    return false;
  } finally {
    db.exec(`PRAGMA busy_timeout = ${before}`);
  }
};

type ResourcesViewOptions = {
  readonly kinds: readonly DocumentKind[];
  readonly codec: Decode;
  /**
   * Stream categories that hold no document but whose commands `findCommand` and `findAppend` must know: those of
   * aggregates that go through the command runner and can grow long. Default: none.
   */
  readonly commandsOf?: readonly string[];
  /** Days that `changes` reaches back from the newest event. Default 90; less saves disk, a watch resumes less far. */
  readonly retentionDays?: number;
};

const DEFAULT_RETENTION_DAYS = 90;

/** Documents as the surfaces show them, who may see them, and how they changed. */
export const resourcesView = ({
  kinds,
  codec,
  commandsOf = [],
  retentionDays,
}: ResourcesViewOptions): View => {
  const days = retentionDays ?? DEFAULT_RETENTION_DAYS;
  const indexOnly = commandsOf.map((category) => `${category}-`);
  return {
    name: 'resources',
    version: 11,
    settings: JSON.stringify({
      retentionDays: days,
      commandsOf,
      stateVersions: Object.fromEntries(kinds.map(({ kind, stateVersion }) => [kind, stateVersion])),
    }),
    schema: RESOURCES_SCHEMA,
    tables: RESOURCES_TABLES,
    indexesForReads: RESOURCES_INDEXES_FOR_READS,
    filter: {
      streamPrefixes: [...kinds.map(({ kind }) => kind), ...commandsOf, RETENTION_CATEGORY].map(
        (category) => `${category}-`,
      ),
    },
    rowsBelongToOneStream: true,
    // Nobody waits for what the service does on its own, and what only the index of commands holds is looked up much later.
    isUrgent: ({ stream, metadata }) =>
      stringAt(objectAt(metadata, 'actor'), 'authMethod') !== 'internal' &&
      !indexOnly.some((prefix) => stream.startsWith(prefix)),
    gatherMs: 40,
    open: (db) => openResources(db, kinds, codec, days),
    verify: (db, readStream) => verifyResources(db, kinds, codec, readStream),
  };
};

/** Streams kept folded between batches: what is touched again soon need not be parsed again. */
const KEPT_STREAMS = 2_000;

const openResources = (
  db: DatabaseSync,
  kinds: readonly DocumentKind[],
  codec: Decode,
  retentionDays: number,
): ReturnType<View['open']> => {
  const byCategory = new Map(kinds.map((kind) => [kind.kind, kind]));
  const tables = openStateTables(db);
  const changeLog = openChangeLog(db, retentionDays);
  const commandLog = openCommandLog(db);
  const entries = new Map<string, Entry>();
  const dirty = new Set<Entry>();
  const pages = openPages(db);

  const entryOf = (stream: string): Entry | undefined => {
    const known = entries.get(stream);
    if (known !== undefined) return known;
    const { category, id } = parseStreamName(stream);
    const kind = byCategory.get(category);
    if (kind === undefined) return undefined;
    const entry = tables.load(stream, kind, id) ?? newEntry(stream, kind, id);
    entries.set(stream, entry);
    return entry;
  };

  const recordChange = (
    entry: Entry,
    event: RecordedEvent,
    stateBefore: unknown,
    isSameAppend: boolean,
  ): void => {
    const view = viewOf(entry.kind, entry.folded.state);
    const before = isSameAppend ? entry.change : undefined;
    const wasLive = before === undefined ? entry.tenant !== undefined : before.type !== 'created';
    const live = isLive(view);
    if (before !== undefined && (live || before.type !== 'parting')) changeLog.takeBack(before.position);
    entry.change = undefined;
    const type = typeOfChange(wasLive, live);
    const tenant = view.exists ? view.tenant : (entry.tenant ?? '');
    const document = view.exists
      ? JSON.stringify(privateDocument(view.document, entry.folded.counted.version))
      : JSON.stringify({ id: entry.id });
    if (type !== undefined) {
      changeLog.add({
        position: event.position,
        kind: entry.kind.kind,
        id: entry.id,
        tenant,
        type,
        at: event.recordedAt,
        document,
      });
      const parts =
        before === undefined ? isParting(entry.kind, stateBefore, view) : before.type === 'parting';
      entry.change = { position: event.position, type: type === 'updated' && parts ? 'parting' : type };
    }
    if (!live) entry.created = '';
    else if (entry.tenant === undefined) entry.created = event.position;
    entry.tenant = live ? tenant : undefined;
    entry.rendered = live ? { view, privateText: document } : undefined;
  };

  /**
   * A person's key is gone: what was shown in clear of it is shown as erased, as a file that is built now would. Rows are
   * overwritten where they lie, so that no clear text stays in pages that are free.
   */
  const erase = ({ data }: RecordedEvent): void => {
    const subjectId = textIn(data, 'subjectId');
    pages.overwrite();
    for (const kind of kinds) {
      if (kind.personal === undefined) continue;
      const stream = streamName(kind.kind, subjectId);
      changeLog.rewrite(kind.kind, subjectId, (document) => withErased(document, kind.personal ?? []));
      const entry = entryOf(stream);
      if (entry?.tenant === undefined) continue;
      const view = viewOf(kind, entry.folded.state);
      if (!isLive(view)) continue;
      if (entry.position === '') entry.position = tables.positionOf(entry);
      const document = privateDocument(view.document, entry.folded.counted.version);
      entry.rendered = { view, privateText: JSON.stringify(document) };
      dirty.add(entry);
    }
  };

  const apply = (event: RecordedEvent): void => {
    changeLog.saw(event.recordedAt);
    if (event.type === 'SubjectKeyDestroyed') {
      erase(event);
      return;
    }
    const entry = entryOf(event.stream);
    if (entry === undefined) {
      commandLog.add(event);
      return;
    }
    if (event.revision <= entry.folded.revision) return; // a redelivery
    commandLog.add(event);
    const commandId = commandIdOf(event);
    const isSameAppend = entry.folded.counted.commandId === commandId;
    const { state: stateBefore } = entry.folded;
    entry.folded = foldEvent(entry.folded, entry.kind, codec, event);
    entry.position = event.position;
    entry.announced = announcedBy(event);
    dirty.add(entry);
    if (!isSameAppend && !changesDocument(codec, event.type)) entry.change = undefined;
    if (changesDocument(codec, event.type)) recordChange(entry, event, stateBefore, isSameAppend);
  };

  const flush = (): void => {
    for (const entry of dirty) {
      tables.store(entry);
      entries.delete(entry.stream); // and in again: what was touched last is forgotten last
      entries.set(entry.stream, entry);
    }
    dirty.clear();
    tables.flushCounts();
    commandLog.flush();
    changeLog.flush();
    forgetOldest(entries);
  };

  const reset = (): void => {
    entries.clear();
    dirty.clear();
    commandLog.reset();
    tables.reset();
    changeLog.reset();
  };

  return Object.assign(apply, { flush, reset, committed: pages.committed });
};

/** The document with what it says of a person erased. */
const withErased = (document: string, paths: readonly string[]): string => {
  let erased = JSON.parse(document) as JsonObject;
  for (const path of paths)
    for (const place of placesOf(erased, path))
      if (typeof valueAtPlace(erased, place) === 'string')
        erased = withValueAtPlace(erased, place, ERASED) as JsonObject;
  return JSON.stringify(erased);
};

/** Its deletion had been requested before this event already. */
const isParting = (kind: DocumentKind, stateBefore: unknown, view: ResourceView): boolean => {
  if (!view.exists || view.deletionTimestamp === undefined) return false; // nearly always: nothing to look up
  const before = viewOf(kind, stateBefore);
  return before.exists && before.deletionTimestamp !== undefined;
};

const typeOfChange = (wasLive: boolean, live: boolean): ChangeType | undefined => {
  if (live) return wasLive ? 'updated' : 'created';
  return wasLive ? 'deleted' : undefined;
};

const forgetOldest = (entries: Map<string, Entry>): void => {
  for (const stream of entries.keys()) {
    if (entries.size <= KEPT_STREAMS) return;
    entries.delete(stream);
  }
};
