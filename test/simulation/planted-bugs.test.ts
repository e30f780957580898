import { expect } from 'chai';
import { PLANTED, type PlantedBug } from '../support/simulation/planted.ts';
import { openPool, type Pool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

const MOST_SEEDS = 200;

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
      const tasks = Array.from({ length: MOST_SEEDS }, (_, i) => ({ seed: i + 1, bug }));
      await pool.run(tasks, (report) => {
        if (report.failure !== undefined) found ??= report;
        return found !== undefined;
      });
      expect(found, `${bug}: not found within ${MOST_SEEDS} seeds`).to.not.equal(undefined);
    });
  }
});
