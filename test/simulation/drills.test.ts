import { expect } from 'chai';
import { momentsOf, type Drill } from '../support/simulation/drill.ts';
import { openPool, type Pool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

/** Each is a durable step, or something done far away that is not recorded yet. */
const MOMENTS: readonly string[] = ['after effect', 'at after-effect-started', 'at after-run-append'];

const DRILLS: { readonly [hub: string]: Drill } = {
  'its operator does everything': {},
  'eda, with an operator': { real: { mode: 'eda', controller: 'operator' } },
  'aap, with an operator': { real: { mode: 'aap', controller: 'operator' } },
  'eda, without an operator': { real: { mode: 'eda', controller: 'ledger' } },
  'aap, without an operator': { real: { mode: 'aap', controller: 'ledger' } },
};

/** `npm test` takes every sixth moment of each kind of hub, the fault suites take all. */
const EVERY = process.env['LEDGER_TEST_DRILLS'] === 'all' ? 1 : 6;

/** An order is created, scaled and deleted, and the service is killed once, between every two of its steps. */
describe('killed between every two steps', function () {
  this.timeout(600_000);
  let pool: Pool;
  before(() => {
    pool = openPool();
  });
  after(() => pool.close());

  for (const [hub, drill] of Object.entries(DRILLS)) {
    it(`one order, no second job, a clean end: ${hub}`, async () => {
      const deaths = (await momentsOf(1, drill)).filter(
        (death) => 'at' in death && MOMENTS.includes(death.at),
      );
      expect(deaths.length).to.be.greaterThan(30);
      const chosen = deaths.filter((_, i) => i % EVERY === 0);
      const reports: Report[] = [];
      await pool.run(
        chosen.map((death, i) => ({ seed: i + 1, drill: { ...drill, death } })),
        (report) => {
          reports.push(report);
          return false;
        },
      );
      const failed = reports
        .filter(({ failure }) => failure !== undefined)
        .map(({ seed, failure }) => `${JSON.stringify(chosen[seed - 1])}: ${failure}`);
      expect(failed).to.deep.equal([]);
      // Seeds differ a little in their ways: nearly all of them die where they are told to.
      const reborn = reports.filter(({ births }) => births > 1).length;
      expect(reborn).to.be.greaterThan(chosen.length * 0.8);
    });
  }
});

describe('a hub that nobody reaches', function () {
  this.timeout(120_000);
  it('keeps no order that was not sent to it: another hub builds it, once', async () => {
    const pool = openPool();
    const failures: (string | undefined)[] = [];
    try {
      const tasks = [1, 2, 3, 4].map((seed) => ({ seed, drill: { firstHubAway: true } }));
      await pool.run(tasks, ({ failure, lines }) => {
        failures.push(failure === undefined ? undefined : [failure, ...lines.slice(-20)].join('\n'));
        return false;
      });
    } finally {
      await pool.close();
    }
    expect(failures).to.deep.equal([undefined, undefined, undefined, undefined]);
  });
});
