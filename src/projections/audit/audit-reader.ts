import type { DatabaseSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import { rootAt, rootOfRange } from '../../app/audit/merkle/compact-range.ts';
import { emptyRoot } from '../../app/audit/merkle/hashing.ts';
import type { LeafRecord } from '../../app/audit/merkle/leaf.ts';
import type { AlsoAbout, AuditLeaf, AuditTree, TenantTree } from '../../app/audit/tree.ts';
import type { LeafIndex } from '../../app/audit/verified-reads.ts';
import type { Position } from '../../app/log/event-store.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import { commandBytes } from '../resources/commands.ts';
import { type ReadConnection, openReadConnection } from '../runner/read-connection.ts';
import { blocksOf, firstInBlocks } from './event-ids.ts';
import { OUTCOMES, resourceStream, searchable } from './facts.ts';
import {
  firstWhere,
  intersect,
  MOST_FOUND,
  MOST_LEAVES,
  remembering,
  union,
  walkOf,
  type AuditPage,
  type AuditQuery,
  type LeafList,
  type Order,
  type Walk,
} from './find.ts';
import { peopleReader, type PeopleReader } from './people.ts';
import { MAIN_TREE } from './schema.ts';
import { AUDIT_STATEMENTS, AUDIT_STATEMENTS as SQL, SEEKS } from './statements.ts';
import { hashesOfTree, openTiles } from './tiles.ts';
import { hashesOf } from './tree-writer.ts';

/** Texts by their numbers and the other way round. */
type NameReader = {
  readonly text: (id: number) => string;
  /** Undefined: no event has it. */
  readonly id: (text: string) => number | undefined;
};

const MOST_REMEMBERED = 10_000;

const createNameReader = ({ statement, source }: ReadConnection): NameReader => {
  // Numbers never change in one file; another file may have others.
  // Counted by size: `max` would take the room for all of them at once.
  const known = new LRUCache<number, string>({ maxSize: MOST_REMEMBERED, sizeCalculation: () => 1 });
  let of = source();
  return {
    text: (id) => {
      if (source() !== of) {
        known.clear();
        of = source();
      }
      const remembered = known.get(id);
      if (remembered !== undefined) return remembered;
      const text = String(statement(AUDIT_STATEMENTS.nameText).get(id)?.['text'] ?? '');
      known.set(id, text);
      return text;
    },
    id: (text) => statement(AUDIT_STATEMENTS.nameId).get(text)?.['id'] as number | undefined,
  };
};

/** What the HTTP thread reads of the audit view; a worker may open its own on the same file. */
export type AuditReader = AuditTree &
  PeopleReader & {
    /** Number of leaves whose running maximum of recorded time is not later; times are ISO. */
    sizeAtTime(time: string): number;
    /** Position of the last leaf whose running maximum of recorded time is not later; undefined: before the first. */
    positionAt(time: string): Position | undefined;
    positionOf(index: number): Position | undefined;
    /** Number of the leaf of an event; undefined when it is none (yet). */
    indexOf(stream: string, revision: number): number | undefined;
    /** In whose history an event stands, '' is the service's own; undefined when it is no leaf (yet). Always one statement. */
    tenantAt(stream: string, revision: number): string | undefined;
    /** The leaf of an event as its stream has it; undefined when it is none (yet). */
    standing: LeafIndex['standing'];
    /** Leaves that fit a query, in its order. Throws TypeError for the id of an event with `desc`: there is one at most. */
    find(query: AuditQuery): AuditPage;
    /** The file that is read, or the connection in memory: for `openAuditReader` in a thread that does long work. */
    source(): string | DatabaseSync;
  };

/** A reader of its own on a file, for threads that do long work: exports, range proofs. The file stays readable when a rebuild replaces it. */
export const openAuditReader = (
  source: string | DatabaseSync,
): { readonly reader: AuditReader; readonly close: () => void } => {
  const connection = openReadConnection(source);
  return { reader: auditReader(connection), close: connection.close };
};

export const auditReader = (connection: ReadConnection): AuditReader => {
  const { statement } = connection;
  const names = createNameReader(connection);

  const treeRow = (tree: number): { size: number; range: Uint8Array } | undefined =>
    statement(SQL.tree).get(tree) as { size: number; range: Uint8Array } | undefined;
  const tileOf = openTiles(statement);
  const hashesIn = (tree: number) => hashesOfTree((level, index) => tileOf(tree, level, index), connection);
  const mainHash = hashesIn(MAIN_TREE);
  const size = (): number => numberIn(statement(SQL.size).get(), 'size') ?? 0;

  const alsoAbout = (row: MentionRow): AlsoAbout => {
    const { category: kind, id: resourceId } = parseStreamName(names.text(row.resource));
    return { kind, resourceId, hidden: row.hidden === 1 };
  };
  const alsoOf = (index: number): AlsoAbout[] =>
    (statement(SQL.mentions).all(index, index + 1) as unknown as MentionRow[]).map(alsoAbout);
  const toLeaf = (row: LeafRow, also: readonly AlsoAbout[] = alsoOf(row.idx)): AuditLeaf => {
    const resource = row.resource === null ? '' : names.text(row.resource);
    return {
      index: row.idx,
      position: row.position,
      recordedAt: new Date(row.recorded_ms).toISOString(),
      tenant: names.text(row.tenant),
      tenantIndex: row.tenant_idx,
      subject: names.text(row.subject),
      kind: row.kind === null ? '' : names.text(row.kind),
      resourceId: resource === '' ? '' : parseStreamName(resource).id,
      ...(also.length === 0 ? {} : { also }),
      outcome: OUTCOMES[row.outcome] ?? 'accepted',
      record: recordOf(row, names.text),
    };
  };
  const leaf = (index: number): AuditLeaf | undefined => {
    const row = statement(SQL.leaf).get(index) as LeafRow | undefined;
    return row === undefined ? undefined : toLeaf(row);
  };

  const tenantTree = (tenant: string): TenantTree => {
    const tree = names.id(searchable(tenant)) ?? NO_NAME;
    const hashAt = hashesIn(tree);
    const ownSize = (): number => treeRow(tree)?.size ?? 0;
    const mainIndexOf = (index: number): number | undefined => {
      if (!Number.isSafeInteger(index) || index < 0 || index >= ownSize()) return undefined;
      const at = firstWhere(size(), (main) => {
        const next = numberIn(statement(SQL.firstOfTenant).get(tree, main + 1), 'tenant_idx');
        return next === undefined || next > index;
      });
      return numberIn(statement(SQL.firstOfTenant).get(tree, at), 'idx');
    };
    return {
      size: ownSize,
      hashAt,
      tile: (level, index) => tileOf(tree, level, index),
      indexBelow: (mainSize) => {
        const last = numberIn(statement(SQL.lastOfTenant).get(tree, mainSize), 'tenant_idx');
        return last === undefined ? 0 : last + 1;
      },
      rootAt: (wanted) => {
        if (wanted === 0) return emptyRoot();
        const row = treeRow(tree);
        return row?.size === wanted ? rootOfRange(hashesOf(row.range), wanted) : rootAt(wanted, hashAt);
      },
      mainIndexOf,
      leaves: (index, limit) => {
        const from = mainIndexOf(index);
        if (from === undefined) return [];
        const rows = statement(SQL.leavesOfTenant).all(tree, from, Math.min(limit, MOST_LEAVES));
        return rows.map((row) => toLeaf(row as unknown as LeafRow));
      },
    };
  };

  const timeOf = (index: number): number => numberIn(statement(SQL.timeOf).get(index), 'latest_ms') ?? 0;
  const positionOf = (index: number): Position | undefined =>
    statement(SQL.positionOf).get(index)?.['position'] as Position | undefined;
  /** Leaves of which the running maximum is below (or, with `including`, at) a time. */
  const leavesBefore = (time: string, including: boolean): number => {
    const ms = Date.parse(time);
    return firstWhere(size(), (index) => (including ? timeOf(index) > ms : timeOf(index) >= ms));
  };

  const withId = (eventId: string, order: Order): LeafList => {
    if (order === 'desc') throw new TypeError('an event is looked for by its id in log order');
    const bytes = commandBytes(eventId);
    const { from } = remembering((index) =>
      firstInBlocks(index, size(), (block) =>
        numberIn(statement(SQL.nextOfId).get(block, bytes, index), 'idx'),
      ),
    );
    return { from, cost: blocksOf(size()) };
  };

  /** Lists of leaves that are walked in one way. */
  const listsAlong = (order: Order, { numberAt, placeOf }: Walk) => {
    const seeks = SEEKS[order];
    const along = (look: (index: number) => number | undefined): LeafList =>
      remembering((place) => {
        const index = look(numberAt(place));
        return index === undefined ? undefined : placeOf(index);
      });
    /** The list of leaves with a value in a column; undefined when no leaf has it. */
    const listOf = (sql: string, value: number | undefined): LeafList | undefined =>
      value === undefined ? undefined : along((index) => numberIn(statement(sql).get(value, index), 'idx'));
    const named = (sql: string, text: string): LeafList | undefined =>
      listOf(sql, names.id(searchable(text)));
    /** Events of the document or kind itself, and those that name it. */
    const about = (own: string, mentioned: string, text: string, provider: boolean): LeafList => {
      const id = names.id(searchable(text));
      const hidden = id === undefined ? [] : provider ? [0, 1] : [0];
      const naming = hidden.map((each) =>
        along((index) => numberIn(statement(mentioned).get(id ?? NO_NAME, each, index), 'idx')),
      );
      return union([named(own, text), ...naming].filter((list) => list !== undefined));
    };
    const anyOf = (sql: string, texts: readonly string[]): LeafList =>
      union(texts.map((text) => named(sql, text)).filter((list) => list !== undefined));

    /** One list for each condition; undefined for one that no leaf fulfils. */
    return (query: AuditQuery): (LeafList | undefined)[] => {
      const { tenants, subject, kind, resourceId, provider = false, types, outcome } = query;
      const document = kind !== undefined && resourceId !== undefined;
      return [
        ...(document
          ? [about(seeks.resource, seeks.mention, resourceStream(kind, resourceId), provider)]
          : []),
        ...(kind === undefined || document ? [] : [about(seeks.kind, seeks.mentionOfKind, kind, provider)]),
        ...(subject === undefined ? [] : [named(seeks.subject, subject)]),
        ...(outcome === undefined || outcome === 'accepted'
          ? []
          : [listOf(seeks.outcome, OUTCOMES.indexOf(outcome))]),
        ...(types === undefined ? [] : [anyOf(seeks.type, types)]),
        ...(tenants === 'all' ? [] : [anyOf(seeks.tenant, tenants)]),
      ];
    };
  };

  /** Whether tenants find anything by the document that they ask for, if it is one. */
  const isKnown = ({ tenants, kind, resourceId, provider = false }: AuditQuery): boolean => {
    if (tenants === 'all' || provider || kind === undefined || resourceId === undefined) return true;
    const resource = names.id(resourceStream(kind, resourceId)) ?? NO_NAME;
    return tenants.some((tenant) => {
      const number = names.id(searchable(tenant)) ?? NO_NAME;
      return statement(SQL.knowsDocument).get(number, resource) !== undefined;
    });
  };

  /** What is nobody's is found by the provider alone, so that `known_documents` need not have it. */
  const asPermitted = (query: AuditQuery): AuditQuery => {
    const { tenants, provider = false } = query;
    if (tenants === 'all' || provider || !tenants.includes('')) return query;
    return { ...query, tenants: tenants.filter((tenant) => tenant !== '') };
  };

  return {
    ...peopleReader(connection, names),
    size,
    hashAt: mainHash,
    tile: (level, index) => tileOf(MAIN_TREE, level, index),
    leaf,
    leaves: (from, limit) => {
      const most = Math.min(limit, MOST_LEAVES);
      const rows = statement(SQL.leaves).all(from, from + most, most) as unknown as LeafRow[];
      const mentions = statement(SQL.mentions).all(from, from + most) as unknown as MentionRow[];
      const also = Map.groupBy(mentions, ({ idx }) => idx);
      return rows.map((row) => toLeaf(row, (also.get(row.idx) ?? []).map(alsoAbout)));
    },
    tenantTree,
    tenants: (after, limit) =>
      statement(SQL.tenants).all(after, limit) as unknown as { tree: number; tenant: string }[],
    tenantsBetween: (from, to) => {
      const rows = statement(SQL.tenantsOfLeaves).all(from, Math.min(to, from + MOST_LEAVES));
      return [...new Set(rows.map((row) => Number(row['tenant'])))].map(names.text);
    },
    sizeAtTime: (time) => leavesBefore(time, true),
    positionAt: (time) => {
      const leaves = leavesBefore(time, true);
      return leaves === 0 ? undefined : positionOf(leaves - 1);
    },
    positionOf,
    source: connection.source,
    indexOf: (stream, revision) => {
      const id = names.id(searchable(stream));
      return id === undefined ? undefined : numberIn(statement(SQL.atStream).get(id, revision), 'idx');
    },
    standing: (stream, revision) => {
      const id = names.id(searchable(stream));
      const row = id === undefined ? undefined : statement(SQL.standing).get(id, revision);
      if (row === undefined) return undefined;
      const { idx, hash, position, tenant } = row as unknown as StandingRow;
      return { index: idx, hash, position, tenant: names.text(tenant) };
    },
    tenantAt: (stream, revision) =>
      statement(SQL.tenantAt).get(searchable(stream), revision)?.['tenant'] as string | undefined,
    find: (asked) => {
      const query = asPermitted(asked);
      const { order = 'asc', after, from, to, below, eventId, outcome } = query;
      if (!isKnown(query)) return { leaves: [], next: undefined };
      const end = Math.min(
        below ?? Number.MAX_SAFE_INTEGER,
        to === undefined ? size() : leavesBefore(to, false),
        size(),
      );
      const start = from === undefined ? 0 : leavesBefore(from, false);
      const walk = walkOf(order, { start, end, after });
      const lists = listsAlong(order, walk)(query);
      if (lists.includes(undefined)) return { leaves: [], next: undefined };
      if (eventId !== undefined) lists.unshift(withId(eventId, order));
      const limit = Math.min(query.limit, MOST_FOUND);
      const { found, next } = intersect(lists as LeafList[], { start: walk.start, end: walk.end, limit });
      const leaves = found.map((place) => leaf(walk.numberAt(place))).filter((each) => each !== undefined);
      return {
        leaves: outcome === 'accepted' ? leaves.filter((each) => each.outcome === outcome) : leaves,
        next: next === undefined ? undefined : walk.numberAt(next),
      };
    },
  };
};

type MentionRow = { readonly idx: number; readonly resource: number; readonly hidden: number };

/** No name has this number: nothing is found by it. */
const NO_NAME = -1;

type StandingRow = Pick<LeafRow, 'idx' | 'position' | 'tenant'> & { readonly hash: Uint8Array };

type LeafRow = {
  readonly idx: number;
  readonly position: string;
  readonly stream: number;
  readonly revision: number;
  readonly event_id: Uint8Array;
  readonly type: number;
  readonly recorded_ms: number;
  readonly tenant: number;
  readonly tenant_idx: number;
  readonly subject: number;
  readonly kind: number | null;
  readonly resource: number | null;
  readonly outcome: number;
  readonly hashes: Uint8Array;
  readonly occurred_at: string;
  readonly record: string | null;
};

const recordOf = (row: LeafRow, textOf: (id: number) => string): LeafRecord => {
  if (row.record !== null) return JSON.parse(row.record) as LeafRecord;
  const hashes = Buffer.from(row.hashes).toString('hex');
  const hidden = hashes.slice(128);
  return {
    v: 1,
    stream: textOf(row.stream),
    revision: row.revision,
    id: eventIdOf(Buffer.from(row.event_id)),
    type: textOf(row.type),
    occurredAt: row.occurred_at,
    data: hashes.slice(0, 64),
    metadata: hashes.slice(64, 128),
    ...(hidden === '' ? {} : { hidden }),
  };
};

/** The text behind `commandBytes`: a UUID as 16 bytes, any other text behind its mark. */
const eventIdOf = (bytes: Buffer): string => {
  if (bytes.subarray(0, TEXT_MARK.length).equals(TEXT_MARK))
    return bytes.subarray(TEXT_MARK.length).toString('utf8');
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
};
const TEXT_MARK = Buffer.from('\0text:', 'utf8');

const numberIn = (row: unknown, column: string): number | undefined => {
  const value = (row as Record<string, unknown> | undefined)?.[column];
  return typeof value === 'number' ? value : undefined;
};
