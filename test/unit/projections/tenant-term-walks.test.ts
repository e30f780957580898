import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { cluster } from '../../../src/domain/kinds.ts';
import { compileFilter } from '../../../src/http/osac/filter/compile.ts';
import { listTarget } from '../../../src/http/osac/filter/targets.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { LIST_BOUNDS } from '../../../src/projections/resources/list-reader.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { indexedPaths } from '../../../src/projections/resources/terms.ts';
import { checkAsync } from '../../support/property.ts';
import { documentCodec, documentKind, put } from '../../support/projections/documents.ts';
import { createTestLog } from '../../support/projections/log.ts';
import { settle } from '../../support/projections/open-notes.ts';

/**
 * Pages that are read by walking the index of one value, by callers who see some tenants only. Filters that are drawn at
 * random nearly never come this way: here every question does.
 */

const target = listTarget(cluster, 'public');
if (target === undefined) throw new Error('clusters are on the public surface');

const TENANTS = ['t1', 't2', 'shared'] as const;
const STATES = ['CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_READY'] as const;
const ENVS = ['dev', 'prod'] as const;

type Filed = { readonly tenant: string; readonly state: string; readonly env: string };
const filed: fc.Arbitrary<Filed> = fc.record({
  tenant: fc.constantFrom(...TENANTS),
  state: fc.constantFrom(...STATES),
  env: fc.constantFrom(...ENVS),
});
const documentOf = (id: string, { tenant, state, env }: Filed): JsonObject => ({
  id,
  metadata: { name: id, tenant, labels: { env } },
  status: { state },
});

/** A filter that one index answers, and what it means. */
type Term = { readonly text: string; readonly holds: (one: Filed) => boolean };
const terms: fc.Arbitrary<Term> = fc.oneof(
  fc
    .constantFrom(...STATES)
    .map(
      (wanted): Term => ({ text: `this.status.state == ${wanted}`, holds: ({ state }) => state === wanted }),
    ),
  fc.constantFrom(...ENVS).map(
    (wanted): Term => ({
      text: `this.metadata.labels["env"] == "${wanted}"`,
      holds: ({ env }) => env === wanted,
    }),
  ),
  fc.constant<Term>({
    text: `this.status.state in [${STATES.join(', ')}]`,
    holds: () => true,
  }),
);

const questions = fc.record({
  term: terms,
  tenants: fc.subarray([...TENANTS], { minLength: 1 }),
  offset: fc.nat(3),
  limit: fc.integer({ min: 1, max: 6 }),
});

/** No row may be looked at one by one on this thread: what is answered at once was walked to. */
const open = (reader: ReturnType<typeof createTestLog>): Promise<ReadModels> =>
  openReadModels({
    dir: undefined,
    views: [resourcesView({ kinds: [documentKind], codec: documentCodec })],
    source: { kind: 'inline', reader: reader.store },
    listBounds: { rows: 0, steps: LIST_BOUNDS.steps },
  });

describe('pages by one indexed value', () => {
  it('hold what lies in the tenants of the caller and has the value, and count nothing else', async () => {
    const seen = { walked: 0, narrowed: 0 };
    await checkAsync(
      fc.asyncProperty(
        fc.array(filed, { minLength: 4, maxLength: 12 }),
        fc.array(questions, { minLength: 4, maxLength: 8 }),
        async (all, asked) => {
          const log = createTestLog();
          const models = await open(log);
          const documents = all.map((one, i) => ({ one, id: `c${i}` }));
          for (const { one, id } of documents) await log.append(`cluster-${id}`, put(documentOf(id, one)));
          await settle(models, log);
          for (const { term, tenants, offset, limit } of asked) {
            const answer = models.resources.query({
              kind: 'cluster',
              surface: 'public',
              visibility: { tenants },
              filter: compileFilter(term.text, target),
              indexed: indexedPaths(documentKind),
              offset,
              limit,
              nowMs: 0,
              signal: new AbortController().signal,
            });
            const valued = documents.filter(({ one }) => term.holds(one));
            const wanted = valued.filter(({ one }) => (tenants as readonly string[]).includes(one.tenant));
            const page = await answer;
            const said = `${term.text} of ${tenants.join()}`;
            expect(page.total, said).to.equal(wanted.length);
            const items = page.documents.map((text) => JSON.parse(text) as JsonObject);
            expect(
              items.map((item) => [stringAt(item, 'id'), stringAt(objectAt(item, 'metadata'), 'tenant')]),
              said,
            ).to.deep.equal(wanted.slice(offset, offset + limit).map(({ id, one }) => [id, one.tenant]));
            if (items.length === 0 || answer instanceof Promise) continue;
            seen.walked += 1;
            if (wanted.length < valued.length) seen.narrowed += 1;
          }
          await models.close();
        },
      ),
      { numRuns: 60 },
    );
    // Else the property says nothing: most pages are walked to past objects of others that have the value, too.
    expect(seen.walked).to.be.greaterThan(100);
    expect(seen.narrowed).to.be.greaterThan(50);
  });
});
