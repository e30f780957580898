import { expect } from 'chai';
import { openPool, type Pool } from '../support/simulation/pool.ts';
import { sayFailure } from '../support/simulation/say.ts';
import { reportOn, type Report } from '../support/simulation/worker.ts';

const SEEDS = 200;
const SHOWN_LINES = 40;

describe('simulation', function () {
  this.timeout(300_000);
  let pool: Pool;
  before(() => {
    pool = openPool();
  });
  after(() => pool.close());

  it(`holds for ${SEEDS} seeds`, async () => {
    const reports: Report[] = [];
    const tasks = Array.from({ length: SEEDS }, (_, i) => ({ seed: i + 1 }));
    await pool.run(tasks, (report) => {
      reports.push(report);
      return report.failure !== undefined;
    });
    const failed = reports.find(({ failure }) => failure !== undefined);
    if (failed !== undefined) throw new Error(sayFailure(failed, SHOWN_LINES));
    expect(reports).to.have.length(SEEDS);
    // Nothing would be proved by worlds in which nothing happens.
    expect(Math.min(...reports.map(({ events }) => events))).to.be.greaterThan(20);
  });

  it('does the same again for the same seed, whatever ran before in the process', async () => {
    for (const seed of [3, 7, 12]) {
      const first = await reportOn({ seed });
      await reportOn({ seed: seed + 1 });
      const second = await reportOn({ seed });
      expect(second.hash, `seed ${seed}`).to.equal(first.hash);
      expect(second.steps).to.equal(first.steps);
    }
  });

  it('differs from seed to seed', async () => {
    const hashes = new Set<string>();
    for (const seed of [1, 2, 3]) hashes.add((await reportOn({ seed })).hash);
    expect(hashes.size).to.equal(3);
  });
});
