import type { TilesReport } from '../../app/audit/bundle/tile-log.ts';
import { counted, printable } from '../output.ts';
import { ending, findingLines, KEYS, pinText } from './report-text.ts';

/** What a check of tiles has shown, for people. `done`: lines on what was done beside the check. */
export const tilesText = (report: TilesReport, done: readonly string[] = []): string => {
  const { checkpoint, tiles, bundles, pin } = report;
  const lines = findingLines(report.findings, report.count);
  if (checkpoint !== undefined)
    lines.push(
      `tree of ${counted(checkpoint.size, 'event')}, signed at ${printable(checkpoint.time)}`,
      `looked at: ${counted(tiles, 'tile')}, ${counted(bundles, 'bundle')} of entries`,
    );
  lines.push(...done.map(printable), KEYS[report.keys], pinText(report, 'the tiles end'));
  if (!report.ok) return ending(lines, report.count);
  lines.push(
    'proven:',
    `  the leaves of all ${checkpoint?.size ?? 0} events that were signed are there, in their order: none is missing, added, moved or changed`,
    ...(pin === 'continued'
      ? ['  they continue your pin: none of what it covers was taken back or rewritten']
      : []),
    'not proven:',
    '  what the events hold: a leaf has hashes of it (an export shows it)',
    '  whose events they are: the trees of the tenants (an export of the whole log shows them)',
    '  what happened behind the signed head',
  );
  return ending(lines, 0);
};
