import type { RecordedEvent } from '../../event-store.ts';
import type { Finding, Findings } from './findings.ts';
import { createTextTable } from './text-table.ts';

/** Where an event was met; `line`: of the file that it was read from. */
type Place = Pick<Finding, 'file' | 'line'> & { readonly place: number };

type Met = Pick<RecordedEvent, 'stream' | 'revision'>;

export type RevisionRules = {
  /** Events stand before the first one that is met: a stream may begin at any revision then. Default: none do. */
  readonly later?: boolean;
  /** Other events of the same streams are elsewhere, as those of other tenants are. Default: all are here. */
  readonly others?: boolean;
};

/** Revisions that streams lack, which `others` and `withheld` allow. */
export type Lacking = { readonly count: number; readonly first: string | undefined };

export type RevisionCheck = {
  readonly next: (event: Met, where: Place) => void;
  /** An event of which nothing is known, not even its stream. */
  readonly withheld: () => void;
  /** Revisions that are not here, and not withheld either: those of others. */
  readonly lacking: () => Lacking;
};

/** Streams keep these of their last event: its revision, its place, and how many were withheld before it. */
const [REVISION, PLACE, WITHHELD] = [0, 1, 2] as const;
const MOST_REVISION = 2 ** 32 - 1;

/**
 * The log itself says what is missing, double or turned round, whoever signed it so: revisions of a stream follow each
 * other. Needs up to 40 MB for a million streams.
 */
export const createRevisionCheck = (findings: Findings, rules: RevisionRules = {}): RevisionCheck => {
  const { later = false, others = false } = rules;
  const streams = createTextTable(3);
  let withheld = 0;
  const lacking: { count: number; first: string | undefined } = { count: 0, first: undefined };

  const lacks = (
    stream: string,
    revision: number,
    expected: number,
    meanwhile: number,
    where: Place,
  ): void => {
    const missing = revision - expected;
    if (missing <= meanwhile) return;
    if (others) {
      lacking.count += missing - meanwhile;
      lacking.first ??= `${stream}@${expected}`;
      return;
    }
    const all = missing === 1 ? 'event is' : `event and those up to ${stream}@${revision - 1} are`;
    findings.add({
      code: 'missing-event',
      ...where,
      event: `${stream}@${expected}`,
      message: `this ${all} missing: ${stream}@${revision} stands where it should be`,
    });
  };
  const follow = ({ stream, revision }: Met, where: Place): void => {
    const event = `${stream}@${revision}`;
    if (revision < 0 || revision > MOST_REVISION) {
      findings.add({ code: 'order', ...where, event, message: 'no event has such a revision' });
      return;
    }
    const { row, isNew } = streams.rowOf(stream);
    const last = isNew ? -1 : streams.get(row, REVISION);
    if (revision <= last) {
      const before = streams.get(row, PLACE);
      findings.add(
        revision === last
          ? {
              code: 'added-event',
              ...where,
              event,
              message: `the event at place ${before} is of the same revision: one of the two was added`,
            }
          : {
              code: 'order',
              ...where,
              event,
              message: `it stands behind ${stream}@${last}, which is at place ${before}`,
            },
      );
      return;
    }
    if (!(isNew && later)) lacks(stream, revision, last + 1, withheld - streams.get(row, WITHHELD), where);
    streams.set(row, REVISION, revision);
    streams.set(row, PLACE, where.place);
    streams.set(row, WITHHELD, withheld);
  };

  return {
    next: follow,
    withheld: () => {
      withheld += 1;
    },
    lacking: () => lacking,
  };
};

/** Tells what the order of streams shows; `named`: events that were told already. */
export const tellGaps = (
  gaps: Findings,
  findings: Findings,
  everywhere: Pick<Finding, 'file' | 'place'>,
  named: ReadonlySet<string | undefined> = new Set(),
): void => {
  for (const gap of gaps.list()) if (!named.has(gap.event)) findings.add(gap);
  const more = gaps.count() - gaps.list().length;
  if (more > 0)
    findings.add({ code: 'order', ...everywhere, message: `${more} more gaps in the order of streams` });
};

/** What an export of one tenant leaves open where its streams have revisions that it does not hold. */
export const notAmongThem = ({ count, first }: Lacking = { count: 0, first: undefined }): string[] => {
  if (count === 0) return [];
  const [what, which] =
    count === 1
      ? ['the event of its streams which is', `(${first}) is`]
      : [`the ${count} events of its streams which are`, `(the first: ${first}) are`];
  return [
    `that ${what} neither shown nor withheld ${which} of another tenant, or the service's own: ` +
      'whether it is missing in the log, an export of the whole log shows',
  ];
};
