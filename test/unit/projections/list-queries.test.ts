import { expect } from 'chai';
import fc from 'fast-check';
import { publicDocument } from '../../../src/domain/resource.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { cluster } from '../../../src/domain/kinds.ts';
import { compileFilter } from '../../../src/http/osac/filter/compile.ts';
import { compileOrder } from '../../../src/http/osac/filter/order.ts';
import { listTarget } from '../../../src/http/osac/filter/targets.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import type { ListPage, ReadModels, Visibility } from '../../../src/projections/read-models.ts';
import { LIST_BOUNDS, type ListBounds } from '../../../src/projections/resources/list-reader.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import { indexedPaths } from '../../../src/projections/resources/terms.ts';
import {
  clusterDocuments,
  clusterFilters,
  NOW,
  type NaiveFilter,
} from '../../support/arbitraries/filters.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { documentCodec, documentKind, gone, put } from '../../support/projections/documents.ts';
import { createTestLog, type TestLog } from '../../support/projections/log.ts';
import { settle } from '../../support/projections/open-notes.ts';

const target = listTarget(cluster, 'private');
if (target === undefined) throw new Error('clusters are on the private surface');

const IDS = ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'];

/** Everything on this thread; nothing; a bit of both. */
const BOUNDS: readonly ListBounds[] = [LIST_BOUNDS, { rows: 0, steps: 0 }, { rows: 2, steps: 1 }];

const open = (log: TestLog, listBounds: ListBounds): Promise<ReadModels> =>
  openReadModels({
    dir: undefined,
    views: [resourcesView({ kinds: [documentKind], codec: documentCodec })],
    source: { kind: 'inline', reader: log.store },
    listBounds,
  });

type Step = { readonly id: string; readonly document: JsonObject | undefined };
const steps: fc.Arbitrary<Step> = fc
  .constantFrom(...IDS)
  .chain((id) =>
    fc.option(clusterDocuments(id), { nil: undefined, freq: 6 }).map((document) => ({ id, document })),
  );

/** An order, and what it compares: said once more, plainly. */
type NaiveOrder = {
  readonly text: string;
  readonly keys: readonly { of: (document: JsonObject) => string | number | null; descending: boolean }[];
};
const at = (document: JsonObject, path: string): string | null => {
  const [last = '', ...before] = path.split('.').toReversed();
  let node = document;
  for (const key of before.toReversed()) node = objectAt(node, key);
  return Object.hasOwn(node, last) ? stringAt(node, last) : null;
};
const ORDERED: readonly (readonly [text: string, of: (document: JsonObject) => string | number | null])[] = [
  ['id', (document) => at(document, 'id')],
  ['metadata.name', (document) => at(document, 'metadata.name') ?? ''],
  ['this.metadata.tenant', (document) => at(document, 'metadata.tenant')],
  ['spec.template.id', (document) => at(document, 'spec.template.id')],
  ["metadata.labels['env']", (document) => at(document, 'metadata.labels.env')],
  [
    'status.state',
    (document) => {
      const state = at(document, 'status.state');
      return state === null
        ? null
        : ['PROGRESSING', 'READY', 'FAILED'].findIndex((end) => state.endsWith(end));
    },
  ],
  [
    'metadata.creation_timestamp',
    (document) => (at(document, 'metadata.creation_timestamp') ?? '').replace('Z', ''),
  ],
];
const orders: fc.Arbitrary<NaiveOrder | undefined> = fc.option(
  fc
    .array(fc.tuple(fc.constantFrom(...ORDERED), fc.constantFrom('', ' asc', ' DESC')), {
      minLength: 1,
      maxLength: 3,
    })
    .map((terms) => ({
      text: terms.map(([[text], way]) => `${text}${way}`).join(', '),
      keys: terms.map(([[, of], way]) => ({ of, descending: way === ' DESC' })),
    })),
  { nil: undefined },
);

const compare = (a: string | number | null, b: string | number | null): number => {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
};
const sorted = (documents: readonly JsonObject[], order: NaiveOrder | undefined): readonly JsonObject[] => {
  if (order === undefined) return documents;
  const last = order.keys.at(-1)?.descending === true ? -1 : 1;
  return documents
    .map((document, place) => ({ document, place }))
    .toSorted((a, b) => {
      for (const { of, descending } of order.keys) {
        const by = compare(of(a.document), of(b.document));
        if (by !== 0) return descending ? -by : by;
      }
      return (a.place - b.place) * last;
    })
    .map(({ document }) => document);
};

type Query = {
  readonly filter: NaiveFilter | undefined;
  readonly order: NaiveOrder | undefined;
  readonly visibility: Visibility;
  readonly surface: 'public' | 'private';
  readonly listedOnly: boolean;
  readonly offset: number;
  readonly limit: number;
  readonly atOnce: number | undefined;
};
const queries: fc.Arbitrary<Query> = fc.record({
  filter: fc.option(clusterFilters, { nil: undefined }),
  order: orders,
  visibility: fc.oneof(
    fc.constant({ all: true } as const),
    fc.subarray(['t1', 't2', 'shared', 'nobody', 't1']).map((tenants) => ({ tenants })),
    fc.record({
      tenants: fc.subarray(['t1', 't2', 'shared']),
      within: fc.record({ t1: fc.subarray(['p', 'p.q', 'p-q', '']) }),
    }),
  ),
  surface: fc.constantFrom('public', 'private'),
  listedOnly: fc.boolean(),
  offset: fc.nat(7),
  limit: fc.nat(7),
  atOnce: fc.option(fc.nat(2_000), { nil: undefined }),
});

const isSeen = (visibility: Visibility, tenant: string, project: string): boolean =>
  'all' in visibility ||
  (visibility.tenants.includes(tenant) &&
    (tenant !== 't1' ||
      visibility.within === undefined ||
      visibility.within['t1']?.includes(project) === true));

const naively = (documents: readonly JsonObject[], query: Query): ListPage => {
  const { visibility, filter, listedOnly, order, offset, limit, surface } = query;
  const matching = documents.filter(
    (document) =>
      isSeen(visibility, at(document, 'metadata.tenant') ?? '', at(document, 'metadata.project') ?? '') &&
      (filter === undefined || filter.holds(document) === true) &&
      (!listedOnly || objectAt(document, 'spec')['template'] !== undefined),
  );
  return {
    total: matching.length,
    documents: sorted(matching, order)
      .slice(offset, offset + limit)
      .map((document) =>
        JSON.stringify(surface === 'private' ? document : publicDocument(document, documentKind.privateOnly)),
      ),
  };
};

const ask = (models: ReadModels, { filter, order, atOnce, ...query }: Query): ListPage | Promise<ListPage> =>
  models.resources.query({
    kind: 'cluster',
    ...query,
    ...(atOnce === undefined ? {} : { atOnce }),
    ...(filter === undefined ? {} : { filter: compileFilter(filter.text, target) }),
    ...(order === undefined ? {} : { order: compileOrder(order.text, target) }),
    indexed: indexedPaths(documentKind),
    nowMs: NOW,
    signal: new AbortController().signal,
  });

/** The page with its documents, which are all there or, where they are too long for one read, none of them. */
const whole = (models: ReadModels, { surface, atOnce }: Query, page: ListPage): ListPage => {
  const { places, total } = page;
  const documents =
    places?.map((place) => models.resources.documentAt('cluster', place, surface) ?? 'gone') ??
    page.documents;
  const tooLong = documents.join('').length > (atOnce ?? Number.POSITIVE_INFINITY);
  expect([places !== undefined, page.documents.length]).to.deep.equal([
    tooLong,
    tooLong ? 0 : documents.length,
  ]);
  return { documents, total };
};

/** `metadata.version` says how often a document was written, which is not what these are about. */
const withoutVersions = ({ documents, total }: ListPage): ListPage => ({
  total,
  documents: documents.map((text) =>
    JSON.stringify(JSON.parse(text), (key, value: unknown) => (key === 'version' ? undefined : value)),
  ),
});

describe('queries of lists', function () {
  this.timeout(120_000);

  for (const [i, bounds] of BOUNDS.entries())
    it(`give what a naive reader gives, looking at ${bounds.rows} rows on this thread`, () =>
      checkAsync(
        fc.asyncProperty(
          fc.array(steps, { maxLength: 14 }),
          fc.array(queries, { minLength: 1, maxLength: 12 }),
          async (history, asked) => {
            const log = createTestLog();
            const models = await open(log, bounds);
            const live = new Map<string, JsonObject>();
            for (const [n, { id, document }] of history.entries()) {
              if (document === undefined) live.delete(id);
              else live.set(id, document);
              await log.append(`cluster-${id}`, document === undefined ? gone : put(document));
              if (n % 5 === i) await settle(models, log);
            }
            await settle(models, log);
            for (const query of asked) {
              const page = withoutVersions(whole(models, query, await ask(models, query)));
              expect(page, JSON.stringify(query)).to.deep.equal(naively([...live.values()], query));
            }
            await models.close();
          },
        ),
        { numRuns: cases(120) },
      ));

  it('look at few long documents elsewhere: what counts is what must be read', async () => {
    const log = createTestLog();
    const models = await open(log, LIST_BOUNDS);
    const document = (id: string, note: string): JsonObject => ({
      id,
      metadata: { name: id, tenant: 't1', annotations: { note } },
      spec: { ssh_public_key: 'key of somebody' },
    });
    const asked = (filter?: string, order?: string): ListPage | Promise<ListPage> =>
      models.resources.query({
        kind: 'cluster',
        visibility: { all: true },
        surface: 'private',
        offset: 0,
        limit: 10,
        ...(filter === undefined ? {} : { filter: compileFilter(filter, target) }),
        ...(order === undefined ? {} : { order: compileOrder(order, target) }),
        indexed: indexedPaths(documentKind),
        nowMs: NOW,
        signal: new AbortController().signal,
      });
    const READ = 'this.spec.ssh_public_key.contains("somebody")';
    for (const [id, note, here] of [
      ['c0', 'short', true],
      ['c1', 'x'.repeat(600_000), true],
      ['c2', 'x'.repeat(600_000), false],
    ] as const) {
      await log.append(`cluster-${id}`, put(document(id, note)));
      await settle(models, log);
      for (const page of [asked(READ), asked(undefined, 'spec.ssh_public_key')])
        expect([id, !(page instanceof Promise)]).to.deep.equal([id, here]);
      expect((await asked(READ)).total).to.equal(1 + Number(id.slice(1)));
      expect(asked(`${READ} && this.id == "c0"`)).to.not.be.instanceOf(Promise);
      expect(asked()).to.not.be.instanceOf(Promise);
    }
    await models.close();
  });
});
