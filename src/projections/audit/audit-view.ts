import type { DatabaseSync } from 'node:sqlite';
import { leafHashOfText } from '../../app/audit/merkle/hashing.ts';
import { isLeafStream, leafOf, type LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { outOfOrder } from '../../app/audit/stream-order.ts';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { OWN_CATEGORIES } from '../../app/log/own-categories.ts';
import { commandBytes } from '../resources/commands.ts';
import type { ApplyEvent, View } from '../view.ts';
import { factsOf, OUTCOMES, searchable } from './facts.ts';
import { openMentions } from './mention-writer.ts';
import { openNames } from './names.ts';
import { openPeople } from './people.ts';
import { AUDIT_INDEXES_FOR_READS, AUDIT_SCHEMA, AUDIT_TABLES, MAIN_TREE } from './schema.ts';
import { openTreeWriter } from './tree-writer.ts';
import { verifyAudit } from './verify.ts';

/** The last revision of each stream that leaves were made of, or that the store holds itself, by the number of its name. */
type LastRevisions = {
  /** Undefined for a stream of which no leaf was made. */
  readonly of: (stream: number) => number | undefined;
  readonly set: (stream: number, revision: number) => void;
  /** The store holds this revision itself: no leaf will be of it. */
  readonly setHole: (stream: number, revision: number) => void;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Streams that are remembered at most; those of orders that are over drop out. */
const MOST_REMEMBERED = 20_000;

const openLastRevisions = (db: DatabaseSync): LastRevisions => {
  const find = db.prepare(
    `SELECT max(last) AS last FROM (
       SELECT max(revision) AS last FROM leaves WHERE stream = ?1
       UNION ALL SELECT max(revision) FROM holes WHERE stream = ?1)`,
  );
  const addHole = db.prepare('INSERT OR IGNORE INTO holes VALUES (?, ?)');
  const known = new Map<number, number>();
  const set = (stream: number, revision: number): void => {
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(stream, revision);
  };
  return {
    of: (stream) => {
      const remembered = known.get(stream);
      if (remembered !== undefined) return remembered;
      const last = find.get(stream)?.['last'];
      return typeof last === 'number' ? last : undefined;
    },
    set,
    setHole: (stream, revision) => {
      addHole.run(stream, revision);
      set(stream, revision);
    },
    reset: () => known.clear(),
  };
};

/**
 * The Merkle tree over the log, one per tenant beside it, and what auditors look events up by. Works on
 * events as they are stored: it needs no type to be known, so that no event can be too new or too odd for it. It
 * stops in
 * front of an event that does not follow the last one of its stream.
 */
export const auditView = (): View => ({
  name: 'audit',
  version: 9,
  // A release that knows other streams as ours has other leaves.
  settings: OWN_CATEGORIES.join(' '),
  filter: { alsoStoreRecords: true },
  schema: AUDIT_SCHEMA,
  tables: AUDIT_TABLES,
  indexesForReads: AUDIT_INDEXES_FOR_READS,
  rowsBelongToOneStream: false,
  // Heads are signed every few seconds: nobody waits for a leaf, and a commit costs as much as ten of them.
  isUrgent: false,
  gatherMs: 250,
  open: openAudit,
  verify: verifyAudit,
});

const openAudit = (db: DatabaseSync): ApplyEvent => {
  const insert = db.prepare(
    `INSERT INTO leaves VALUES (${Array.from({ length: 18 }, () => '?').join(', ')})`,
  );
  const lastTime = db.prepare('SELECT latest_ms FROM leaves ORDER BY idx DESC LIMIT 1');
  const names = openNames(db);
  const revisions = openLastRevisions(db);
  const mentions = openMentions(db, names);
  const people = openPeople(db);
  const trees = openTreeWriter(db);
  let latest: number | undefined;

  /** Throws LogDamaged for an event that does not follow: over what the log lacks nothing is to be signed. */
  const follow = (stream: number, event: RecordedEvent): void => {
    // Names that are replaced in part may be those of other streams, too.
    if (!isExact(event.stream)) return;
    const problem = outOfOrder(event, revisions.of(stream));
    if (problem !== undefined) throw problem;
    revisions.set(stream, event.revision);
  };
  const apply = (event: RecordedEvent): void => {
    if (!isLeafStream(event.stream)) return;
    // A link that somebody put into the stream: it takes a revision, and is no event of ours.
    if (event.type.startsWith('$')) {
      const linked = names.idOf(searchable(event.stream));
      follow(linked, event);
      revisions.setHole(linked, event.revision);
      return;
    }
    const record = leafOf(event);
    const text = leafText(record);
    const hash = leafHashOfText(text);
    const facts = factsOf(event);
    const tenant = names.idOf(facts.tenant);
    const subject = names.idOf(facts.subject);
    const stream = names.idOf(searchable(event.stream));
    follow(stream, event);
    const recorded = millisecondsOf(event.recordedAt);
    latest ??= Number(lastTime.get()?.['latest_ms'] ?? 0);
    latest = Math.max(latest, recorded);
    const index = trees.append(MAIN_TREE, undefined, hash);
    insert.run(
      index,
      event.position,
      stream,
      event.revision,
      commandBytes(event.id),
      names.idOf(searchable(event.type)),
      recorded,
      latest,
      tenant,
      trees.append(tenant, facts.tenant, hash),
      subject,
      facts.kind === '' ? null : names.idOf(facts.kind),
      facts.resource === '' ? null : names.idOf(facts.resource),
      OUTCOMES.indexOf(facts.outcome),
      hash,
      Buffer.from(record.data + record.metadata + (record.hidden ?? ''), 'hex'),
      record.occurredAt,
      isPlain(record) ? null : text,
    );
    mentions.add(index, event, facts);
    if (facts.subject !== '') people.add(index, { tenant, subject }, event);
  };
  return Object.assign(apply, {
    flush: trees.flush,
    reset: () => {
      trees.reset();
      names.reset();
      revisions.reset();
      people.reset();
      mentions.reset();
      latest = undefined;
    },
  });
};

/** `leafBytes` as text: a flat record whose keys are named in their order is canonical as JSON.stringify writes it. */
const leafText = (record: LeafRecord): string => {
  const { data, hidden, id, metadata, occurredAt, revision, stream, type, v } = record;
  return JSON.stringify({ data, hidden, id, metadata, occurredAt, revision, stream, type, v });
};

/** Milliseconds since 1970; 0 for what is no time. */
const millisecondsOf = (time: string): number => {
  const ms = Date.parse(time);
  return Number.isSafeInteger(ms) ? ms : 0;
};

/** Whether no other text becomes the same one where it is searched for (`searchable`). */
const isExact = (text: string): boolean => text.isWellFormed() && !text.includes('\ufffd');

/** Whether the texts of a leaf come out of their columns as they went in. */
const isPlain = ({ stream, id, type, occurredAt }: LeafRecord): boolean =>
  stream.isWellFormed() && id.isWellFormed() && type.isWellFormed() && occurredAt.isWellFormed();
