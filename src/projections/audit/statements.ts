import { ID_BLOCK } from './event-ids.ts';
import { PEOPLE_STATEMENTS } from './people.ts';
import { MAIN_TREE } from './schema.ts';
import { TILE_STATEMENTS } from './tiles.ts';

const LEAF = `idx, position, stream, revision, event_id, type, recorded_ms, tenant, tenant_idx, subject, kind, resource,
  outcome, hashes, occurred_at, record`;

/** The next leaf of a list, from `idx` on. */
const seek = (condition: string): string =>
  `SELECT idx FROM leaves WHERE ${condition} AND idx >= ? ORDER BY idx LIMIT 1`;

/** The last one of a list, up to `idx`. */
const seekBack = (condition: string): string =>
  `SELECT idx FROM leaves WHERE ${condition} AND idx <= ? ORDER BY idx DESC LIMIT 1`;

const mentioned = (column: 'resource' | 'kind', which: string): string =>
  `SELECT idx FROM mentions WHERE ${column} = ? AND hidden = ? AND ${which} LIMIT 1`;
const seekMention = (column: 'resource' | 'kind'): string => mentioned(column, 'idx >= ? ORDER BY idx');
const seekMentionBack = (column: 'resource' | 'kind'): string =>
  mentioned(column, 'idx <= ? ORDER BY idx DESC');

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
  nextOfId: seek(`${ID_BLOCK} = ? AND event_id = ?`),
  nextOfTenant: seek('tenant = ?'),
  nextOfSubject: seek('subject = ?'),
  nextOfType: seek('type = ?'),
  nextOfKind: seek('kind = ?'),
  nextOfResource: seek('resource = ?'),
  knowsDocument: 'SELECT 1 FROM known_documents WHERE tenant = ? AND resource = ?',
  mentions: 'SELECT idx, resource, hidden FROM mentions WHERE idx >= ? AND idx < ? ORDER BY idx, resource',
  nextMention: seekMention('resource'),
  nextMentionOfKind: seekMention('kind'),
  nextOfOutcome: seek('outcome = ? AND outcome > 0'),
  previousOfTenant: seekBack('tenant = ?'),
  previousOfSubject: seekBack('subject = ?'),
  previousOfType: seekBack('type = ?'),
  previousOfKind: seekBack('kind = ?'),
  previousOfResource: seekBack('resource = ?'),
  previousMention: seekMentionBack('resource'),
  previousMentionOfKind: seekMentionBack('kind'),
  previousOfOutcome: seekBack('outcome = ? AND outcome > 0'),
} as const;

/** Statements that look for the next leaf of a list, by the order in which it is walked. */
export const SEEKS = {
  asc: {
    tenant: AUDIT_STATEMENTS.nextOfTenant,
    subject: AUDIT_STATEMENTS.nextOfSubject,
    type: AUDIT_STATEMENTS.nextOfType,
    kind: AUDIT_STATEMENTS.nextOfKind,
    resource: AUDIT_STATEMENTS.nextOfResource,
    mention: AUDIT_STATEMENTS.nextMention,
    mentionOfKind: AUDIT_STATEMENTS.nextMentionOfKind,
    outcome: AUDIT_STATEMENTS.nextOfOutcome,
  },
  desc: {
    tenant: AUDIT_STATEMENTS.previousOfTenant,
    subject: AUDIT_STATEMENTS.previousOfSubject,
    type: AUDIT_STATEMENTS.previousOfType,
    kind: AUDIT_STATEMENTS.previousOfKind,
    resource: AUDIT_STATEMENTS.previousOfResource,
    mention: AUDIT_STATEMENTS.previousMention,
    mentionOfKind: AUDIT_STATEMENTS.previousMentionOfKind,
    outcome: AUDIT_STATEMENTS.previousOfOutcome,
  },
} as const;
