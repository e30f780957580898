import { expect } from 'chai';
import fc from 'fast-check';
import { createListenerSlots } from '../../../src/adapters/automation/listener-slots.ts';
import { AutomationError } from '../../../src/app/automation/automation.ts';
import { checkAsync } from '../../support/property.ts';

const wait = (more: { waitMs?: number; signal?: AbortSignal } = {}) => ({
  waitMs: 5_000,
  signal: new AbortController().signal,
  ...more,
});
const kindOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'entered',
    (error: unknown) => (error instanceof AutomationError ? error.kind : error),
  );

describe('places at a listener', () => {
  it('are never more than there are, never two for one order, and everybody gets one', () =>
    checkAsync(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.tuple(fc.constantFrom('x', 'y'), fc.constantFrom('a', 'b', 'c', 'd', 'e')), {
          maxLength: 30,
        }),
        async (places, wanted) => {
          const slots = createListenerSlots(places);
          const inside: string[] = [];
          let most = 0;
          await Promise.all(
            wanted.map(async ([listener, key]) => {
              const leave = await slots.enter(listener, key, wait());
              const mine = `${listener} ${key}`;
              expect(inside).not.to.include(mine);
              inside.push(mine);
              most = Math.max(most, inside.filter((each) => each.startsWith(`${listener} `)).length);
              await new Promise((resolve) => setImmediate(resolve));
              inside.splice(inside.indexOf(mine), 1);
              leave();
            }),
          );
          expect(most).to.be.at.most(places);
        },
      ),
      { numRuns: 50 },
    ));

  it('are not waited for longer than allowed, nor after the caller has gone', async () => {
    const slots = createListenerSlots(1);
    const leave = await slots.enter('x', 'a', wait());
    const stop = new AbortController();
    const gone = slots.enter('x', 'b', wait({ signal: stop.signal }));
    stop.abort();
    expect(await kindOf(gone)).to.equal('unavailable');
    expect(await kindOf(slots.enter('x', 'c', wait({ waitMs: 1 })))).to.equal('throttled');
    expect(await kindOf(slots.enter('x', 'd', wait({ signal: AbortSignal.abort() })))).to.equal(
      'unavailable',
    );
    const next = slots.enter('x', 'e', wait());
    leave();
    (await next)();
  });
});
