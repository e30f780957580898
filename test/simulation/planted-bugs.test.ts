import { expect } from 'chai';
import { PLANTED, type PlantedBug } from '../support/simulation/planted.ts';
import { openPool, type Pool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

const MOST_SEEDS = 200;

/**
 * Seeds that found a bug late when all were tried in turn: tried first. Once one of them finds it no more, the others
 * are tried as ever.
 */
const FOUND_BY: { readonly [Bug in PlantedBug]?: number } = {
  'an append goes to whatever revision the stream has': 9,
  'a name is taken without being reserved': 68,
  'a checkpoint is passed on before what it stands behind': 62,
  'a lost answer is taken for a failure': 14,
  'a job that may have been launched is not looked for': 45,
  'a webhook whose answer was lost is posted again at once': 37,
};

const seedsFor = (bug: PlantedBug): readonly number[] => {
  const all = Array.from({ length: MOST_SEEDS }, (_, i) => i + 1);
  const first = FOUND_BY[bug];
  return first === undefined ? all : [first, ...all.filter((seed) => seed !== first)];
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
      const tasks = seedsFor(bug).map((seed) => ({ seed, bug }));
      await pool.run(tasks, (report) => {
        if (report.failure !== undefined) found ??= report;
        return found !== undefined;
      });
      expect(found, `${bug}: not found within ${MOST_SEEDS} seeds`).to.not.equal(undefined);
    });
  }
});
