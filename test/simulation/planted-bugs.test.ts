import { expect } from 'chai';
import { PLANTED, type PlantedBug } from '../support/simulation/planted.ts';
import { openPool, type Pool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

const MOST_SEEDS = 200;

/**
 * A seed that found the bug: tried first, and alone. Once it finds it no more, all others are tried in turn, and the
 * first that does belongs here.
 */
const FOUND_BY: { readonly [Bug in PlantedBug]: number } = {
  'an effect is performed before its EffectStarted is stored': 1,
  'a command is acknowledged before it is stored': 2,
  'an append goes to whatever revision the stream has': 33,
  'a name is taken without being reserved': 6,
  'a checkpoint is passed on before what it stands behind': 110,
  'what may have been sent is repeated without a look': 5,
  'a lost answer is taken for a failure': 14,
  'every attempt makes up a name of its own': 7,
  'what is being deleted is taken for gone': 5,
  'a job that may have been launched is not looked for': 37,
  'a webhook whose answer was lost is posted again at once': 5,
  'a job counts as ended once it was asked to end': 4,
  'what was asked to go from a hub is taken for gone': 41,
  'some timers never fire': 2,
  'what was cancelled stays in the queue of timers': 1,
  'a read model misses an event': 2,
};

/** A simulation that finds nothing proves something only when it would have found it. */
describe('simulation of a system with a known bug', function () {
  this.timeout(300_000);
  let pool: Pool;
  before(() => {
    pool = openPool();
  });
  after(() => pool.close());

  for (const bug of Object.keys(PLANTED) as PlantedBug[]) {
    it(`is found: ${bug}`, async () => {
      let found: Report | undefined;
      const look = (seeds: readonly number[]): Promise<void> =>
        pool.run(
          seeds.map((seed) => ({ seed, bug })),
          (report) => {
            if (report.failure !== undefined) found ??= report;
            return found !== undefined;
          },
        );
      const known = FOUND_BY[bug];
      await look([known]);
      if (found === undefined) {
        const others = Array.from({ length: MOST_SEEDS }, (_, i) => i + 1).filter((seed) => seed !== known);
        await look(others);
      }
      expect(found, `${bug}: not found within ${MOST_SEEDS} seeds`).to.not.equal(undefined);
    });
  }
});
