import { parseArgs } from 'node:util';
import { PLANTED, type PlantedBug } from '../support/simulation/planted-bugs.ts';
import { openPool } from '../support/simulation/pool.ts';
import { sayFailure } from '../support/simulation/failure-report.ts';
import { reportOn, type Report } from '../support/simulation/worker.ts';

/**
 * `npm run sim -- --seeds 1000` simulates that many seeds from 1 on (or from `--from`) and says how to repeat what
 * failed; `--seed 17` repeats one with its trace; `--lines n` is how much of it; `--bug "<name>"` plants a known bug; `--every-kind` has objects of all
 * kinds ordered.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    lines: { type: 'string', default: '60' },
    bug: { type: 'string' },
    'every-kind': { type: 'boolean', default: false },
  },
});

const numberOf = (name: 'seeds' | 'from' | 'seed' | 'lines'): number => {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new TypeError(`--${name} needs a whole number, not "${values[name]}"`);
};

const isBug = (name: string): name is PlantedBug => Object.hasOwn(PLANTED, name);

const bugOf = (): { bug?: PlantedBug } => {
  const { bug } = values;
  if (bug === undefined) return {};
  if (isBug(bug)) return { bug };
  throw new TypeError(`--bug knows only ${Object.keys(PLANTED).join('; ')}`);
};

const everyKind = values['every-kind'];

const repeat = async (seed: number): Promise<number> => {
  const lines = numberOf('lines');
  const report = await reportOn({ seed, everyKind, ...bugOf() }, lines);
  const { failure, steps, events, virtualMs, hash } = report;
  if (failure !== undefined) console.log(sayFailure(report, lines));
  else {
    const seconds = Math.round(virtualMs / 1000);
    console.log(`seed ${seed} holds: ${steps} steps, ${events} events, ${seconds} virtual seconds, ${hash}`);
  }
  return failure === undefined ? 0 : 1;
};

const runMany = async (from: number, count: number): Promise<number> => {
  const started = performance.now();
  const failed: Report[] = [];
  const tasks = Array.from({ length: count }, (_, i) => ({ seed: from + i, everyKind, ...bugOf() }));
  const pool = openPool();
  await pool.run(tasks, (report) => {
    if (report.failure === undefined) return false;
    failed.push(report);
    console.log(sayFailure(report, numberOf('lines')));
    return false;
  });
  await pool.close();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const seeds = failed.map(({ seed }) => seed).toSorted((left, right) => left - right);
  console.log(`${count} simulations in ${seconds} s, ${failed.length} failed`);
  if (seeds.length > 0) console.log(`failed seeds: ${seeds.join(', ')}`);
  return failed.length;
};

const failures =
  values.seed === undefined
    ? await runMany(numberOf('from'), numberOf('seeds'))
    : await repeat(numberOf('seed'));
if (failures > 0) process.exitCode = 1;
