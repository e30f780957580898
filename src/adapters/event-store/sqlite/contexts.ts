import { crc32 } from 'node:zlib';
import type { DatabaseSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';

/** With what the metadata of an event begins; `null`: with nothing. Undefined: the context is damaged or missing. */
export type Contexts = (id: number | null) => string | undefined;

/** Texts that a reading connection remembers; others are looked up. None ever changes. */
const REMEMBERED = 1000;
/** Contexts that the writer remembers; one that it has forgotten is stored once more. */
const IN_USE = 4000;

const contextChecksum = (parent: number | null, text: string): number => crc32(`${parent ?? ''}\n${text}`);

export const createContexts = (db: DatabaseSync): Contexts => {
  const remembered = new LRUCache<number, string>({ max: REMEMBERED });
  const find = db.prepare('SELECT parent, text, checksum FROM contexts WHERE id = ?');
  const textOf: Contexts = (id) => {
    if (id === null) return '';
    const known = remembered.get(id);
    if (known !== undefined) return known;
    const row = find.get(id) as Row | undefined;
    if (row === undefined || row.checksum !== contextChecksum(row.parent, row.text)) return undefined;
    // A parent is always older: a damaged file must not lead in a circle.
    const begin = row.parent !== null && row.parent >= id ? undefined : textOf(row.parent);
    if (begin === undefined) return undefined;
    remembered.set(id, begin + row.text);
    return begin + row.text;
  };
  return textOf;
};

type Row = { readonly parent: number | null; readonly text: string; readonly checksum: number };

/** The metadata of an event in two parts. */
export type SharedMetadata = { readonly context: number | null; readonly own: string };

/**
 * Where the texts of many appends part: before what belongs to one request, and before what belongs to one command. It is
 * nothing but a choice: wherever a text is cut, its parts are the text.
 */
const CUTS = [',"correlationId":', ',"command":'];
/** Where the events of one append part. */
const OWN = ',"hidden":';

/** The writer's half: stores what the metadata of events has in common once, in the transaction that is open. */
export type ContextWriter = {
  readonly share: (metadata: readonly string[]) => readonly SharedMetadata[];
  /** The transaction was rolled back. */
  readonly forget: () => void;
};

export const createContextWriter = (db: DatabaseSync): ContextWriter => {
  const known = new LRUCache<string, number>({ max: IN_USE });
  const insert = db.prepare('INSERT INTO contexts (parent, text, checksum) VALUES (?, ?, ?)');
  const add = (parent: number | null, text: string): number =>
    Number(insert.run(parent, text, contextChecksum(parent, text)).lastInsertRowid);
  const idOf = (parent: number | null, text: string): number => {
    const key = `${parent}${text}`;
    const id = known.get(key) ?? add(parent, text);
    known.set(key, id);
    return id;
  };

  return {
    share: (metadata) => {
      const [first = '', second] = metadata;
      let shared = NOTHING;
      for (const cut of CUTS) {
        const { context, text } = shared;
        const end = first.indexOf(cut, text.length);
        if (end > text.length)
          shared = { context: idOf(context, first.slice(text.length, end)), text: first.slice(0, end) };
      }
      const own = first.indexOf(OWN, shared.text.length);
      const text = first.slice(0, own < 0 ? -1 : own);
      const ofAppend =
        text.length > shared.text.length && second?.startsWith(text) === true
          ? { context: add(shared.context, text.slice(shared.text.length)), text }
          : shared;
      return metadata.map((each) => {
        const begin = [ofAppend, shared].find(({ text: begins }) => each.startsWith(begins)) ?? NOTHING;
        return { context: begin.context, own: each.slice(begin.text.length) };
      });
    },
    forget: () => known.clear(),
  };
};

type Shared = { readonly context: number | null; readonly text: string };
const NOTHING: Shared = { context: null, text: '' };
