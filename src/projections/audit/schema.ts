import { ID_BLOCK } from './event-ids.ts';
import { PEOPLE_SCHEMA } from './people.ts';

/**
 * Tables of the view `audit`. Leaves are numbered as in the Merkle tree, in log order from 0. Texts that repeat are
 * kept once, in `names`, so that each index holds small numbers and grows at few places.
 */
export const AUDIT_SCHEMA = `
  CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT;

  CREATE TABLE leaves (
    idx INTEGER PRIMARY KEY,
    position TEXT NOT NULL,
    stream INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    event_id BLOB NOT NULL,
    type INTEGER NOT NULL,
    -- milliseconds since 1970 at which the store recorded it, and the largest such time up to here
    recorded_ms INTEGER NOT NULL,
    latest_ms INTEGER NOT NULL,
    tenant INTEGER NOT NULL,
    -- number of the leaf in its tenant's own tree
    tenant_idx INTEGER NOT NULL,
    subject INTEGER NOT NULL,
    -- what it is about: category, and stream of the document
    kind INTEGER,
    resource INTEGER,
    -- see OUTCOMES in facts.ts; 0 is accepted
    outcome INTEGER NOT NULL,
    -- the leaf: its hash, hashes of data and metadata (32 bytes each; a third one is that of what tenants may
    -- not see), and when it occurred
    hash BLOB NOT NULL,
    hashes BLOB NOT NULL,
    occurred_at TEXT NOT NULL,
    -- the whole leaf, only when one of its texts has no UTF-8 (a lone surrogate)
    record TEXT
  ) STRICT;
  CREATE INDEX leaves_by_stream ON leaves (stream, revision);

  -- revisions at which the store keeps a record of its own in a stream of ours (a link): no leaf is missing there
  CREATE TABLE holes (
    stream INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (stream, revision)
  ) STRICT, WITHOUT ROWID;
  -- by blocks, since ids are random (event-ids.ts)
  CREATE INDEX leaves_by_id ON leaves (${ID_BLOCK}, event_id);
  CREATE INDEX leaves_by_type ON leaves (type);
  CREATE INDEX leaves_by_tenant ON leaves (tenant);
  CREATE INDEX leaves_by_subject ON leaves (subject);
  CREATE INDEX leaves_by_kind ON leaves (kind);
  CREATE INDEX leaves_by_resource ON leaves (resource);
  CREATE INDEX leaves_by_outcome ON leaves (outcome) WHERE outcome > 0;

  -- what an event is about beside the document of its stream: that document's stream, and its kind (mentions.ts);
  -- hidden: only the provider finds the event by it
  CREATE TABLE mentions (
    idx INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    hidden INTEGER NOT NULL,
    PRIMARY KEY (idx, resource)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX mentions_by_resource ON mentions (resource, hidden, idx);
  CREATE INDEX mentions_by_kind ON mentions (kind, hidden, idx);

  -- documents by which a tenant finds an event of its own: what is only others' is told from these by one look, as what never
  -- was; walking the lists of both would take the longer the more has happened to it
  CREATE TABLE known_documents (
    tenant INTEGER NOT NULL,
    resource INTEGER NOT NULL,
    PRIMARY KEY (tenant, resource)
  ) STRICT, WITHOUT ROWID;

  -- tree 0 is that of the whole log, the others are tenants' by their name's id; range: hashes of the compact range
  CREATE TABLE trees (
    tree INTEGER PRIMARY KEY,
    tenant TEXT,
    size INTEGER NOT NULL,
    range BLOB NOT NULL
  ) STRICT;

  -- up to 256 hashes of subtrees of 256^level leaves each (C2SP tlog-tiles); of level 0 only whole tiles, since a part
  -- of one would be written again at every commit: its hashes are in the leaves
  CREATE TABLE tiles (
    tree INTEGER NOT NULL,
    level INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (tree, level, idx)
  ) STRICT;
${PEOPLE_SCHEMA}`;

export const AUDIT_INDEXES_FOR_READS = [
  'leaves_by_type',
  'leaves_by_subject',
  'leaves_by_kind',
  'leaves_by_resource',
  'leaves_by_outcome',
  'mentions_by_resource',
  'mentions_by_kind',
] as const;

export const AUDIT_TABLES = [
  'holes',
  'known_documents',
  'leaves',
  'mentions',
  'names',
  'people',
  'tiles',
  'trees',
] as const;

/** Tree of the whole log. */
export const MAIN_TREE = 0;
