import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { RUN_INDEX_SCHEMA, RUN_INDEX_STATEMENTS } from '../../../src/app/process-runner/run-index.ts';

/** The run index is read and written on the HTTP thread: nothing there may scan without a bound. */
describe('query plans of the run index', () => {
  const db = new DatabaseSync(':memory:');
  db.exec(RUN_INDEX_SCHEMA);
  after(() => db.close());
  const planOf = (sql: string): string[] =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map((row) => String(row['detail']));
  /** Faults park runs, so there are few; what is counted and what has moved are ended by LIMIT. */
  const ALLOWED =
    /^SCAN (parked( USING INDEX .*)?|\(subquery-1\)|alarms USING (COVERING )?INDEX alarms_moved)$/;

  for (const [name, sql] of Object.entries(RUN_INDEX_STATEMENTS))
    it(`${name} walks an index, sorts nothing`, () => {
      const plan = planOf(sql);
      expect(
        plan.filter((step) => step.startsWith('SCAN') && !ALLOWED.test(step)),
        plan.join('\n'),
      ).to.deep.equal([]);
      expect(plan.join('\n')).not.to.match(/TEMP B-TREE|AUTOMATIC/);
    });

  it('would notice a scan', () => {
    expect(planOf('SELECT count(*) FROM runs WHERE closed = 0').join()).to.match(/SCAN/);
  });
});
