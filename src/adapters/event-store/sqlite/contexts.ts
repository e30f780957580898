import { crc32 } from 'node:zlib';
import type { DatabaseSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../../../domain/json.ts';
import { frozen } from '../shared/frozen.ts';

/** What the metadata of events has in common. */
export type Contexts = {
  /** With what the text of metadata begins. Undefined: the context is damaged or missing. */
  readonly textOf: (id: number | null) => string | undefined;
  /** The metadata whose text is that of the context and its own. Undefined: the context is damaged or missing. */
  readonly metadataOf: (id: number | null, own: string) => JsonObject | undefined;
};

/** Contexts that a reading connection remembers; others are looked up. None ever changes. */
const REMEMBERED = 1000;
/** Contexts that are looked up together. */
const TOGETHER = 32;
/** Contexts that the writer remembers; one that it has forgotten is stored once more. */
const IN_USE = 2000;

const contextChecksum = (parent: number | null, text: string): number => crc32(`${parent ?? ''}\n${text}`);

export const createContexts = (db: DatabaseSync): Contexts => {
  const remembered = new LRUCache<number, Context>({ max: REMEMBERED });
  const find = db.prepare(
    'SELECT id, parent, text, checksum FROM contexts WHERE id >= ? AND id < ? ORDER BY id',
  );
  find.setReturnArrays(true);
  /** The newest that the last look found. */
  let read = 0;
  /** Who reads the log in its order needs the next ones as well: a look for each of them costs more than all of them. */
  const remember = (id: number): void => {
    const isNext = id > read && id - read <= TOGETHER;
    for (const row of find.all(id, isNext ? id + TOGETHER : id + 1)) {
      const [found, parent, own, checksum] = row as unknown as Row;
      if (checksum !== contextChecksum(parent, own)) continue;
      const begin = parent === null ? '' : parentOf(parent, found, id)?.text;
      if (begin === undefined) continue;
      const text = begin + own;
      remembered.set(found, { text, fields: fieldsIn(`${text}}`) });
      read = found;
    }
  };
  /** A parent is always older: a damaged file must not lead in a circle. Who only comes along waits for none. */
  const parentOf = (parent: number, child: number, wanted: number): Context | undefined =>
    child === wanted && parent < child ? contextOf(parent) : remembered.get(parent);
  const contextOf = (id: number): Context | undefined => {
    const known = remembered.get(id);
    if (known !== undefined) return known;
    remember(id);
    return remembered.get(id);
  };
  return {
    textOf: (id) => (id === null ? '' : contextOf(id)?.text),
    metadataOf: (id, own) => {
      if (id === null) return parse(own);
      const context = contextOf(id);
      if (context === undefined) return undefined;
      const { fields, text } = context;
      if (fields === undefined || !(own === '}' || own.startsWith(','))) return parse(text + own);
      return own === '}' ? { ...fields } : { ...fields, ...parse(`{${own.slice(1)}`) };
    },
  };
};

/** `fields`: what the text says where it ends between two fields of the metadata, parsed once for all events. */
type Context = { readonly text: string; readonly fields: JsonObject | undefined };
type Row = [id: number, parent: number | null, text: string, checksum: number];

const parse = (text: string): JsonObject => JSON.parse(text) as JsonObject;

const fieldsIn = (text: string): JsonObject | undefined => {
  try {
    return frozen(parse(text));
  } catch {
    return undefined;
  }
};

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
