import type { TimelineEntry, TimelineReader } from '../read-models.ts';
import type { ReadConnection } from '../runner/read-connection.ts';

/** Statements of the HTTP thread on the timeline; their query plans are tested. */
export const TIMELINE_STATEMENTS = {
  ofTenant: `
    SELECT position, at, type, audience, coalesce(tenant_summary, summary) AS summary,
      coalesce(tenant_data, data) AS data, actor, correlation_id AS correlationId
    FROM entries WHERE kind = ? AND id = ? AND position > ? AND position <= ? AND audience = 'tenant' ORDER BY position LIMIT ?`,
  ofProvider: `
    SELECT position, at, type, audience, summary, data, actor, correlation_id AS correlationId
    FROM entries WHERE kind = ? AND id = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?`,
} as const;

/** Stands behind every position: they are digits. */
const BEHIND_EVERYTHING = '~';

/** Tenants see what concerns them, without what only the provider may see; the provider sees all entries. */
export const timelineReader = (connection: ReadConnection): TimelineReader => ({
  of: (kind, id, { after, upTo, limit, audience, characters = Number.POSITIVE_INFINITY }) => {
    const statement = connection.statement(
      TIMELINE_STATEMENTS[audience === 'tenant' ? 'ofTenant' : 'ofProvider'],
    );
    const entries: TimelineEntry[] = [];
    let length = 0;
    for (const row of statement.iterate(kind, id, after ?? '', upTo ?? BEHIND_EVERYTHING, limit)) {
      const entry = { ...row } as unknown as TimelineEntry;
      entries.push(entry);
      length += entry.data.length;
      if (length >= characters) break;
    }
    return entries;
  },
});
