import { parseArgs } from 'node:util';
import { simulate, type Simulated } from '../support/simulation/simulate.ts';

/** `npm run sim -- --seeds 1000`, `npm run sim -- --seed 17`: simulates and says how to repeat what failed. */
const LAST_LINES = 60;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    lines: { type: 'string', default: String(LAST_LINES) },
  },
});

const report = ({ plan, failure, lines, hash, steps, events, ms }: Simulated): void => {
  if (failure === undefined) {
    console.log(
      `seed ${plan.seed}: holds (${steps} steps, ${events} events, ${Math.round(ms / 1000)} s, ${hash})`,
    );
    return;
  }
  console.log(lines.slice(Math.max(0, lines.length - Number(values.lines))).join('\n'));
  console.log(`\nseed ${plan.seed}: ${failure.message}`);
  console.log(`plan: ${JSON.stringify(plan)}`);
  console.log(`repeat it with: npm run sim -- --seed ${plan.seed}`);
};

const first = Number(values.seed ?? values.first);
const count = values.seed === undefined ? Number(values.seeds) : 1;
const started = performance.now();
const failed: number[] = [];
for (let seed = first; seed < first + count; seed += 1) {
  const simulated = await simulate(seed);
  if (simulated.failure !== undefined) failed.push(seed);
  if (simulated.failure !== undefined || values.seed !== undefined) report(simulated);
}
const seconds = (performance.now() - started) / 1000;
console.log(
  `${count} simulations in ${seconds.toFixed(1)} s, ${failed.length} failed${failed.length === 0 ? '' : `: ${failed.join(', ')}`}`,
);
if (failed.length > 0) process.exitCode = 1;
