import { crc32 } from 'node:zlib';
import type { DatabaseSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';

/** With what the metadata of an event begins; `null`: with nothing. Undefined: the context is damaged or missing. */
export type Contexts = (id: number | null) => string | undefined;

/** Texts that a reading connection remembers; others are looked up. None ever changes. */
const REMEMBERED = 1000;
/** Contexts that the writer remembers; one that it has forgotten is stored once more. */
const IN_USE = 2000;

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
 * Where the texts of many appends part: before what belongs to one command, and before that, what belongs to one request. It
 * is nothing but a choice: wherever a text is cut, its parts are the text.
 */
const CUTS = [',"command":', ',"correlationId":'];
/** Where the events of one append part. */
const OWN = ',"hidden":';

/** The writer's half: stores what the metadata of events has in common once, in the transaction that is open. */
export type ContextWriter = {
  /** To be called with each event of one append, in their order; `next` is the metadata of the one behind it. */
  readonly ofAppend: () => (metadata: string, next: string | undefined) => SharedMetadata;
  /** The transaction was rolled back. */
  readonly forget: () => void;
};

type Beginning = { readonly context: number | null; readonly text: string };
const NOTHING: Beginning = { context: null, text: '' };

export const createContextWriter = (db: DatabaseSync): ContextWriter => {
  const known = new LRUCache<string, Beginning>({ max: IN_USE });
  const insert = db.prepare('INSERT INTO contexts (parent, text, checksum) VALUES (?, ?, ?)');
  const add = (parent: Beginning, text: string): Beginning => {
    const own = text.slice(parent.text.length);
    const sum = contextChecksum(parent.context, own);
    return { context: Number(insert.run(parent.context, own, sum).lastInsertRowid), text };
  };

  /** What the text has in common with those of other appends. */
  const commonIn = (text: string, [cut, ...others]: readonly string[] = CUTS): Beginning => {
    if (cut === undefined) return NOTHING;
    const end = text.indexOf(cut);
    if (end <= 0) return commonIn(text, others);
    const begin = text.slice(0, end);
    const found = known.get(begin);
    if (found !== undefined) return found;
    const made = add(commonIn(begin, others), begin);
    known.set(begin, made);
    return made;
  };

  /** The longest first: of this append, where its second event begins so too, and of many. */
  const beginningsOf = (first: string, second: string | undefined): readonly Beginning[] => {
    const common = commonIn(first);
    if (second === undefined) return [common];
    const own = first.indexOf(OWN, common.text.length);
    const text = first.slice(0, own < 0 ? -1 : own);
    const isShared = text.length > common.text.length && second.startsWith(text);
    return isShared ? [add(common, text), common] : [common];
  };

  return {
    ofAppend: () => {
      let beginnings: readonly Beginning[] | undefined;
      return (metadata, next) => {
        const isFirst = beginnings === undefined;
        beginnings ??= beginningsOf(metadata, next);
        const { context, text } =
          beginnings.find((each) => isFirst || metadata.startsWith(each.text)) ?? NOTHING;
        return { context, own: metadata.slice(text.length) };
      };
    },
    forget: () => known.clear(),
  };
};
