import type { RecordedEvent } from '../../log/event-store.ts';
import type { Finding, Findings } from './findings.ts';

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

const MOST_REVISION = 2 ** 32 - 1;

/** The last event of a stream, and how many events were withheld before it. */
type Last = { readonly revision: number; readonly place: number; readonly withheld: number };

/** The log itself says what is missing, double or turned round, whoever signed it so: revisions of a stream follow each other. */
export const createRevisionCheck = (findings: Findings, rules: RevisionRules = {}): RevisionCheck => {
  const { later = false, others = false } = rules;
  const streams = new Map<string, Last>();
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
    const wrong = (code: 'order' | 'added-event', message: string): void =>
      findings.add({ code, ...where, event, message });
    if (revision < 0 || revision > MOST_REVISION) return wrong('order', 'no event has such a revision');
    const known = streams.get(stream);
    const last = known ?? { revision: -1, place: 0, withheld: 0 };
    if (revision === last.revision)
      return wrong(
        'added-event',
        `the event at place ${last.place} is of the same revision: one of the two was added`,
      );
    if (revision < last.revision)
      return wrong('order', `it stands behind ${stream}@${last.revision}, which is at place ${last.place}`);
    if (known !== undefined || !later)
      lacks(stream, revision, last.revision + 1, withheld - last.withheld, where);
    streams.set(stream, { revision, place: where.place, withheld });
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
