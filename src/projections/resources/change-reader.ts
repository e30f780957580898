import type { StatementSync } from 'node:sqlite';
import type { Position } from '../../app/log/event-store.ts';
import type { ReadConnection } from '../runner/read-connection.ts';
import type { ChangeType } from './changes.ts';

/** Where a change stands in the order of all changes; a watch resumes after it. */
export type ChangeKey = { readonly position: Position; readonly n: number };

/** A change of one document, with the private document after it (the last one, when it is gone). */
export type Change = ChangeKey & {
  readonly kind: string;
  readonly id: string;
  readonly tenant: string;
  readonly type: ChangeType;
  /** JSON text. Secrets read as every other read shows them. */
  readonly document: string;
};

export type ChangePage = {
  readonly rows: number;
  readonly characters: number;
  /** Only of these; undefined: of all. */
  readonly tenants?: readonly string[] | undefined;
};

export type ChangeReader = {
  /**
   * What follows a key, oldest first: at most `rows`, and no more once their documents hold `characters` together (the
   * first one is given whatever its size). Fewer than `rows` may come although there are more; none means the end.
   */
  after(key: ChangeKey, page: ChangePage): readonly Change[];
  /** The document of the same object before this change; undefined: there was none, or it is no longer kept. */
  documentBefore(change: ChangeKey & Pick<Change, 'kind' | 'id'>): string | undefined;
  /** The last change so far; `BEFORE_ALL_CHANGES` when there was none. */
  newest(): ChangeKey;
  /** The last change that retention removed: what lies before it cannot be read any more. Undefined: none was. */
  prunedTo(): ChangeKey | undefined;
  /** Calls back, on this thread, whenever there may be more to read; the result ends that. */
  onAdvance(listener: () => void): () => void;
};

/** Stands before every change. */
export const BEFORE_ALL_CHANGES: ChangeKey = { position: '', n: 0 };

/** Negative when `a` comes before `b`; positions of one store have one width and so compare as text. */
export const compareKeys = (a: ChangeKey, b: ChangeKey): number =>
  a.position === b.position ? a.n - b.n : a.position < b.position ? -1 : 1;

/** Statements of the HTTP thread on the table `changes`; their query plans are tested. */
export const CHANGE_STATEMENTS = {
  after: `SELECT position, n, kind, id, tenant, type, document FROM changes
    WHERE (position, n) > (?1, ?2) ORDER BY position, n LIMIT ?3`,
  documentBefore: `SELECT document FROM changes INDEXED BY changes_by_object
    WHERE kind = ?1 AND id = ?2 AND (position, n) < (?3, ?4) ORDER BY position DESC, n DESC LIMIT 1`,
  newest: `SELECT position, n FROM changes
    WHERE position = (SELECT max(position) FROM changes) ORDER BY n DESC LIMIT 1`,
  prunedTo: 'SELECT pruned_position AS position, pruned_n AS n FROM newest WHERE one = 1',
} as const;

/** The same page of `tenants` tenants, so that one's reading costs nothing of the others' changes: one walk per tenant. */
export const changesOfTenants = (tenants: number): string => {
  const walks = Array.from(
    { length: tenants },
    (_, i) => `SELECT position, n FROM changes INDEXED BY changes_by_tenant
      WHERE tenant = ?${i + 4} AND (position, n) > (?1, ?2)`,
  );
  return `SELECT c.position, c.n, c.kind, c.id, c.tenant, c.type, c.document
    FROM (${walks.join(' UNION ALL ')} ORDER BY position, n LIMIT ?3) AS page
    CROSS JOIN changes AS c ON c.position = page.position AND c.n = page.n`;
};

/** Reads of the table `changes` on the HTTP thread, each one indexed and bounded. */
export const changeReader = (connection: ReadConnection): ChangeReader => {
  const prunedTo = (): ChangeKey | undefined => {
    const row = connection.statement(CHANGE_STATEMENTS.prunedTo).get();
    return row === undefined || row['position'] === '' ? undefined : keyOf(row);
  };
  const walk = ({ position, n }: ChangeKey, { rows, tenants }: ChangePage): Rows =>
    tenants === undefined
      ? connection.statement(CHANGE_STATEMENTS.after).iterate(position, n, rows)
      : connection.statement(changesOfTenants(tenants.length)).iterate(position, n, rows, ...tenants);
  return {
    after: (key, page) => {
      const found: Change[] = [];
      if (page.tenants?.length === 0) return found;
      let size = 0;
      for (const row of walk(key, page)) {
        const change = { ...row } as unknown as Change;
        found.push(change);
        size += change.document.length;
        if (size >= page.characters) break;
      }
      return found;
    },
    documentBefore: ({ kind, id, position, n }) => {
      const row = connection.statement(CHANGE_STATEMENTS.documentBefore).get(kind, id, position, n);
      return row === undefined ? undefined : String(row['document']);
    },
    newest: () => {
      const row = connection.statement(CHANGE_STATEMENTS.newest).get();
      return row === undefined ? (prunedTo() ?? BEFORE_ALL_CHANGES) : keyOf(row);
    },
    prunedTo,
    onAdvance: connection.onChanged,
  };
};

type Rows = ReturnType<StatementSync['iterate']>;

const keyOf = (row: Readonly<Record<string, unknown>>): ChangeKey => ({
  position: row['position'] as Position,
  n: row['n'] as number,
});
