/** Tables of the view `usage`: the meter of every object that is metered, and the intervals that OSAC's metering bills. */
export const USAGE_SCHEMA = `
  -- Each meter as of a revision of its object's stream. billed: some of its components are at present.
  CREATE TABLE meters (
    kind TEXT NOT NULL,
    resource TEXT NOT NULL,
    revision INTEGER NOT NULL,
    billed INTEGER NOT NULL,
    meter TEXT NOT NULL,
    PRIMARY KEY (kind, resource)
  ) STRICT;
  CREATE INDEX meters_billed ON meters (billed, kind, resource);

  -- Milliseconds since 1970; until_ms NULL: it goes on. Nothing of no length is kept. delivered_ms: first READY of the object; NULL: not yet.
  CREATE TABLE intervals (
    resource TEXT NOT NULL,
    component TEXT NOT NULL,
    node_set TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    until_ms INTEGER,
    kind TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    template TEXT NOT NULL,
    resource_name TEXT NOT NULL,
    template_name TEXT NOT NULL,
    delivered_ms INTEGER,
    host_type TEXT NOT NULL,
    node_count INTEGER NOT NULL,
    PRIMARY KEY (kind, resource, component, node_set, since_ms)
  ) STRICT;
  CREATE INDEX intervals_until ON intervals (until_ms);
  CREATE INDEX intervals_of_tenant ON intervals (tenant, until_ms);
`;
export const USAGE_TABLES = ['meters', 'intervals'] as const;
