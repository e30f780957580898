import { expect } from 'chai';
import fc from 'fast-check';
import type { AuditLeaf } from '../../../src/app/audit/tree.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { findEvent } from '../../../src/http/audit/events.ts';
import { firstFound } from '../../../src/http/audit/first-match.ts';
import { assertNames, isKind } from '../../../src/http/audit/names.ts';
import type { Reach } from '../../../src/http/audit/access.ts';
import type { AuditQuery } from '../../../src/projections/audit/find.ts';
import { checkAsync } from '../../support/property.ts';

/** A reader that comes so many leaves further with each page, and has one leaf. */
const reading = (place: number, size: number, reach: number) => {
  const asked: AuditQuery[] = [];
  const find = (query: AuditQuery) => {
    asked.push(query);
    const from = (query.after ?? -1) + 1;
    const to = Math.min(size, from + reach);
    if (place >= from && place < to) return { leaves: [{ index: place } as AuditLeaf], next: undefined };
    return { leaves: [], next: to < size ? to - 1 : undefined };
  };
  return { asked, reader: { find } as never };
};
const on = new AbortController().signal;
const TENANT: Reach = { tenants: ['acme'], audience: 'tenant' } as never;
const FIELDS = { types: 'type', kind: 'kind', outcome: 'outcome' };
const FAR = reading(1_000, 2_000, 7);

describe('whether something is in the history', () => {
  it('is told however far it lies, and however little one page comes along', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.nat(150),
        fc.nat(100),
        fc.integer({ min: 1, max: 9 }),
        async (place, size, reach) => {
          const { asked, reader } = reading(place, size, reach);
          const found = await firstFound({ tenants: ['acme'], kind: 'hub' }, { reader }, on);
          expect(found?.index).to.equal(place < size ? place : undefined);
          for (const query of asked) expect(query).to.include({ kind: 'hub', limit: 1 });
        },
      ),
    );
  });

  it('is not said to be not where nobody has looked to the end', async () => {
    const { asked, reader } = reading(1_000_000, 1_000_001, 1);
    const refused: unknown = await firstFound({ tenants: 'all' }, { reader }, on).catch(
      (error: unknown) => error,
    );
    expect(refused).to.be.instanceOf(ApiError);
    expect([(refused as ApiError).status, (refused as ApiError).reason]).to.deep.equal([
      503,
      'SEARCH_TOO_LONG',
    ]);
    expect(asked.length).to.be.at.most(500);
  });

  it('is looked for no longer once the caller has gone', async () => {
    const gone = new AbortController();
    gone.abort(new Error('gone'));
    const { asked, reader } = reading(1_000, 2_000, 1);
    const ended: unknown = await firstFound({ tenants: 'all' }, { reader }, gone.signal).catch(
      (error: unknown) => error,
    );
    expect(String(ended)).to.equal('Error: gone');
    expect(asked).to.have.length(1);
  });

  it('given a type or kind of another release far behind, when it is asked for, then it is no misspelt one', async () => {
    expect(await isKind('oldThing', TENANT, FAR, on)).to.equal(true);
    await assertNames({ types: ['OldThingDone'], kind: 'oldThing' }, FIELDS, TENANT, FAR, on);
    const none = reading(5_000, 2_000, 7);
    expect(await isKind('oldThing', TENANT, none, on)).to.equal(false);
    const refused: unknown = await assertNames({ types: ['OldThingDone'] }, FIELDS, TENANT, none, on).catch(
      (error: unknown) => error,
    );
    expect((refused as ApiError).status).to.equal(400);
  });

  it('given an event far behind, when it is asked for by its id, then it is there', async () => {
    const looked: unknown = await findEvent('one', TENANT, { ...FAR, store: {} } as never, on).catch(
      (error: unknown) => error,
    );
    // The leaf was found, and is of no tenant of theirs: nothing else was read.
    expect((looked as ApiError).status).to.equal(404);
    expect(FAR.asked.at(-1)).to.include({ eventId: 'one' });
    expect(FAR.asked.at(-1)?.after).to.be.greaterThan(900);
  });
});
