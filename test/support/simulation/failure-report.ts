import type { Report } from './worker.ts';

/** What a person needs to see of a failed simulation, and how to see it again. */
export const sayFailure = (
  { seed, everyKind, failure = '', lines, plan }: Report,
  mostLines: number,
): string =>
  [
    ...lines.slice(Math.max(0, lines.length - mostLines)),
    '',
    `seed ${seed}: ${failure}`,
    `plan: ${plan}`,
    `repeat it with: npm run sim -- --seed ${seed}${everyKind ? ' --every-kind' : ''}`,
  ].join('\n');
