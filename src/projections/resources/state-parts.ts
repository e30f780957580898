import type { DatabaseSync } from 'node:sqlite';
import type { Entry } from './entry.ts';
import type { DocumentKind } from './fold.ts';

/** States as rows: the buckets of large ones (`ResourceKind.apart`) in rows of their own, of which only changed ones are written. */
export const openStateParts = (db: DatabaseSync) => {
  const select = db.prepare('SELECT part, entries FROM state_parts WHERE stream = ?');
  const upsert = db.prepare('INSERT OR REPLACE INTO state_parts VALUES (?, ?, ?)');
  const drop = db.prepare('DELETE FROM state_parts WHERE stream = ? AND part = ?');

  return {
    /** The state whose row holds `text`, and its parts as they are stored. */
    load: (
      stream: string,
      { apart }: DocumentKind,
      text: string,
    ): Pick<Entry, 'storedParts'> & { state: unknown } => {
      const rest: unknown = JSON.parse(text);
      if (apart === undefined) return { state: rest, storedParts: {} };
      const parts = Object.fromEntries(
        select.all(stream).map(({ part, entries }) => [String(part), JSON.parse(String(entries)) as object]),
      );
      return { state: apart.join(rest, parts), storedParts: parts };
    },
    /** Writes what changed of the parts; the text of the rest. */
    store: (entry: Entry): string => {
      const { stream, kind, folded, storedParts } = entry;
      if (kind.apart === undefined) return JSON.stringify(folded.state);
      const { rest, parts } = kind.apart.split(folded.state as never);
      for (const [part, entries] of Object.entries(parts))
        if (storedParts[part] !== entries) upsert.run(stream, part, JSON.stringify(entries));
      for (const part of Object.keys(storedParts)) if (!(part in parts)) drop.run(stream, part);
      entry.storedParts = parts;
      return JSON.stringify(rest);
    },
  };
};
