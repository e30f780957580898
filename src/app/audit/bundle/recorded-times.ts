import type { Checkpoint } from '../merkle/checkpoint.ts';
import { collectFindings, type Finding, type Findings } from './findings.ts';
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
  /** What contradicts itself. */
  readonly findings: Findings;
};

/**
 * Recorded times are no part of a leaf: they are the service's word, which must not contradict itself. What was recorded
 * before a time is what lies before the first event of that time, or of a later one. So nothing is at the end of the period
 * or later, but an event may be earlier than its beginning where the clock was set back behind another one. Between two
 * events it is set back by no more than a store is allowed (`MOST_SKEW_MS`).
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
  let isBehind = false;

  /** What is wrong with a time; of times that go back the first one. */
  const wrongOf = (at: number): string | undefined => {
    const wasBehind = isBehind;
    isBehind = at < latest.at - MOST_SKEW_MS;
    if (at >= end) return `the export is of what was recorded before ${to}`;
    // Whatever came before the first event of that time has the range begin behind it.
    if (at < begin && ((isKnown && latest.at < begin) || at < begin - MOST_SKEW_MS))
      return `the export is of what was recorded at ${from} or later`;
    if (at > signed + MOST_SKEW_MS) return `the head over it was signed at ${checkpoint?.time}`;
    return isBehind && !wasBehind
      ? `the event at place ${latest.place} before it at ${latest.text}`
      : undefined;
  };

  return {
    findings,
    withheld: () => {
      isKnown = false;
    },
    next: (recordedAt, where) => {
      const at = Date.parse(recordedAt);
      const wrong = Number.isNaN(at) ? 'that is no time' : wrongOf(at);
      if (wrong !== undefined)
        findings.add({
          code: 'time',
          ...where,
          message: `it was recorded at ${recordedAt}, as the service states; ${wrong}`,
        });
      if (at > latest.at) latest = { at, text: recordedAt, place: where.place };
    },
  };
};

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
