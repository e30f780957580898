import { randomBytes } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../app/log/event-store.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { timeText } from '../filter/evaluate.ts';
import { privatePaths, publicText, type PrivatePaths } from './fold.ts';

/** A list of the past: what the objects of a kind were at a position that `changes` still reaches back to. */
export type AsOfRequest = {
  readonly position: Position;
  readonly privateOnly: readonly string[];
  /**
   * Objects of which `changes` holds only what came later, folded from their streams by the caller: the private document
   * at the position, undefined: there was none. Those that are missing here are named in the answer (`unknown`).
   */
  readonly folded: readonly {
    readonly id: string;
    readonly shown?: { readonly tenant: string; readonly document: string };
  }[];
};

export type AsOfTable = {
  /** Name of the temporary table; its columns are those of `resources` that lists read. */
  readonly table: string;
  /** Objects that have to be folded before the list can be told. */
  readonly unknown: readonly string[];
  readonly drop: () => void;
};

export type AsOfControl = { readonly turn: () => Promise<void> };

/** Objects that are looked at before others get their turn. */
const SLICE = 200;

type Shown = { readonly tenant: string; readonly document: string };
type ChangeRow = {
  readonly position: string;
  readonly type: string;
  readonly tenant: string;
  readonly document: string;
};

/**
 * Fills a temporary table with a kind's documents at a position. Three sources: the last change up to it; for objects that
 * never changed since retention began, the live row; for what only changed later, the caller's fold.
 */
export const fillAsOf = async (
  db: DatabaseSync,
  kind: string,
  tenants: readonly string[] | undefined,
  { position, privateOnly, folded }: AsOfRequest,
  { turn }: AsOfControl,
): Promise<AsOfTable> => {
  // Several may stand on one connection at the same time.
  const table = `as_of_${randomBytes(8).toString('hex')}`;
  db.exec(
    `CREATE TEMP TABLE ${table} (
       kind TEXT NOT NULL, id TEXT NOT NULL, tenant TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL,
       created TEXT NOT NULL, creation_time TEXT NOT NULL, listed INTEGER NOT NULL,
       public_json TEXT NOT NULL, private_json TEXT NOT NULL, PRIMARY KEY (created)
     ) STRICT`,
  );
  const insert = db.prepare(`INSERT INTO ${table} VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?)`);
  const nextIds = db.prepare('SELECT DISTINCT id FROM changes WHERE kind = ? AND id > ? ORDER BY id LIMIT ?');
  const lastUpTo = db.prepare(
    `SELECT position, type, tenant, document FROM changes WHERE kind = ? AND id = ? AND position <= ?
     ORDER BY position DESC, n DESC LIMIT 1`,
  );
  const first = db.prepare(
    'SELECT position, type FROM changes WHERE kind = ? AND id = ? ORDER BY position, n LIMIT 1',
  );
  const creation = db.prepare(
    `SELECT position FROM changes WHERE kind = ? AND id = ? AND type = 'created' AND position <= ?
     ORDER BY position DESC LIMIT 1`,
  );
  const unchanged = db.prepare(
    `SELECT id, created, tenant, private_json AS document FROM resources AS r
     WHERE kind = ? AND created > ? AND created <= ?
       AND NOT EXISTS (SELECT 1 FROM changes AS c WHERE c.kind = r.kind AND c.id = r.id)
     ORDER BY created LIMIT ?`,
  );
  const paths = privatePaths(privateOnly);
  const known = new Map(folded.map(({ id, shown }) => [id, shown]));
  const unknown: string[] = [];

  const add = (id: string, { tenant, document }: Shown, created: string): void => {
    if (tenants !== undefined && !tenants.includes(tenant)) return;
    const { project, name, creationTime, text } = rowOf(document, paths);
    const place = created === '' ? `!${creationTime} ${id}` : created;
    insert.run(kind, id, tenant, project, name, place, creationTime, text, document);
  };
  /** Where it stands in the order of creation: before everything else, when that was before retention began. */
  const createdOf = (id: string): string => {
    const made = creation.get(kind, id, position)?.['position'];
    return typeof made === 'string' ? made : '';
  };
  const addChanged = (id: string): void => {
    const row = lastUpTo.get(kind, id, position) as ChangeRow | undefined;
    if (row !== undefined) {
      if (row.type !== 'deleted') add(id, row, createdOf(id));
      return;
    }
    if (first.get(kind, id)?.['type'] === 'created') return;
    if (!known.has(id)) {
      unknown.push(id);
      return;
    }
    const shown = known.get(id);
    if (shown !== undefined) add(id, shown, '');
  };

  for (let after = ''; ; ) {
    const ids = nextIds.all(kind, after, SLICE).map((row) => String(row['id']));
    for (const id of ids) addChanged(id);
    after = ids.at(-1) ?? '';
    await turn();
    if (ids.length < SLICE) break;
  }
  for (let after = ''; ; ) {
    const rows = unchanged.all(kind, after, position, SLICE) as unknown as {
      id: string;
      created: string;
      tenant: string;
      document: string;
    }[];
    for (const row of rows) add(row.id, row, '');
    after = rows.at(-1)?.created ?? '';
    await turn();
    if (rows.length < SLICE) break;
  }
  return { table, unknown, drop: () => db.exec(`DROP TABLE temp.${table}`) };
};

const rowOf = (document: string, paths: PrivatePaths) => {
  const parsed = JSON.parse(document) as JsonObject;
  const metadata = objectAt(parsed, 'metadata');
  return {
    project: stringAt(metadata, 'project'),
    name: stringAt(metadata, 'name'),
    creationTime: timeText(stringAt(metadata, 'creation_timestamp')),
    text: publicText(parsed, paths),
  };
};
