import { expect } from 'chai';
import fc from 'fast-check';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import { checkAsync } from '../../support/property.ts';
import {
  isDone,
  orderToy,
  readAll,
  startToyRunner,
  toyStore,
} from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop, type ShopMood } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

/** Owns without asking anybody, so that two runners work at once. */
const always = (epoch: number): Ownership => ({
  hold: (signal, whileOwner) => whileOwner({ epoch, signal }),
});

const attemptsOf = async (store: ReturnType<typeof toyStore>, id: string): Promise<string[]> =>
  (await readAll(store, `toyRun-${id}`))
    .filter((event) => event.type === 'EffectStarted')
    .map((event) => `${event.data['effectId'] as string}#${event.data['attempt'] as number}`);

describe('two process runners that both believe to be the owner', function () {
  this.timeout(60_000);

  it('never start one attempt twice and make one object per part', async () => {
    const moods: fc.Arbitrary<ShopMood> = fc.constantFrom('well', 'well', 'loses-answers', 'dead');
    await checkAsync(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 8 }),
        fc.array(moods, { minLength: 2, maxLength: 2 }),
        fc.constantFrom([1, 1], [1, 2], [2, 1]),
        fc.integer({ min: 0, max: 3 }),
        async (orders, [first = 'well', second = 'well'], [epochA = 1, epochB = 1], workMs) => {
          const store = toyStore(false);
          const workshop = createWorkshop({ workMs });
          workshop.mood('a', first);
          workshop.mood('b', second);
          const settings = { effectDeadlineMs: 60, breakerHalfOpenMs: 30, stopGraceMs: 300 };
          const runners = [
            startToyRunner({
              store,
              workshop,
              instance: 'one',
              more: { ownership: always(epochA), settings },
            }),
            startToyRunner({
              store,
              workshop,
              instance: 'two',
              more: { ownership: always(epochB), settings },
            }),
          ];
          const all = ['body', 'wheel', 'door'];
          for (const [i, count] of orders.entries()) {
            await orderToy(store, { id: `t${i}`, shop: i % 2 === 0 ? 'a' : 'b', parts: all.slice(0, count) });
          }
          await eventually('the first call', () => workshop.calls.length > 0);
          for (const shop of ['a', 'b']) workshop.mood(shop, 'well');
          for (const [i, count] of orders.entries()) {
            await eventually(`t${i} is done`, () => isDone(store, `t${i}`), 15_000);
            const attempts = await attemptsOf(store, `t${i}`);
            expect(new Set(attempts).size, attempts.join(' ')).to.equal(attempts.length);
            const objects = [...workshop.objects.keys()].filter((name) => name.startsWith(`t${i}-`));
            expect(objects).to.have.members(all.slice(0, count).map((part) => `t${i}-${part}`));
            const arrived = (await readAll(store, `toy-t${i}`)).filter(
              (event) => event.type === 'ToyPartArrived',
            );
            expect(arrived).to.have.length(count);
          }
          await Promise.all(runners.map((runner) => runner.stop()));
          // The store takes one start per attempt, whoever writes it; what counts is who acts on it.
          const calls = workshop.calls.map(({ effectId, attempt }) => `${effectId}#${attempt}`);
          expect(new Set(calls).size, calls.toSorted().join(' ')).to.equal(calls.length);
        },
      ),
      { numRuns: 15 },
    );
  });
});
