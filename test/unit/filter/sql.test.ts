import { expect } from 'chai';
import fc from 'fast-check';
import { DatabaseSync } from 'node:sqlite';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { cluster } from '../../../src/domain/kinds.ts';
import { compileFilter } from '../../../src/http/osac/filter/compile.ts';
import { listTarget } from '../../../src/http/osac/filter/targets.ts';
import { evaluate } from '../../../src/projections/filter/evaluate.ts';
import { conditionOf } from '../../../src/projections/filter/to-sql.ts';
import { defineFunctions } from '../../../src/projections/runner/sql-functions.ts';
import { clusterDocuments, clusterFilters, NOW } from '../../support/arbitraries/filters.ts';
import { cases, check } from '../../support/property.ts';

const target = listTarget(cluster, 'private');
if (target === undefined) throw new Error('clusters are on the private surface');

/** Just what a condition looks at. */
const openTable = (): DatabaseSync => {
  const db = new DatabaseSync(':memory:');
  defineFunctions(db);
  db.exec('CREATE TABLE resources (id TEXT, name TEXT, project TEXT, tenant TEXT, private_json TEXT) STRICT');
  return db;
};
const insert = (db: DatabaseSync, document: JsonObject): void => {
  const metadata = document['metadata'] as JsonObject;
  db.prepare('INSERT INTO resources VALUES (?, ?, ?, ?, ?)').run(
    stringAt(document, 'id'),
    stringAt(metadata, 'name'),
    stringAt(metadata, 'project'),
    stringAt(metadata, 'tenant'),
    JSON.stringify(document),
  );
};

describe('a filter in SQL, evaluated on a document, and said naively', function () {
  this.timeout(60_000);

  it('matches the same documents', () => {
    const db = openTable();
    const documents = fc.tuple(...[0, 1, 2, 3].map((n) => clusterDocuments(`c${n}`)));
    check(
      fc.property(documents, fc.array(clusterFilters, { minLength: 1, maxLength: 6 }), (stored, filters) => {
        db.exec('DELETE FROM resources');
        for (const document of stored) insert(db, document);
        for (const { text, holds } of filters) {
          const filter = compileFilter(text, target);
          const expected = stored.filter((document) => holds(document) === true).map(({ id }) => id);
          expect(
            stored.filter((document) => evaluate(filter, document, NOW)).map(({ id }) => id),
            text,
          ).to.deep.equal(expected);
          const { sql, values } = conditionOf(filter, NOW);
          const rows = db
            .prepare(`SELECT r.id FROM resources AS r WHERE ${sql} ORDER BY r.id`)
            .all(...values);
          expect(
            rows.map((row) => row['id']),
            `${text}\n${sql}`,
          ).to.deep.equal(expected);
        }
      }),
      { numRuns: cases(400) },
    );
  });

  it('keeps every value out of the statement', () => {
    const injection = `x' OR 1=1 --`;
    const { sql, values } = conditionOf(
      compileFilter(
        `this.id == "${injection}" || this.metadata.labels["${injection}"] == "${injection}" || this.metadata.name.contains("${injection}")`,
        target,
      ),
      NOW,
    );
    expect(sql).not.to.contain('1=1');
    expect(values.filter((value) => value === injection)).to.have.length(4);
  });
});
