import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import { cluster } from '../../../src/domain/kinds.ts';
import { compileFilter } from '../../../src/http/osac/filter/compile.ts';
import { compileOrder } from '../../../src/http/osac/filter/order.ts';
import { listTarget } from '../../../src/http/osac/filter/targets.ts';
import type { Sql } from '../../../src/projections/filter/to-sql.ts';
import type { Probe } from '../../../src/projections/resources/list-plan.ts';
import {
  countByName,
  countByTerm,
  documentsAt,
  matchesAmong,
  sizeAmong,
  walkedPage,
  walkedPlaces,
  type Walk,
  type WalkKey,
} from '../../../src/projections/resources/list-statements.ts';
import { RESOURCES_SCHEMA } from '../../../src/projections/resources/schema.ts';
import { defineFunctions } from '../../../src/projections/runner/sql-functions.ts';

const target = listTarget(cluster, 'private');
if (target === undefined) throw new Error('clusters are on the private surface');

const db = new DatabaseSync(':memory:');
defineFunctions(db);
db.exec(RESOURCES_SCHEMA);

const planOf = ({ sql, values }: Sql): string[] =>
  db
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...values)
    .map((row) => String(row['detail']));

/** Bounded by themselves: `page` by its LIMIT, `json_each` by the list or the document that it is given. */
const BOUNDED = /^SCAN (page|json_each|e|k|\(subquery-\d+\))( |$)/;
const unbounded = (plan: string[]): string[] =>
  plan.filter((step) => step.startsWith('SCAN') && !BOUNDED.test(step));

const TERM = { field: 'status.state', value: 'CLUSTER_STATE_READY' };
const PROBES: readonly (readonly Probe[] | undefined)[] = [
  undefined,
  [{ by: 'id', values: ['a', 'b'] }],
  [{ by: 'name', values: ['a'] }],
  [
    { by: 'id', values: ['a'] },
    { by: 'name', values: ['a', 'b'] },
    { by: 'term', field: 'status.state', values: ['x', 'y'] },
  ],
];
const TENANTS: readonly (readonly string[] | undefined)[] = [undefined, ['t1'], ['t1', 't2', 'shared']];

describe('query plans of lists', () => {
  const page = { offset: 5, limit: 100 };
  const walks = (tenants: readonly string[] | undefined, term?: Walk['term']): Walk[] =>
    (tenants ?? [undefined]).map((tenant) => ({
      kind: 'cluster',
      ...(tenant === undefined ? {} : { tenant }),
      ...(term === undefined ? {} : { term }),
    }));

  for (const tenants of TENANTS) {
    const who = tenants === undefined ? 'all' : `${tenants.length} tenants`;
    const cases: [string, Sql][] = [
      ...(['created', 'name', 'creation_time'] as const).flatMap((key: WalkKey) =>
        [false, true].map((backwards): [string, Sql] => [
          `by ${key}${backwards ? ' backwards' : ''}`,
          walkedPage(walks(tenants), { ...page, key, backwards }, 'public'),
        ]),
      ),
      ['of places', walkedPlaces(walks(tenants), { ...page, key: 'created', backwards: false })],
      ...[false, true].map((backwards): [string, Sql] => [
        `with one value${backwards ? ' backwards' : ''}`,
        walkedPage(walks(tenants, TERM), { ...page, key: 'created', backwards }, 'private'),
      ]),
    ];
    for (const [name, sql] of cases)
      it(`a page ${name} of ${who} walks covering indexes and sorts nothing`, () => {
        const plan = planOf(sql);
        expect(unbounded(plan), plan.join('\n')).to.deep.equal([]);
        expect(plan.join('\n')).not.to.match(/TEMP B-TREE|AUTOMATIC/);
        const ways = plan.filter((step) => /SEARCH (resources|terms) /.test(step));
        expect(ways).to.have.length(tenants?.length ?? 1);
        for (const way of ways) expect(way).to.match(/USING (COVERING INDEX|PRIMARY KEY)/);
      });

    for (const [i, probes] of PROBES.entries())
      it(`matches among few rows of ${who} are looked up (${i})`, () => {
        const plan = planOf(
          matchesAmong(
            probes,
            {
              kind: 'cluster',
              tenants,
              filters: [
                compileFilter(
                  `this.metadata.labels["a 'b"] != "x" && "d" in this.metadata.labels && this.spec.node_sets.w.size + 1 > 2`,
                  target,
                ),
              ],
              terms: [{ by: 'term', field: 'status.state', values: ['x', 'y'] }],
              listedOnly: true,
              nowMs: 0,
            },
            compileOrder('status.state desc, metadata.name', target),
          ),
        );
        expect(unbounded(plan), plan.join('\n')).to.deep.equal([]);
        expect(plan.join('\n')).not.to.match(/AUTOMATIC/);
        expect(unbounded(planOf(sizeAmong(probes, { kind: 'cluster', tenants })))).to.deep.equal([]);
        const keys = plan.filter((step) => step.startsWith('SEARCH r ')).join('\n');
        if (probes !== undefined) expect(keys).to.contain('created=?');
        else if (tenants !== undefined) expect(keys).to.contain('tenant=?');
      });

    it(`matches of ${who} by several indexed values read only those`, () => {
      const plan = planOf(
        matchesAmong(
          [{ by: 'term', field: 'metadata.labels.env', values: ['dev'] }],
          {
            kind: 'cluster',
            tenants,
            filters: [],
            terms: [{ by: 'term', field: 'status.state', values: ['x', 'y'] }],
            listedOnly: true,
            nowMs: 0,
          },
          undefined,
        ),
      );
      expect(unbounded(plan), plan.join('\n')).to.deep.equal([]);
      expect(plan.join('\n')).not.to.match(/AUTOMATIC|resources/);
    });

    it(`counts of ${who} read sums`, () => {
      const plan = planOf(countByTerm('cluster', 'status.state', ['x', 'y'], tenants));
      expect(unbounded(plan), plan.join('\n')).to.deep.equal([]);
      expect(plan.join('\n')).to.match(/SEARCH term_(counts|totals) .*kind=\? AND field=\? AND value=\?/);
    });
  }

  it('documents are looked up by their places, names are counted on their index', () => {
    for (const sql of [documentsAt('cluster', ['1'], 'public'), countByName('cluster', ['a'], 10)])
      expect(unbounded(planOf(sql)), planOf(sql).join('\n')).to.deep.equal([]);
  });

  it('would notice a scan', () => {
    expect(
      unbounded(planOf({ sql: 'SELECT 1 FROM resources AS r WHERE r.project = ?', values: ['x'] })),
    ).to.have.length(1);
  });
});
