import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { AuditLeaf } from '../../../src/app/audit/tree.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';
import { intersect, remembering, union, type AuditQuery } from '../../../src/projections/audit/find.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';
import { createHistoryWriter, histories, TENANTS, type Step } from '../../support/audit/random-history.ts';
import { cases, check, checkAsync } from '../../support/property.ts';

const numbers = fc.uniqueArray(fc.nat(60), { maxLength: 40 }).map((list) => list.toSorted((a, b) => a - b));
const listOf = (values: readonly number[]) => remembering((index) => values.find((value) => value >= index));

describe('lists of leaves', () => {
  it('walked together give what is in all of them, whatever the pages', () => {
    check(
      fc.property(
        fc.array(numbers, { maxLength: 4 }),
        fc.nat(60),
        fc.nat(70),
        fc.integer({ min: 1, max: 7 }),
        (lists, start, end, limit) => {
          const wanted = Array.from({ length: 70 }, (_, index) => index).filter(
            (index) => index >= start && index < end && lists.every((list) => list.includes(index)),
          );
          const found: number[] = [];
          let from: number | undefined = start;
          for (let pages = 0; from !== undefined && pages < 100; pages += 1) {
            const page = intersect(lists.map(listOf), { start: from, end, limit });
            expect(page.found.length).to.be.at.most(limit);
            found.push(...page.found);
            from = page.next === undefined ? undefined : page.next + 1;
          }
          expect(found).to.deep.equal(wanted);
        },
      ),
    );
  });

  it('of a union give what is in any of them', () => {
    check(
      fc.property(fc.array(numbers, { maxLength: 4 }), (lists) => {
        const { found } = intersect([union(lists.map(listOf))], { start: 0, end: 100, limit: 1000 });
        expect(found).to.deep.equal([...new Set(lists.flat())].toSorted((a, b) => a - b));
      }),
    );
  });
});

type Question = Pick<
  AuditQuery,
  'tenants' | 'subject' | 'kind' | 'resourceId' | 'provider' | 'types' | 'from' | 'to' | 'below'
>;

const DOCUMENTS = [
  ['cluster', 'c1'],
  ['cluster', 'c2'],
  ['tenant', 'acme'],
  ['name', 'n1'],
  ['cluster', 'nothing'],
] as const;
const MINUTES = Array.from({ length: 8 }, (_, n) => `2026-01-01T00:0${n}:00.000Z`);

const questions: fc.Arbitrary<Question> = fc
  .record({
    tenants: fc.oneof(fc.constant('all' as const), fc.subarray([...TENANTS, 'nobody'])),
    subject: fc.option(fc.constantFrom('alice', 'bob', 'system', 'nobody'), { nil: undefined }),
    document: fc.option(fc.constantFrom(...DOCUMENTS), { nil: undefined }),
    kind: fc.option(fc.constantFrom('cluster', 'name', 'hub'), { nil: undefined }),
    provider: fc.option(fc.boolean(), { nil: undefined }),
    types: fc.option(
      fc.subarray(['AuditRead', 'ClusterLabelled', 'ClusterBecameReady', 'NotKnownYet', 'Never']),
      {
        nil: undefined,
      },
    ),
    from: fc.option(fc.constantFrom(...MINUTES), { nil: undefined }),
    to: fc.option(fc.constantFrom(...MINUTES), { nil: undefined }),
    below: fc.option(fc.nat(100), { nil: undefined }),
  })
  .map(({ tenants, document, kind, ...more }) => ({
    tenants,
    ...(document === undefined
      ? kind === undefined
        ? {}
        : { kind }
      : { kind: document[0], resourceId: document[1] }),
    ...(Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)) as object),
  }));

/** Appends whose events name objects of other streams, as the rows of mentions.ts say. */
const namings: fc.Arbitrary<Step> = fc
  .record({
    type: fc.constantFrom('AuditRead', 'HubCapacityReserved', 'NameReserved', 'NameReleased'),
    tenant: fc.constantFrom(...TENANTS),
    subject: fc.constantFrom('alice', 'bob'),
    id: fc.constantFrom('c1', 'c2', 'nothing'),
    tenants: fc.subarray([...TENANTS]),
  })
  .map(({ type, tenant, subject, id, tenants }) => ({
    stream:
      type === 'HubCapacityReserved' ? 'hubCapacity-h1' : type === 'AuditRead' ? 'auditAccess-x' : 'name-n1',
    tenant,
    subject,
    types: [type],
    data: {
      kind: 'cluster',
      holder: type === 'HubCapacityReserved' ? { kind: 'cluster', id } : id,
      query: { kind: 'cluster', id },
      tenants,
    },
  }));

/** What the same question means, said plainly. */
const fits = (question: Question, leaf: AuditLeaf, latest: string): boolean => {
  const { tenants, subject, kind, resourceId, provider, types, from, to, below } = question;
  const about = [leaf, ...(leaf.also ?? []).filter(({ hidden }) => provider === true || !hidden)];
  return (
    // The service's own history ('') is nobody's: only the provider finds it by its name.
    (tenants === 'all' || (tenants.includes(leaf.tenant) && (leaf.tenant !== '' || provider === true))) &&
    (subject === undefined || leaf.subject === subject) &&
    about.some(
      (each) =>
        (kind === undefined || each.kind === kind) &&
        (resourceId === undefined || each.resourceId === resourceId),
    ) &&
    (types === undefined || types.includes(leaf.record.type)) &&
    (from === undefined || latest >= from) &&
    (to === undefined || latest < to) &&
    (below === undefined || leaf.index < below)
  );
};

const pagesOf = async (
  reader: AuditReader,
  question: Question,
  { limit, order = 'asc', after: first }: Pick<AuditQuery, 'limit' | 'order' | 'after'>,
  between = async (): Promise<void> => undefined,
): Promise<number[]> => {
  const found: number[] = [];
  let after = first;
  for (let pages = 0; pages < 1000; pages += 1) {
    const { leaves, next } = reader.find({
      ...question,
      limit,
      order,
      ...(after !== undefined && { after }),
    });
    found.push(...leaves.map(({ index }) => index));
    if (next === undefined) break;
    after = next;
    await between();
  }
  return found;
};

describe('questions of auditors', () => {
  it('are answered as by a reader of the whole history, page by page', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            histories(4),
            namings.map((one) => [one]),
          ),
          { minLength: 1, maxLength: 20 },
        ),
        fc.array(fc.nat(7 * 60), { minLength: 1, maxLength: 20 }),
        fc.array(questions, { minLength: 20, maxLength: 20 }),
        fc.integer({ min: 1, max: 9 }),
        async (history, seconds, asked, limit) => {
          let step = 0;
          // A clock that goes back and forth.
          const now = (): string =>
            new Date(
              Date.parse(MINUTES[0] as string) + 1000 * (seconds[step % seconds.length] ?? 0),
            ).toISOString();
          const store = createMemoryEventStore({ now });
          const models = await openAuditView(store);
          try {
            const write = createHistoryWriter(store, 'f');
            for (const one of history.flat()) {
              await write([one]);
              step += 1;
            }
            await followed(models, store);
            const reader = audit(models);
            let latest = '';
            const leaves = reader.leaves(0, 1000).map((leaf) => {
              latest = leaf.recordedAt > latest ? leaf.recordedAt : latest;
              return { leaf, latest };
            });
            for (const question of asked) {
              const fitting = leaves
                .filter((each) => fits(question, each.leaf, each.latest))
                .map(({ leaf }) => leaf.index);
              expect(await pagesOf(reader, question, { limit })).to.deep.equal(fitting);
              const newest = { limit, order: 'desc' } as const;
              expect(await pagesOf(reader, question, newest)).to.deep.equal(fitting.toReversed());
              // Where a list begins that was asked for without a place: behind all leaves, whatever the question leaves out.
              const fromTheEnd = { ...newest, after: reader.size() };
              expect(await pagesOf(reader, question, fromTheEnd)).to.deep.equal(fitting.toReversed());
            }
          } finally {
            await models.close();
            await store.close();
          }
        },
      ),
      { numRuns: cases(250) },
    );
  });

  it('are answered newest first as oldest first, the other way round, while events arrive', async function () {
    this.timeout(60_000);
    await checkAsync(
      fc.asyncProperty(
        histories(12),
        fc.array(questions, { minLength: 8, maxLength: 8 }),
        fc.integer({ min: 1, max: 4 }),
        async (history, asked, limit) => {
          const store = createMemoryEventStore();
          const models = await openAuditView(store);
          try {
            const write = createHistoryWriter(store, 'f');
            await write(history);
            await followed(models, store);
            const reader = audit(models);
            const arrive = async (): Promise<void> => {
              await write(history.slice(0, 1));
              await followed(models, store);
            };
            for (const question of asked) {
              const below = Math.min(question.below ?? Infinity, reader.size());
              const oldest = await pagesOf(reader, { ...question, below }, { limit }, arrive);
              const newest = await pagesOf(reader, { ...question, below }, { limit, order: 'desc' }, arrive);
              expect(newest).to.deep.equal(oldest.toReversed());
            }
          } finally {
            await models.close();
            await store.close();
          }
        },
      ),
      { numRuns: 10 },
    );
  });
});
