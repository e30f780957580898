import { expect } from 'chai';
import { MACHINES } from '../support/simulation/machines.ts';
import { sayFailure } from '../support/simulation/failure-report.ts';
import { sharedPool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

const ALL = process.env['LEDGER_TEST_DRILLS'] === 'all';
/** `npm test` plays four worlds, the fault suites 32; `npm run sim -- --every-kind --seeds 1000` as many as wanted. */
const SEEDS = ALL ? 32 : 4;

describe('simulation of all kinds that act', function () {
  this.timeout(600_000);

  it(`holds for ${SEEDS} seeds`, async () => {
    const reports: Report[] = [];
    const tasks = Array.from({ length: SEEDS }, (_, i) => ({ seed: i + 1, everyKind: true }));
    await sharedPool().run(tasks, (report) => {
      reports.push(report);
      return report.failure !== undefined;
    });
    const failed = reports.find(({ failure }) => failure !== undefined);
    if (failed !== undefined) throw new Error(sayFailure(failed, 40));
    expect(reports).to.have.length(SEEDS);
    expect(Math.min(...reports.map(({ events }) => events))).to.be.greaterThan(200);
    // A few worlds do not have every deed.
    if (!ALL) return;
    const deeds = new Set(reports.flatMap((report) => report.deeds));
    for (const kind of Object.keys(MACHINES))
      for (const what of ['off', 'on', 'restart'])
        expect([...deeds], 'over all seeds').to.include(`${kind}: ${what}`);
  });
});
