import { expect } from 'chai';
import { DatabaseSync } from 'node:sqlite';
import type { JsonObject } from '../../../src/domain/json.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { verifyResources } from '../../../src/projections/resources/verify.ts';
import { documentCodec, documentKind, gone, put } from '../../support/projections/documents.ts';
import { createTestLog, type TestLog } from '../../support/projections/log.ts';

const document = (id: string, more: JsonObject = {}): JsonObject => ({
  id,
  metadata: {
    name: `n-${id}`,
    tenant: 't1',
    project: 'p',
    labels: { env: 'dev' },
    creation_timestamp: '2026-01-01T00:00:00Z',
  },
  spec: { template: { id: 'small' }, ...more },
  status: { state: 'CLUSTER_STATE_READY' },
});

/** What a new version of the view is checked with before it is switched to. */
describe('the check of a freshly built file', () => {
  let log: TestLog;
  let db: DatabaseSync;

  beforeEach(async () => {
    log = createTestLog();
    for (const id of ['a', 'b', 'c']) await log.append(`cluster-${id}`, put(document(id)));
    await log.append('cluster-a', put({ ...document('a'), status: {} }));
    await log.append('cluster-b', gone);
    const view = resourcesView({ kinds: [documentKind], codec: documentCodec });
    db = new DatabaseSync(':memory:');
    db.exec(view.schema);
    const apply = view.open(db);
    for (const event of await log.all()) apply(event);
    apply.flush?.();
  });
  afterEach(() => db.close());

  const check = (): Promise<readonly string[]> =>
    verifyResources(db, [documentKind], documentCodec, (stream) => log.store.readStream(stream));

  it('finds nothing wrong with what the events give', async () => {
    expect(await check()).to.deep.equal([]);
    expect(
      db
        .prepare('SELECT field, value, total FROM term_totals ORDER BY field')
        .all()
        .map((row) => ({ ...row })),
    ).to.deep.equal([
      { field: 'listed', value: '', total: 2 },
      { field: 'metadata.labels.env', value: 'dev', total: 2 },
      { field: 'metadata.project', value: 'p', total: 2 },
      { field: 'spec.template.id', value: 'small', total: 2 },
      { field: 'status.state', value: 'CLUSTER_STATE_READY', total: 1 },
    ]);
  });

  for (const [what, damage, complaint] of [
    ['a wrong total', 'UPDATE totals SET total = 7', 'cluster of all tenants: counted 7, present 2'],
    [
      'a wrong count of a tenant',
      'UPDATE counts SET total = 1',
      'cluster of tenant t1: counted 1, present 2',
    ],
    [
      'a wrong count of a value',
      `UPDATE term_counts SET total = 5 WHERE field = 'status.state'`,
      'a value of status.state of tenant t1: counted 5, present 1',
    ],
    [
      'a wrong total of a value',
      `DELETE FROM term_totals WHERE field = 'metadata.project'`,
      'metadata.project of all tenants: counted 0, present 2',
    ],
    [
      'a lost value',
      `DELETE FROM terms WHERE field = 'listed'`,
      'a value of listed of all tenants: counted 2, present 0',
    ],
    [
      'values of another document',
      `UPDATE states SET terms = '[]' WHERE stream = 'cluster-a'`,
      'cluster-a@1: the stored terms',
    ],
    [
      'a changed document',
      `UPDATE resources SET private_json = '{}' WHERE id = 'c'`,
      'cluster-c@0: the stored document',
    ],
  ] as const)
    it(`finds ${what}`, async () => {
      db.exec(damage);
      expect((await check()).join('\n')).to.contain(complaint);
    });
});
