import { ID_BLOCK } from './event-ids.ts';
import { PEOPLE_STATEMENTS } from './people.ts';
import { MAIN_TREE } from './schema.ts';
import { TILE_STATEMENTS } from './tiles.ts';

const LEAF = `idx, position, stream, revision, event_id, type, recorded_ms, tenant, tenant_idx, subject, kind, resource,
  outcome, hashes, occurred_at, record`;

/** Statements of the HTTP thread on the audit view; their query plans are tested. */
export const AUDIT_STATEMENTS = {
  size: `SELECT size FROM trees WHERE tree = ${MAIN_TREE}`,
  tree: 'SELECT size, range FROM trees WHERE tree = ?',
  ...TILE_STATEMENTS,
  ...PEOPLE_STATEMENTS,
  nameId: 'SELECT id FROM names WHERE text = ?',
  nameText: 'SELECT text FROM names WHERE id = ?',
  leaf: `SELECT ${LEAF} FROM leaves WHERE idx = ?`,
  leaves: `SELECT ${LEAF} FROM leaves WHERE idx >= ? AND idx < ? ORDER BY idx LIMIT ?`,
  leavesOfTenant: `SELECT ${LEAF} FROM leaves WHERE tenant = ? AND idx >= ? ORDER BY idx LIMIT ?`,
  lastOfTenant: 'SELECT tenant_idx FROM leaves WHERE tenant = ? AND idx < ? ORDER BY idx DESC LIMIT 1',
  firstOfTenant: 'SELECT idx, tenant_idx FROM leaves WHERE tenant = ? AND idx >= ? ORDER BY idx LIMIT 1',
  tenants: 'SELECT tree, tenant FROM trees WHERE tree > ? ORDER BY tree LIMIT ?',
  tenantsOfLeaves: 'SELECT tenant FROM leaves WHERE idx >= ? AND idx < ?',
  timeOf: 'SELECT latest_ms FROM leaves WHERE idx = ?',
  positionOf: 'SELECT position FROM leaves WHERE idx = ?',
  atStream: 'SELECT idx FROM leaves WHERE stream = ? AND revision = ? LIMIT 1',
  standing: 'SELECT idx, hash, position, tenant FROM leaves WHERE stream = ? AND revision = ? LIMIT 1',
  tenantAt: `SELECT t.text AS tenant FROM names AS s JOIN leaves AS l ON l.stream = s.id JOIN names AS t ON t.id = l.tenant
    WHERE s.text = ? AND l.revision = ? LIMIT 1`,
  nextOfId: `SELECT idx FROM leaves WHERE ${ID_BLOCK} = ? AND event_id = ? AND idx >= ? ORDER BY idx LIMIT 1`,
  knowsDocument: 'SELECT 1 FROM known_documents WHERE tenant = ? AND resource = ?',
  mentions: 'SELECT idx, resource, hidden FROM mentions WHERE idx >= ? AND idx < ? ORDER BY idx, resource',
} as const;

/** Statements that look for the next leaf of a list; `from`: the leaves that are left, in the order of the walk. */
const seeksOf = (from: string) => {
  const seek = (condition: string): string => `SELECT idx FROM leaves WHERE ${condition} AND ${from} LIMIT 1`;
  const seekMention = (column: 'resource' | 'kind'): string =>
    `SELECT idx FROM mentions WHERE ${column} = ? AND hidden = ? AND ${from} LIMIT 1`;
  return {
    tenant: seek('tenant = ?'),
    subject: seek('subject = ?'),
    type: seek('type = ?'),
    kind: seek('kind = ?'),
    resource: seek('resource = ?'),
    mention: seekMention('resource'),
    mentionOfKind: seekMention('kind'),
    outcome: seek('outcome = ? AND outcome > 0'),
  };
};

export const SEEKS = { asc: seeksOf('idx >= ? ORDER BY idx'), desc: seeksOf('idx <= ? ORDER BY idx DESC') };
