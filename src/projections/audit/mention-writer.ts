import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import { commandBytes } from '../resources/commands.ts';
import { firstInBlocks } from './event-ids.ts';
import { documentOf, resourceStream, searchable, type EventFacts } from './facts.ts';
import { MOST_MENTIONS, type Named } from './mentions.ts';
import type { Names } from './names.ts';
import { AUDIT_STATEMENTS } from './statements.ts';

/**
 * The table `mentions`: every object that an event is about beside the document of its stream; and `known_documents`: by
 * which documents its tenant finds it.
 */
export type MentionWriter = {
  /** `index`: the leaf of the event, which is in `leaves` already. */
  readonly add: (
    index: number,
    event: Pick<RecordedEvent, 'stream' | 'revision'>,
    facts: Pick<EventFacts, 'tenant' | 'resource' | 'also' | 'asked' | 'hidden'>,
  ) => void;
  /** Forgets what is remembered: the transaction was rolled back. */
  readonly reset: () => void;
};

/** Known documents that are remembered at most, so that another event of one costs no statement. */
const MOST_REMEMBERED = 20_000;

/** Kind, and stream of a document. */
type Document = { readonly kind: string; readonly resource: string };

/** A document that an event names; hidden: only the provider finds it so. */
type Found = Document & { readonly hidden: boolean };

export const openMentions = (db: DatabaseSync, names: Names): MentionWriter => {
  const insert = db.prepare('INSERT OR IGNORE INTO mentions VALUES (?, ?, ?, ?)');
  const know = db.prepare('INSERT OR IGNORE INTO known_documents VALUES (?, ?)');
  const about = `SELECT k.text AS kind, r.text AS resource FROM leaves AS l
    JOIN names AS k ON k.id = l.kind JOIN names AS r ON r.id = l.resource WHERE l.idx = ?`;
  const also = `SELECT k.text AS kind, r.text AS resource, m.hidden FROM mentions AS m
    JOIN names AS k ON k.id = m.kind JOIN names AS r ON r.id = m.resource WHERE m.idx = ? ORDER BY m.resource`;
  const ownOf = db.prepare(about);
  const othersOf = db.prepare(also);
  // By its text: a stream that somebody asked for may be none.
  const leafAt = db.prepare(
    'SELECT idx FROM leaves WHERE stream = (SELECT id FROM names WHERE text = ?) AND revision = ? LIMIT 1',
  );
  const leafOf = db.prepare(AUDIT_STATEMENTS.nextOfId);
  const tenantAt = db.prepare(AUDIT_STATEMENTS.tenantAt);
  const actsIn = db.prepare(`SELECT 1 FROM people WHERE tenant = (SELECT id FROM names WHERE text = ?)
    AND subject = (SELECT id FROM names WHERE text = ?)`);

  const atRevision = (stream: string, revision: number): number | undefined =>
    leafAt.get(searchable(stream), revision)?.['idx'] as number | undefined;
  const othersAt = (index: number | undefined): Found[] =>
    (index === undefined ? [] : othersOf.all(index)).map(({ kind, resource, hidden }) => ({
      kind: String(kind),
      resource: String(resource),
      hidden: hidden === 1,
    }));

  const withId = (id: Uint8Array, size: number): number | undefined =>
    firstInBlocks(0, size, (block) => leafOf.get(block, id, 0)?.['idx'] as number | undefined);
  /** What the event with this id, or of this name, is about; `size`: leaves so far. */
  const ofEvent = (event: string, size: number): Document[] => {
    const [, stream, revision] = /^(.+)@(\d{1,15})$/.exec(event) ?? [];
    const index =
      stream === undefined ? withId(commandBytes(event), size) : atRevision(stream, Number(revision));
    if (index === undefined) return stream === undefined ? [] : [documentOf(stream)];
    return [...(ownOf.all(index) as Document[]), ...othersAt(index)];
  };
  const documentsOf = (
    named: Named,
    { stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>,
    size: number,
  ): readonly (Document & Partial<Found>)[] => {
    if ('as' in named) {
      const before = named.as === 'first' ? 0 : revision - 1;
      const found = before < revision && before >= 0 ? othersAt(atRevision(stream, before)) : [];
      const { id } = named;
      return id === undefined ? found : found.filter(({ resource }) => parseStreamName(resource).id === id);
    }
    if ('stream' in named) return [documentOf(named.stream)];
    // Who may not see an event must not learn what it is about by asking for it.
    if ('event' in named) return ofEvent(named.event, size).map((each) => ({ ...each, hidden: true }));
    return [{ kind: searchable(named.kind), resource: resourceStream(named.kind, named.id) }];
  };

  /** Whether something is of a tenant by now: its history begins there, or it is somebody who has acted there. */
  const isOf = (tenant: string, { kind, resource }: Document): boolean =>
    tenantAt.get(resource, 0)?.['tenant'] === tenant ||
    (kind === 'user' && actsIn.get(tenant, searchable(parseStreamName(resource).id)) !== undefined);

  const known = new Set<string>();
  const knows = (tenant: string, resource: string): void => {
    // What is nobody's is found by the provider alone, who asks for no tenant's.
    if (tenant === '' || resource === '') return;
    const [whose, what] = [names.idOf(tenant), names.idOf(resource)];
    const pair = `${whose} ${what}`;
    if (known.has(pair)) return;
    know.run(whose, what);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.add(pair);
  };

  return {
    reset: () => known.clear(),
    add: (index, event, { tenant, resource: own, also, asked, hidden }) => {
      let added = 0;
      knows(tenant, own);
      const add = (found: Document & Partial<Found>, isAsked: boolean): void => {
        const { kind, resource } = found;
        if (resource === '' || kind === '' || resource === own || added >= MOST_MENTIONS) return;
        const kept = hidden || found.hidden === true || (isAsked && !isOf(tenant, found));
        insert.run(index, names.idOf(resource), names.idOf(kind), kept ? 1 : 0);
        if (!kept) knows(tenant, resource);
        added += 1;
      };
      // Where something is named twice, it is as visible as by the first.
      for (const named of also) for (const each of documentsOf(named, event, index + 1)) add(each, false);
      for (const named of asked) for (const each of documentsOf(named, event, index + 1)) add(each, true);
    },
  };
};
