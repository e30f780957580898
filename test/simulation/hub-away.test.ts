import { expect } from 'chai';
import { runAway } from '../support/simulation/away.ts';

/** The fault suites play it. */
const SEEDS = process.env['LEDGER_TEST_DRILLS'] === 'all' ? [1, 2, 3, 4, 5] : [1];

describe('a hub that is away for an hour', function () {
  this.timeout(600_000);
  for (const seed of SEEDS)
    it(`takes everything up again, of every placed kind (seed ${seed})`, async () => {
      const { failure, lines } = await runAway(seed);
      expect(failure === undefined ? undefined : [failure.message, ...lines.slice(-30)].join('\n')).to.equal(
        undefined,
      );
    });
});
