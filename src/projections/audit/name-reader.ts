import { LRUCache } from 'lru-cache';
import type { ReadConnection } from '../runner/read-connection.ts';
import { AUDIT_STATEMENTS } from './statements.ts';

/** Texts by their numbers and the other way round. */
export type NameReader = {
  readonly text: (id: number) => string;
  /** Undefined: no event has it. */
  readonly id: (text: string) => number | undefined;
};

const MOST_REMEMBERED = 10_000;

export const createNameReader = ({ statement, source }: ReadConnection): NameReader => {
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
