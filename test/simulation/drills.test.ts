import { expect } from 'chai';
import type { Drill } from '../support/simulation/drill.ts';
import { MACHINES, type MachineKind } from '../support/simulation/machines.ts';
import type { Death } from '../support/simulation/plan.ts';
import { sharedPool } from '../support/simulation/pool.ts';
import type { Report } from '../support/simulation/worker.ts';

/** Each is a durable step, or something done far away that is not recorded yet. */
const MOMENTS: readonly string[] = [
  'after effect',
  'at after-effect-started',
  'at after-run-append',
  'at after-command-before-record',
];

const DRILLS: { readonly [hub: string]: Drill } = {
  'its operator does everything': {},
  'eda, with an operator': { real: { mode: 'eda', controller: 'operator' } },
  'aap, with an operator': { real: { mode: 'aap', controller: 'operator' } },
  'eda, without an operator': { real: { mode: 'eda', controller: 'ledger' } },
  'aap, without an operator': { real: { mode: 'aap', controller: 'ledger' } },
  'with addresses of its own': { addresses: true },
  'steps of the ledger on a site': { site: true },
  'networks and what lies in them': { networks: true },
  'a virtual machine': { machines: 'computeInstance' },
  'a bare-metal instance': { machines: 'bareMetalInstance' },
};

/** `npm test` takes every fiftieth moment of each drill (of a machine, every hundredth), the fault suites all of a cluster, a third of a long one. */
const everyOf = ({ addresses, networks, machines, site }: Drill): number => {
  if (process.env['LEDGER_TEST_DRILLS'] !== 'all') return machines !== undefined || site === true ? 100 : 50;
  return addresses === true || networks === true || site === true ? 3 : 1;
};

/** An order is created, changed and deleted, and the service is killed once, between every two of its steps. */
describe('killed between every two steps', function () {
  this.timeout(600_000);
  const chosen = new Map<Drill, readonly Death[]>();
  const reports = new Map<Drill, Report[]>();
  // Of all hubs at once: no thread waits for another one.
  before(async () => {
    const drills = Object.values(DRILLS);
    const all = await sharedPool().momentsOf(drills, 1);
    const tasks = drills.flatMap((drill, n) => {
      const deaths = (all[n] ?? []).filter((death) => 'at' in death && MOMENTS.includes(death.at));
      expect(deaths.length).to.be.greaterThan(30);
      const some = deaths.filter((_, i) => i % everyOf(drill) === 0);
      chosen.set(drill, some);
      reports.set(drill, []);
      return some.map((death, i) => ({ drill, task: { seed: i + 1, drill: { ...drill, death } } }));
    });
    const drillOf = new Map<Drill, Drill>(tasks.map(({ drill, task }) => [task.drill, drill]));
    await sharedPool().run(
      tasks.map(({ task }) => task),
      (report, task) => {
        const drill = task.drill === undefined ? undefined : drillOf.get(task.drill);
        if (drill !== undefined) reports.get(drill)?.push(report);
        return false;
      },
    );
  });

  for (const [hub, drill] of Object.entries(DRILLS)) {
    it(`nothing twice, no second job, a clean end: ${hub}`, () => {
      const deaths = chosen.get(drill) ?? [];
      const told = reports.get(drill) ?? [];
      expect(told).to.have.length(deaths.length);
      const failed = told
        .filter(({ failure }) => failure !== undefined)
        .map(({ seed, failure }) => `${JSON.stringify(deaths[seed - 1])}: ${failure}`);
      expect(failed).to.deep.equal([]);
      // Seeds differ a little in their ways: nearly all of them die where they are told to.
      const reborn = told.filter(({ births }) => births > 1).length;
      expect(reborn).to.be.greaterThan(deaths.length * 0.8 - 1);
    });
  }
});

/** `npm test` plays two of them. */
const billsOf = (kind: MachineKind): number =>
  process.env['LEDGER_TEST_DRILLS'] !== 'all' ? 2 : kind === 'computeInstance' ? 100 : 90;

describe('the bill of a machine', function () {
  this.timeout(600_000);
  for (const machines of Object.keys(MACHINES) as MachineKind[])
    it(`is the time in which its hub had it powered on, in ${billsOf(machines)} histories: ${machines}`, async () => {
      const failed: string[] = [];
      let allBirths = 0;
      const drill: Drill = { machines, restless: true };
      const tasks = Array.from({ length: billsOf(machines) }, (_, i) => ({ seed: i + 1, drill }));
      await sharedPool().run(tasks, ({ seed, failure, births }) => {
        allBirths += births;
        if (failure !== undefined) failed.push(`seed ${seed}: ${failure}`);
        return false;
      });
      expect(failed).to.deep.equal([]);
      expect(allBirths, 'somebody died').to.be.greaterThan(billsOf(machines));
    });
});

/** `npm test` plays eight of them. */
const SITES = process.env['LEDGER_TEST_DRILLS'] === 'all' ? 400 : 8;

describe('orders on a site', function () {
  this.timeout(600_000);
  it(`leave nothing there, in the pools or on the hub, in ${SITES} histories`, async () => {
    const failed: string[] = [];
    const tasks = Array.from({ length: SITES }, (_, i) => ({
      seed: i + 1,
      drill: { site: true, restless: true } as const,
    }));
    await sharedPool().run(tasks, ({ seed, failure }) => {
      if (failure !== undefined) failed.push(`seed ${seed}: ${failure}`);
      return false;
    });
    expect(failed).to.deep.equal([]);
  });
});

describe('a hub that nobody reaches', function () {
  this.timeout(120_000);
  it('keeps no order that was not sent to it: another hub builds it, once', async () => {
    const failures: (string | undefined)[] = [];
    const tasks = [1, 2, 3, 4].map((seed) => ({ seed, drill: { firstHubAway: true } }));
    await sharedPool().run(tasks, ({ failure, lines }) => {
      failures.push(failure === undefined ? undefined : [failure, ...lines.slice(-20)].join('\n'));
      return false;
    });
    expect(failures).to.deep.equal([undefined, undefined, undefined, undefined]);
  });
});
