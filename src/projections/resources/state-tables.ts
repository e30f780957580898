import type { DatabaseSync } from 'node:sqlite';
import type { AppendType } from './changes.ts';
import {
  privateDocument,
  privatePaths,
  publicText,
  withLent,
  type DocumentKind,
  type PrivatePaths,
} from './fold.ts';
import { NOTHING_STORED, type Entry, type Rendered, type Stored } from './entry.ts';
import { openStateParts } from './state-parts.ts';
import { openSums } from './sums.ts';
import { openTermTables, type OwnedTerms } from './term-tables.ts';
import { isListed, termsOf, type Term } from './terms.ts';
import { timeText } from '../filter/evaluate.ts';

/** Reads and writes one folded stream: its state, its live document, and the rows that follow from it. */
export type StateTables = {
  readonly load: (stream: string, kind: DocumentKind, id: string) => Entry | undefined;
  readonly store: (entry: Entry) => void;
  /** The position that the row of a live document shows. */
  readonly positionOf: (entry: Pick<Entry, 'kind' | 'id'>) => string;
  /** Writes the sums that `store` gathered. */
  readonly flushCounts: () => void;
  readonly reset: () => void;
};

type StateRow = {
  readonly revision: number;
  readonly version: number;
  readonly command_id: string;
  readonly counted: number;
  readonly tenant: string | null;
  readonly change_position: string | null;
  readonly change_type: AppendType | null;
  readonly created: string;
  readonly refs: string;
  readonly marks: string;
  readonly terms: string;
  readonly announced: string;
  readonly state: string;
};
type Pointer = { readonly kind: string; readonly id: string };

const NOTHING = '[]';

export const openStateTables = (db: DatabaseSync): StateTables => {
  const selectState = db.prepare('SELECT * FROM states WHERE stream = ?');
  const upsertState = db.prepare(
    `INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (stream) DO UPDATE SET revision = excluded.revision, version = excluded.version,
       command_id = excluded.command_id, counted = excluded.counted, tenant = excluded.tenant,
       change_position = excluded.change_position, change_type = excluded.change_type,
       created = excluded.created, refs = excluded.refs, marks = excluded.marks, terms = excluded.terms,
       announced = excluded.announced, state = excluded.state`,
  );
  const upsertResource = db.prepare(
    'INSERT OR REPLACE INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
  );
  // Only what is in no index: SQLite rewrites every index whose columns are named, changed or not.
  const updateResource = db.prepare(
    `UPDATE resources SET revision = ?, version = ?, position = ?, deleting = ?, listed = ?,
       public_json = ?, private_json = ? WHERE kind = ? AND id = ?`,
  );
  const touchResource = db.prepare(
    'UPDATE resources SET revision = ?, position = ? WHERE kind = ? AND id = ?',
  );
  const positionOf = db.prepare('SELECT position FROM resources WHERE kind = ? AND id = ?');
  const deleteResource = db.prepare('DELETE FROM resources WHERE kind = ? AND id = ?');
  const addMark = db.prepare('INSERT OR IGNORE INTO marks VALUES (?, ?, ?, ?)');
  const dropMark = db.prepare('DELETE FROM marks WHERE kind = ? AND mark = ? AND tenant = ? AND id = ?');
  const addRef = db.prepare('INSERT OR IGNORE INTO refs VALUES (?, ?, ?, ?, ?)');
  const dropRef = db.prepare(
    'DELETE FROM refs WHERE to_kind = ? AND to_id = ? AND tenant = ? AND from_kind = ? AND from_id = ?',
  );
  const addAnnounced = db.prepare('INSERT OR REPLACE INTO announced VALUES (?, ?, ?, ?, ?, ?)');
  const dropAnnounced = db.prepare(
    'DELETE FROM announced WHERE to_kind = ? AND to_id = ? AND from_kind = ? AND from_id = ?',
  );
  const termTables = openTermTables(db);
  const stateParts = openStateParts(db);
  const compiled = new Map<DocumentKind, PrivatePaths>();
  const privatePathsOf = (kind: DocumentKind): PrivatePaths => {
    const paths = compiled.get(kind) ?? privatePaths(kind.privateOnly);
    compiled.set(kind, paths);
    return paths;
  };
  const counts = openSums(db, { byTenant: 'counts', ofAll: 'totals' }, ['kind']);

  const storeRefs = (entry: Entry, refs: string, tenant: string | undefined): void => {
    const { tenant: former = '', refs: stored } = entry.stored;
    const moved = tenant !== entry.stored.tenant;
    if (refs === stored && !moved) return;
    const { kind } = entry.kind;
    const before = JSON.parse(stored) as Pointer[];
    const after = JSON.parse(refs) as Pointer[];
    for (const to of before)
      if (moved || !holds(after, to)) dropRef.run(to.kind, to.id, former, kind, entry.id);
    for (const to of after)
      if (moved || !holds(before, to)) addRef.run(to.kind, to.id, tenant ?? '', kind, entry.id);
  };
  const storeAnnounced = (entry: Entry): void => {
    if (entry.announced === entry.storedAnnounced) return;
    const { kind } = entry.kind;
    for (const to of announcedIn(entry.storedAnnounced).targets)
      dropAnnounced.run(to.kind, to.id, kind, entry.id);
    const { revision, position, targets } = announcedIn(entry.announced);
    for (const to of targets) addAnnounced.run(to.kind, to.id, kind, entry.id, revision, position);
    entry.storedAnnounced = entry.announced;
  };
  const storeMarks = (entry: Entry, marks: string, tenant: string | undefined): void => {
    if (marks === entry.stored.marks && tenant === entry.stored.tenant) return;
    const { kind } = entry.kind;
    for (const mark of JSON.parse(entry.stored.marks) as string[])
      dropMark.run(kind, mark, entry.stored.tenant ?? '', entry.id);
    for (const mark of JSON.parse(marks) as string[]) addMark.run(kind, mark, tenant ?? '', entry.id);
  };
  const storeLive = (entry: Entry, { view, privateText }: Rendered): void => {
    const { kind } = entry.kind;
    const version = entry.folded.counted.version;
    const shown = publicText(privateDocument(view.document, version), privatePathsOf(entry.kind));
    const deleting = view.deletionTimestamp === undefined ? 0 : 1;
    const listed = isListed(entry.kind, view.document) ? 1 : 0;
    const { revision } = entry.folded;
    if (isSameRow(entry, view)) {
      updateResource.run(
        revision,
        version,
        entry.position,
        deleting,
        listed,
        shown,
        privateText,
        kind,
        entry.id,
      );
      return;
    }
    upsertResource.run(
      kind,
      entry.id,
      view.tenant,
      view.project,
      view.name,
      revision,
      version,
      entry.position,
      deleting,
      entry.created,
      timeText(view.creationTimestamp),
      listed,
      shown,
      privateText,
    );
  };

  const storeDocument = (entry: Entry): Stored => {
    const { kind, tenant, rendered, stored } = entry;
    if (tenant !== undefined && rendered === undefined) {
      touchResource.run(entry.folded.revision, entry.position, kind.kind, entry.id);
      const marks = withLent(stored.marks, kind, entry.folded);
      storeMarks(entry, marks, tenant);
      return { ...stored, marks };
    }
    if (rendered !== undefined) storeLive(entry, rendered);
    else if (stored.tenant !== undefined) deleteResource.run(kind.kind, entry.id);
    if (tenant !== stored.tenant) {
      if (stored.tenant !== undefined) counts.add([kind.kind], stored.tenant, -1);
      if (tenant !== undefined) counts.add([kind.kind], tenant, 1);
    }
    const next = rendered === undefined ? NOTHING_STORED : shownOf(entry, rendered);
    storeRefs(entry, next.refs, tenant);
    storeMarks(entry, next.marks, tenant);
    if (next.terms !== stored.terms || next.created !== stored.created || tenant !== stored.tenant)
      termTables.replace(ownedTerms(kind.kind, stored), ownedTerms(kind.kind, next));
    return next;
  };

  return {
    load: (stream, kind, id) => {
      const row = selectState.get(stream) as unknown as StateRow | undefined;
      if (row === undefined) return undefined;
      const tenant = row.tenant ?? undefined;
      const { state, storedParts } = stateParts.load(stream, kind, row.state);
      return {
        stream,
        kind,
        id,
        folded: {
          revision: row.revision,
          counted: { version: row.version, commandId: row.command_id, counted: row.counted === 1 },
          state,
        },
        position: '',
        tenant,
        created: row.created,
        change:
          row.change_position === null || row.change_type === null
            ? undefined
            : { position: row.change_position, type: row.change_type },
        rendered: undefined,
        announced: row.announced,
        storedAnnounced: row.announced,
        storedParts,
        stored: {
          tenant,
          // Unknown after a restart: the first write of each document then writes its whole row.
          project: undefined,
          name: undefined,
          creationTimestamp: undefined,
          created: row.created,
          refs: row.refs,
          marks: row.marks,
          terms: row.terms,
        },
      };
    },
    store: (entry) => {
      entry.stored = storeDocument(entry);
      storeAnnounced(entry);
      const { folded, stored, change } = entry;
      upsertState.run(
        entry.stream,
        folded.revision,
        folded.counted.version,
        folded.counted.commandId,
        folded.counted.counted ? 1 : 0,
        stored.tenant ?? null,
        change?.position ?? null,
        change?.type ?? null,
        entry.created,
        stored.refs,
        stored.marks,
        stored.terms,
        entry.announced,
        stateParts.store(entry),
      );
      entry.rendered = undefined;
    },
    positionOf: ({ kind, id }) => {
      const row = positionOf.get(kind.kind, id);
      return typeof row?.['position'] === 'string' ? row['position'] : '';
    },
    flushCounts: () => {
      for (const sums of [counts, termTables]) sums.flush();
    },
    reset: () => {
      for (const sums of [counts, termTables]) sums.reset();
    },
  };
};

type Announced = {
  readonly revision: number;
  readonly position: string;
  readonly targets: readonly Pointer[];
};
const announcedIn = (text: string): Announced =>
  text === '' ? { revision: 0, position: '', targets: [] } : (JSON.parse(text) as Announced);

const holds = (pointers: readonly Pointer[], { kind, id }: Pointer): boolean =>
  pointers.some((pointer) => pointer.kind === kind && pointer.id === id);

/** What the tables will hold of a live document. */
const shownOf = ({ kind, tenant, created, folded }: Entry, { view }: Rendered): Stored => ({
  tenant,
  project: view.project,
  name: view.name,
  creationTimestamp: view.creationTimestamp,
  created,
  refs: textOfRefs(kind.pointsAt(view.document)),
  marks: withLent(JSON.stringify(kind.marks?.(view.document) ?? []), kind, folded),
  terms: JSON.stringify(termsOf(kind, view)),
});

/** True when nothing of the stored row changes that an index holds. */
const isSameRow = ({ tenant, created, stored }: Entry, view: Rendered['view']): boolean =>
  stored.tenant === tenant &&
  stored.created === created &&
  stored.project === view.project &&
  stored.name === view.name &&
  stored.creationTimestamp === view.creationTimestamp;

const ownedTerms = (kind: string, { tenant, created, terms }: Stored): OwnedTerms | undefined =>
  tenant === undefined ? undefined : { kind, tenant, created, terms: JSON.parse(terms) as Term[] };

/** Only kind and id, in the order in which the document holds them. */
const textOfRefs = (pointers: readonly Pointer[]): string =>
  pointers.length === 0 ? NOTHING : JSON.stringify(pointers.map(({ kind, id }) => ({ kind, id })));
