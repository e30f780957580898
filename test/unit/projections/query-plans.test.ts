import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { AUDIT_SCHEMA } from '../../../src/projections/audit/schema.ts';
import { AUDIT_STATEMENTS, SEEKS } from '../../../src/projections/audit/statements.ts';
import { CHANGE_STATEMENTS, changesOfTenants } from '../../../src/projections/resources/change-reader.ts';
import {
  getOfTenants,
  pageOfTenants,
  RESOURCE_STATEMENTS,
} from '../../../src/projections/resources/resource-reader.ts';
import { RESOURCES_SCHEMA } from '../../../src/projections/resources/schema.ts';
import { TIMELINE_STATEMENTS } from '../../../src/projections/timeline/timeline-reader.ts';
import { timelineView } from '../../../src/projections/timeline/timeline-view.ts';
import { USAGE_SCHEMA } from '../../../src/projections/usage/usage-view.ts';
import { USAGE_STATEMENTS } from '../../../src/projections/usage/usage-reader.ts';

/**
 * Statements of the HTTP thread may not scan without a bound. One scan is bounded: `page` is the
 * subquery that LIMIT ends.
 */
const ALLOWED_SCANS = /^SCAN page$/;

const timeline = timelineView({
  kinds: [],
  words: {
    decode: ({ type, data }) => ({ type, data }),
    redact: (event) => event,
  },
});

const REGISTERED: readonly { schema: string; statements: { readonly [name: string]: string } }[] = [
  {
    schema: RESOURCES_SCHEMA,
    statements: {
      ...RESOURCE_STATEMENTS,
      ...CHANGE_STATEMENTS,
      ...Object.fromEntries([1, 2, 20].map((n) => [`changes of ${n} tenants`, changesOfTenants(n)])),
      ...Object.fromEntries([1, 2, 3, 20].map((n) => [`get of ${n} tenants`, getOfTenants(n)])),
      ...Object.fromEntries([1, 2, 3, 4, 8, 20].map((n) => [`page of ${n} tenants`, pageOfTenants(n)])),
    },
  },
  { schema: timeline.schema, statements: TIMELINE_STATEMENTS },
  { schema: AUDIT_SCHEMA, statements: AUDIT_STATEMENTS },
  { schema: AUDIT_SCHEMA, statements: SEEKS.asc },
  { schema: AUDIT_SCHEMA, statements: SEEKS.desc },
  { schema: USAGE_SCHEMA, statements: USAGE_STATEMENTS },
];

const planOf = (db: DatabaseSync, sql: string): string[] =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map((row) => String(row['detail']));

const unbounded = (plan: string[]): string[] =>
  plan.filter((step) => step.startsWith('SCAN') && !ALLOWED_SCANS.test(step));

describe('query plans of the HTTP thread', () => {
  for (const { schema, statements } of REGISTERED) {
    const db = new DatabaseSync(':memory:');
    db.exec(schema);
    for (const [name, sql] of Object.entries(statements)) {
      it(`${name} walks an index, sorts nothing`, () => {
        const plan = planOf(db, sql);
        expect(unbounded(plan), plan.join('\n')).to.deep.equal([]);
        expect(plan.join('\n')).not.to.match(/TEMP B-TREE|AUTOMATIC/);
      });
    }
  }

  it('lists walk to their offset on a covering index', () => {
    const db = new DatabaseSync(':memory:');
    db.exec(RESOURCES_SCHEMA);
    for (const sql of [RESOURCE_STATEMENTS.pageOfAll, pageOfTenants(3)])
      expect(planOf(db, sql).filter((step) => step.includes('SEARCH resources'))).to.satisfy(
        (steps: string[]) => steps.length > 0 && steps.every((step) => step.includes('COVERING INDEX')),
      );
  });

  it('would notice a scan and a sort', () => {
    const db = new DatabaseSync(':memory:');
    db.exec(RESOURCES_SCHEMA);
    expect(unbounded(planOf(db, 'SELECT * FROM resources WHERE project = ?'))).to.have.length(1);
    expect(planOf(db, 'SELECT * FROM resources WHERE kind = ? ORDER BY position').join()).to.contain(
      'TEMP B-TREE',
    );
  });
});
