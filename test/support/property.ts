import fc from 'fast-check';
import { randomInt } from 'node:crypto';

/** Seed of every property of this process; `LEDGER_TEST_SEED` repeats a run. Printed at the end, pass or fail. */
const SEED = Number(process.env['LEDGER_TEST_SEED'] ?? randomInt(2 ** 31));

/** `LEDGER_TEST_RUNS` tries that many cases of every property, instead of the number each has by itself. */
const RUNS = process.env['LEDGER_TEST_RUNS'];

/** Cases of a slow property: a tenth with `npm test`, all with the fault suites, which set `LEDGER_TEST_ALL_CASES`. */
export const cases = (all: number): number =>
  process.env['LEDGER_TEST_ALL_CASES'] === undefined ? Math.ceil(all / 10) : all;

const parametersOf = <Values>(own: fc.Parameters<Values>): fc.Parameters<Values> => ({
  seed: SEED,
  ...own,
  ...(RUNS === undefined ? {} : { numRuns: Number(RUNS) }),
});

let announced = false;

const announce = (): void => {
  if (announced) return;
  announced = true;
  process.once('exit', () =>
    process.stdout.write(`properties: repeat this run with LEDGER_TEST_SEED=${SEED}\n`),
  );
};

/** `fc.assert` with the process's seed. A failure prints the counterexample, its seed and its path. */
export const check = <Values>(
  property: fc.IProperty<Values>,
  parameters: fc.Parameters<Values> = {},
): void => {
  announce();
  fc.assert(property, parametersOf(parameters));
};

/** The same for a property that waits. */
export const checkAsync = <Values>(
  property: fc.IAsyncProperty<Values>,
  parameters: fc.Parameters<Values> = {},
): Promise<void> => {
  announce();
  return fc.assert(property, parametersOf(parameters));
};
