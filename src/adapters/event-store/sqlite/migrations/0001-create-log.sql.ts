/**
 * Version 1. Streams have small integer ids, so that the only index on events, (stream, revision), stays small
 * and new streams append at its right edge. No index on event ids: an index on random UUIDs is the bottleneck of
 * every batch, and ids are checked by (stream, expected revision).
 * `checksum` is CRC-32 over everything else in the row: SQLite pages have none, so a flipped bit inside a text
 * would otherwise be read as data.
 * The text of an event's metadata is that of its context and its own behind it; a context's begins with its parent's.
 */
export const createLog = `
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL,
  -- CRC-32 of key and value where it matters that neither was changed.
  checksum INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE streams (
  id        INTEGER PRIMARY KEY,
  name      TEXT NOT NULL UNIQUE,
  max_count INTEGER CHECK (max_count IS NULL OR (max_count > 0 AND name GLOB 'sys-*'))
) STRICT;

CREATE TABLE contexts (
  id       INTEGER PRIMARY KEY,
  parent   INTEGER REFERENCES contexts (id),
  text     TEXT NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
  position    INTEGER PRIMARY KEY,
  stream      INTEGER NOT NULL REFERENCES streams (id),
  revision    INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL,
  checksum    INTEGER NOT NULL,
  id          TEXT NOT NULL,
  type        TEXT NOT NULL,
  data        TEXT NOT NULL,
  context     INTEGER REFERENCES contexts (id),
  metadata    TEXT NOT NULL,
  UNIQUE (stream, revision)
) STRICT;
`;
