import { findingText, type Finding } from '../../app/audit/bundle/findings.ts';
import type { BundleReport } from '../../app/audit/bundle/verify.ts';
import { counted, printable } from '../output.ts';

/** How what a check has found is said: the same for exports, stores and tiles. */
export const findingLines = (findings: readonly Finding[], count: number): string[] => [
  ...findings.map((finding) => `wrong: ${printable(findingText(finding))}`),
  ...(count > findings.length ? [`… and ${count - findings.length} more`] : []),
];

/** What is not wrong, and may be a trace. */
export const remarkLines = ({ remarks }: { readonly remarks: readonly string[] }): string[] =>
  remarks.map((remark) => `remark: ${printable(remark)}`);

/** The last line says whether anything is wrong. */
export const ending = (lines: readonly string[], count: number): string =>
  `${lines.join('\n')}\n${count === 0 ? 'nothing wrong' : counted(count, 'finding')}\n`;

export const KEYS = {
  pinned: 'keys: yours',
  'from the bundle':
    'keys: those that came with the bundle: this shows that it fits together, not who made it (--trust)',
  'of the mirror':
    'keys: those that the mirror began with, and what they announced: who made it shows against yours (--trust)',
  'from the log':
    'keys: those that lie beside the tiles: this shows that they fit together, not who made them (--trust)',
} as const;

type Pinned = Pick<BundleReport, 'pin' | 'pinSize' | 'findings' | 'count'> & {
  readonly checkpoint: { readonly size: number } | undefined;
};

/** How it is said that something ends in front of the pin, does not lead to it, and is sound all the same. */
const SAYING = {
  'the export ends': {
    unshown: 'the export does not prove that it continues your pin',
    sound: 'its events are sound by themselves: they are those of the head that was signed',
  },
  'the tiles end': {
    unshown: 'the tiles do not show that they continue your pin',
    sound: 'the head that is shown is signed all the same',
  },
  'the signed head lies': {
    unshown: 'the service does not prove that its history is that of your pin',
    sound: 'the event is sound by itself: it is under the head that was signed',
  },
} as const;

export const pinText = (report: Pinned, what: keyof typeof SAYING = 'the export ends'): string => {
  const { pin, pinSize, checkpoint } = report;
  switch (pin) {
    case 'none':
      return 'pin: none: a history that was rewritten as a whole would not be noticed (--trust)';
    case 'continued':
      return report.count === 0
        ? 'pin: continued'
        : 'pin: continued by the signed head; of the rest see above';
    case 'leads to':
      return `pin: ${what} before your pin, which continues it (size ${checkpoint?.size} < ${pinSize})`;
    case 'ends before':
      return `pin: ${what} before your pin (size ${checkpoint?.size} < ${pinSize})`;
    case 'not shown':
      return `pin: not shown: ${SAYING[what].unshown} of size ${pinSize}`;
    case 'not checked':
      return `pin: not checked (${whyUnchecked(report)}, see above)`;
    case 'broken':
      // A mirror finds it of the head that it holds, too, which may be larger than the pin.
      if (isBefore(report) && report.findings.some(({ code }) => code === 'taken-back'))
        return `pin: BROKEN: history was taken back (size ${checkpoint?.size} < ${pinSize})`;
      return `pin: BROKEN: this is not the history that you pinned: ${brokenText(report, SAYING[what].sound)}`;
  }
};

const isBefore = ({ checkpoint, pinSize = 0 }: Pinned): boolean =>
  checkpoint !== undefined && checkpoint.size < pinSize;

/** One sentence: what differs, before which leaf, and whether anything else is wrong. */
const brokenText = ({ findings, count, pinSize = Infinity }: Pinned, sound: string): string => {
  const ends = findings.flatMap(({ code, place }) =>
    code === 'pin' && Array.isArray(place) ? [place[1]] : [],
  );
  // Of more than a hundred findings not all are listed, but nothing that the pin does not cover breaks it.
  const before = Math.min(pinSize, ...ends);
  const differs = `somewhere before leaf ${before} at least one event is another one, is missing, was added, or is filed elsewhere`;
  return count === findings.length && findings.every(({ code }) => code === 'pin')
    ? `${differs}; ${sound}`
    : differs;
};

const whyUnchecked = ({ findings, pinSize, checkpoint }: Pinned): string => {
  const of = (...codes: readonly Finding['code'][]): boolean =>
    findings.some(({ code }) => codes.includes(code));
  if (of('origin')) return 'the files are of another log';
  if (pinSize === undefined && of('pin')) return 'the pin cannot be used';
  if (checkpoint === undefined && of('checkpoint')) return 'the signed head does not count';
  return 'the files are damaged';
};
