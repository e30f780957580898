import type { Checkpoint } from '../merkle/checkpoint.ts';
import { collectFindings, findingText, type Finding, type Findings } from './findings.ts';
import { FILES, type BundleManifest } from './format.ts';
import { MOST_SKEW_MS } from './store-times.ts';

/** Times that an export was asked for, as its manifest states them: recorded at `from` or later, and before `to`. */
export type Period = { readonly from?: string; readonly to?: string };

/** Whether events of the range may be left out. Times choose the range, the tenant the tree. */
export const filters = ({ filter }: BundleManifest): boolean =>
  Object.keys(filter).some((key) => !['from', 'to', 'tenant'].includes(key));

export const periodOf = ({ filter }: BundleManifest, findings: Findings): Period =>
  Object.fromEntries(
    (['from', 'to'] as const).flatMap((name) => {
      const stated = Object.hasOwn(filter, name) ? filter[name] : undefined;
      if (stated === undefined || stated === null) return [];
      if (typeof stated === 'string' && !Number.isNaN(Date.parse(stated))) return [[name, stated]];
      findings.add({
        code: 'time',
        file: FILES.manifest,
        message: `it says that the export was asked for by a time which is none: ${name} ${JSON.stringify(stated)}`,
      });
      return [];
    }),
  );

type Where = Pick<Finding, 'file' | 'line' | 'event'> & { readonly place: number };

export type RecordedTimes = {
  readonly next: (recordedAt: string, where: Where) => void;
  /** An event of whose time nothing is known. */
  readonly withheld: () => void;
  /** What no service states, however its clocks were set. */
  readonly findings: Findings;
  /** What only clocks explain that were set, or differ. In words, that name the event and both times. */
  readonly remarks: () => readonly string[];
};

/** Of events that are not those that were signed. */
export const NO_TIMES: Pick<RecordedTimes, 'findings' | 'remarks'> = {
  findings: { add: () => undefined, list: () => [], count: () => 0 },
  remarks: () => [],
};

/**
 * Recorded times are no part of a leaf: they are the service's word, which must not contradict what it was asked for. What
 * was recorded before a time is what lies before the first event of that time, or of a later one. So nothing is at the end
 * of the period or later, and the first event is not before its beginning; later ones may be, where the clock was set back.
 * The store keeps the time that its clock shows: one that was set, or that of another leader, may lead back by any time, and
 * be ahead of the clock by which a head was signed. By more than `MOST_SKEW_MS` that is remarked on, and nothing wrong.
 */
export const createRecordedTimes = ({
  period: { from, to } = {},
  checkpoint,
  others,
}: {
  readonly period: Period | undefined;
  readonly checkpoint: Pick<Checkpoint, 'time'> | undefined;
  /** Events that are not here lie between those that are. */
  readonly others: boolean;
}): RecordedTimes => {
  const findings = collectFindings();
  const [begin, end] = [from === undefined ? -Infinity : Date.parse(from), Date.parse(to ?? '')];
  const signed = Date.parse(checkpoint?.time ?? '');
  let isKnown = !others;
  let latest = { at: -Infinity, text: '', place: 0 };
  let wasOdd = false;
  const remarks = collectFindings();

  const wrongOf = (at: number): string | undefined => {
    if (at >= end) return `the export is of what was recorded before ${to}`;
    // Whatever came before the first event of that time has the range begin behind it.
    return at < begin && isKnown && latest.at < begin
      ? `the export is of what was recorded at ${from} or later`
      : undefined;
  };
  const oddOf = (at: number): string | undefined => {
    if (at < latest.at - MOST_SKEW_MS)
      return `the event at place ${latest.place} before it at ${latest.text}: ${SET_BACK}`;
    if (at < begin - MOST_SKEW_MS)
      return `the export is of what was recorded at ${from} or later, and of what came behind that: ${SET_BACK}`;
    return at > signed + MOST_SKEW_MS
      ? `the head over it was signed at ${checkpoint?.time}: ${SET_BACK}`
      : undefined;
  };
  const add = (to: Findings, message: string, recordedAt: string, where: Where): void =>
    to.add({
      code: 'time',
      ...where,
      message: `it was recorded at ${recordedAt}, as the service states; ${message}`,
    });

  return {
    findings,
    withheld: () => {
      isKnown = false;
    },
    next: (recordedAt, where) => {
      const at = Date.parse(recordedAt);
      const wrong = Number.isNaN(at) ? 'not a time' : wrongOf(at);
      const odd = wrong === undefined ? oddOf(at) : undefined;
      if (wrong !== undefined) add(findings, wrong, recordedAt, where);
      // Of events that follow each other so the first one.
      if (odd !== undefined && !wasOdd) add(remarks, odd, recordedAt, where);
      wasOdd = odd !== undefined;
      if (at > latest.at) latest = { at, text: recordedAt, place: where.place };
    },
    remarks: () => {
      const more = remarks.count() - remarks.list().length;
      return [
        ...remarks.list().map(findingText),
        ...(more > 0 ? [`${more} more recorded times that clocks must have been set for`] : []),
      ];
    },
  };
};

const SET_BACK =
  'somebody set the clock of the store back, or the clocks of who stores and who signs differ; else the time was changed';

/** Tells them behind everything that is wrong with the files. */
export const tellTimes = (
  times: Findings,
  findings: Findings,
  everywhere: Pick<Finding, 'file' | 'place'>,
): void => {
  for (const finding of times.list()) findings.add(finding);
  const more = times.count() - times.list().length;
  if (more > 0)
    findings.add({ code: 'time', ...everywhere, message: `${more} more recorded times that cannot be` });
};
