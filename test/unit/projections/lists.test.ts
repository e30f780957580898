import { expect } from 'chai';
import fc from 'fast-check';
import type { Visibility } from '../../../src/projections/read-models.ts';
import {
  changed,
  createTestLog,
  deletionRequested,
  linked,
  marked,
  removed,
  touched,
  written,
} from '../../support/projections/log.ts';
import type { NoteEvent } from '../../support/projections/notes.ts';
import { openNotes, settle } from '../../support/projections/open-notes.ts';
import { cases, checkAsync } from '../../support/property.ts';

/** What a reader expects, said as plainly as possible: a list of live documents in memory. */
type Model = Map<
  string,
  { kind: string; id: string; tenant: string; name: string; marks: string[]; links: string[] }
>;

const TENANTS = ['t1', 't2', 'shared'];
const NAMES = ['same', 'other'];
const IDS = ['a', 'b', 'c', 'd', 'é', 'Z', '0'];

type Step = {
  kind: 'note' | 'memo';
  id: string;
  events: (NoteEvent | 'write')[];
  tenant: string;
  name: string;
};

const stepArbitrary: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('note' as const, 'memo' as const),
  id: fc.constantFrom(...IDS),
  tenant: fc.constantFrom(...TENANTS),
  name: fc.constantFrom(...NAMES),
  events: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constant('write' as const) },
      fc.constantFrom(changed('x'), changed('y'), touched, deletionRequested, removed),
      fc.subarray(['m1', 'm2']).map((marks) => marked(...marks)),
      fc.subarray(IDS).map((ids) => linked(...ids)),
    ),
    { minLength: 1, maxLength: 3 },
  ),
});

const play = (model: Model, step: Step): NoteEvent[] => {
  const key = `${step.kind} ${step.id}`;
  return step.events.map((event) => {
    if (event === 'write') {
      model.set(key, { ...step, marks: [], links: [] });
      return written(step.id, step);
    }
    const document = model.get(key);
    if (event.type === 'NoteRemoved') model.delete(key);
    else if (document !== undefined && event.type === 'NoteMarked')
      model.set(key, { ...document, marks: event.data.marks });
    else if (document !== undefined && event.type === 'NoteLinked')
      model.set(key, { ...document, links: event.data.to });
    return event;
  });
};

const visibilities: fc.Arbitrary<Visibility> = fc.oneof(
  fc.constant({ all: true } as const),
  fc.array(fc.constantFrom(...TENANTS, 'nobody', '*'), { maxLength: 5 }).map((tenants) => ({ tenants })),
);

const sees = (visibility: Visibility, tenant: string): boolean =>
  'all' in visibility || visibility.tenants.includes(tenant);
const byteOrder = (a: { id: string }, b: { id: string }): number =>
  Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));

describe('reads of resources', function () {
  this.timeout(60_000);

  it('agree with a naive model on any history, any visibility and any page', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.array(stepArbitrary, { maxLength: 25 }),
        fc.array(
          fc.record({
            kind: fc.constantFrom('note', 'memo'),
            visibility: visibilities,
            offset: fc.nat(8),
            limit: fc.nat(5),
          }),
          { minLength: 1, maxLength: 8 },
        ),
        async (steps, queries) => {
          const log = createTestLog();
          const models = await openNotes(log);
          const model: Model = new Map();
          // In two parts, so that some of it is folded from stored states.
          for (const [i, step] of steps.entries()) {
            await log.append(`${step.kind}-${step.id}`, ...play(model, step));
            if (i % 7 === 0) await settle(models, log);
          }
          await settle(models, log);

          for (const { kind, visibility, offset, limit } of queries) {
            const expected = [...model.values()].filter(
              (document) => document.kind === kind && sees(visibility, document.tenant),
            );
            const byId = expected.toSorted(byteOrder);
            const { rows, total } = models.resources.list(kind, visibility, { offset, limit });
            expect(total).to.equal(expected.length);
            expect(rows.map(({ id }) => id)).to.deep.equal(
              expected.slice(offset, offset + limit).map(({ id }) => id),
            );
            for (const surface of ['public', 'private'] as const)
              expect(
                await models.resources.query({
                  kind,
                  visibility,
                  surface,
                  offset,
                  limit,
                  indexed: new Set(),
                  nowMs: 0,
                  signal: new AbortController().signal,
                }),
              ).to.deep.equal({
                documents: rows.map((row) => (surface === 'public' ? row.publicJson : row.privateJson)),
                total,
              });
            for (const name of NAMES)
              expect(models.resources.findByName(kind, name, visibility).map(({ id }) => id)).to.deep.equal(
                byId.filter((document) => document.name === name).map(({ id }) => id),
              );
            for (const mark of ['m1', 'm2'])
              expect(models.resources.marked(kind, mark, visibility).map(({ id }) => id)).to.deep.equal(
                byId.filter(({ marks }) => marks.includes(mark)).map(({ id }) => id),
              );
            for (const id of IDS) {
              expect(models.resources.get(kind, id, visibility)?.id).to.equal(
                expected.find((document) => document.id === id)?.id,
              );
              expect(models.resources.isReferenced('note', id, visibility)).to.equal(
                [...model.values()].some(
                  ({ links, tenant }) => links.includes(id) && sees(visibility, tenant),
                ),
              );
            }
          }
          await models.close();
        },
      ),
      { numRuns: cases(150) },
    );
  });
});
