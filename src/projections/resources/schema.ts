/** What one object was at a moment, and what of it has to be erased. */
export const CHANGES_BY_OBJECT = 'changes_by_object ON changes (kind, id, position, n)';

/**
 * Tables of the view `resources`. `changes` lives in the same file as `resources` because both need the same fold of
 * a document's stream: two views would fold everything twice, and a reader could see one ahead of the other.
 *
 * Large texts come last in their row, so that reading the columns before them touches no overflow page.
 */
export const RESOURCES_SCHEMA = `
  -- What of a document's stream has been folded. Also of archived documents, which no read shows any more.
  CREATE TABLE states (
    stream TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    command_id TEXT NOT NULL,
    counted INTEGER NOT NULL,
    -- Tenant under which the live document is counted; NULL: there is none.
    tenant TEXT,
    -- Position and type of the row that the append of command_id has in changes; NULL: it has none.
    change_position TEXT,
    change_type TEXT,
    -- Where the live document stands in the order of creation; empty: there is none.
    created TEXT NOT NULL,
    refs TEXT NOT NULL,
    marks TEXT NOT NULL,
    terms TEXT NOT NULL,
    -- JSON of the references that the last event announces; empty: none.
    announced TEXT NOT NULL,
    state TEXT NOT NULL
  ) STRICT;
  -- Buckets of large states, beside what their row in states holds.
  CREATE TABLE state_parts (
    stream TEXT NOT NULL, part TEXT NOT NULL, entries TEXT NOT NULL,
    PRIMARY KEY (stream, part)
  ) STRICT, WITHOUT ROWID;

  -- Live documents.
  CREATE TABLE resources (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    position TEXT NOT NULL,
    deleting INTEGER NOT NULL,
    -- Position of the event that made it exist: the order of lists, which no later write changes.
    created TEXT NOT NULL,
    -- Its creation timestamp in a form that sorts as text.
    creation_time TEXT NOT NULL,
    listed INTEGER NOT NULL,
    public_json TEXT NOT NULL,
    private_json TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT;
  CREATE INDEX resources_by_created ON resources (kind, created);
  CREATE INDEX resources_by_tenant ON resources (kind, tenant, created);
  CREATE INDEX resources_by_name ON resources (kind, name, created);
  CREATE INDEX resources_by_tenant_and_name ON resources (kind, tenant, name, created);
  CREATE INDEX resources_by_time ON resources (kind, creation_time, created);
  CREATE INDEX resources_by_tenant_and_time ON resources (kind, tenant, creation_time, created);

  -- What live documents can be found by: labels, state, project, ids and names of references. In the order of creation.
  CREATE TABLE terms (
    kind TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, created TEXT NOT NULL, tenant TEXT NOT NULL,
    PRIMARY KEY (kind, field, value, created)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX terms_by_tenant ON terms (kind, field, value, tenant, created);
  CREATE TABLE term_counts (
    kind TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, tenant TEXT NOT NULL, total INTEGER NOT NULL,
    PRIMARY KEY (kind, field, value, tenant)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE term_totals (
    kind TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL, total INTEGER NOT NULL,
    PRIMARY KEY (kind, field, value)
  ) STRICT, WITHOUT ROWID;

  -- How many live documents there are, of a tenant and of all, so that no list has to count them.
  CREATE TABLE counts (
    kind TEXT NOT NULL, tenant TEXT NOT NULL, total INTEGER NOT NULL,
    PRIMARY KEY (kind, tenant)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE totals (kind TEXT PRIMARY KEY, total INTEGER NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE marks (
    kind TEXT NOT NULL, mark TEXT NOT NULL, tenant TEXT NOT NULL, id TEXT NOT NULL,
    PRIMARY KEY (kind, mark, tenant, id)
  ) STRICT, WITHOUT ROWID;

  -- Live document (from_kind, from_id) of a tenant points at (to_kind, to_id).
  CREATE TABLE refs (
    to_kind TEXT NOT NULL, to_id TEXT NOT NULL, tenant TEXT NOT NULL, from_kind TEXT NOT NULL, from_id TEXT NOT NULL,
    PRIMARY KEY (to_kind, to_id, tenant, from_kind, from_id)
  ) STRICT, WITHOUT ROWID;

  -- The last event in the stream of (from_kind, from_id), at this revision, announces that it will refer to (to_kind, to_id).
  CREATE TABLE announced (
    to_kind TEXT NOT NULL, to_id TEXT NOT NULL, from_kind TEXT NOT NULL, from_id TEXT NOT NULL,
    revision INTEGER NOT NULL, position TEXT NOT NULL,
    PRIMARY KEY (to_kind, to_id, from_kind, from_id)
  ) STRICT, WITHOUT ROWID;

  -- Which append a command became: revisions of its first and last event, position of the last.
  -- Ids are stored as the 16 bytes of their UUID: this is the largest index.
  CREATE TABLE commands (
    command_id BLOB NOT NULL,
    stream TEXT NOT NULL,
    first INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    position TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    PRIMARY KEY (command_id, stream)
  ) STRICT, WITHOUT ROWID;

  -- One row per append that changed a document, with the private document after it (the last one, when deleted).
  -- The public document is a function of it. n counts the rows of one position; a watch id is <position>.<n>.
  CREATE TABLE changes (
    position TEXT NOT NULL,
    n INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('created', 'updated', 'deleted')),
    at TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (position, n)
  ) STRICT;
  -- A tenant's watch that resumes reads its own changes only.
  CREATE INDEX changes_by_tenant ON changes (tenant, position, n);
  CREATE INDEX ${CHANGES_BY_OBJECT};

  -- Recorded time of the newest event: retention is measured from it and so needs no clock. And the last change that
  -- retention removed: a watch cannot resume before it. Empty: none was removed.
  CREATE TABLE newest (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at TEXT NOT NULL,
    pruned_position TEXT NOT NULL,
    pruned_n INTEGER NOT NULL
  ) STRICT;
`;

export const RESOURCES_INDEXES_FOR_READS = [
  'resources_by_created',
  'resources_by_tenant',
  'resources_by_name',
  'resources_by_tenant_and_name',
  'resources_by_time',
  'resources_by_tenant_and_time',
  'terms_by_tenant',
  'changes_by_tenant',
  'changes_by_object',
] as const;

export const RESOURCES_TABLES = [
  'states',
  'state_parts',
  'resources',
  'counts',
  'totals',
  'terms',
  'term_counts',
  'term_totals',
  'marks',
  'refs',
  'announced',
  'commands',
  'changes',
  'newest',
] as const;
