/** Something that is wrong, and where. */
export type Finding = {
  readonly code: /** It is something else: then this is the only finding. */
    | 'not-a-bundle'
    | 'missing-file'
    | 'unknown-file'
    | 'unreadable'
    | 'malformed'
    | 'digest'
    | 'count'
    | 'origin'
    | 'key'
    | 'checkpoint'
    | 'pin'
    /** A smaller tree was signed later than a larger one. */
    | 'taken-back'
    | 'tenant'
    | 'tenants'
    | 'proof'
    | 'root'
    | 'content'
    | 'order'
    | 'time'
    | 'missing-event'
    | 'added-event'
    | 'changed-event'
    | 'leaves'
    | 'store'
    /** What the service keeps beside the log, and serves. */
    | 'served'
    | 'head';
  readonly message: string;
  readonly file?: string;
  /** Where `file` is a folder of which nothing is there: the files that should be. */
  readonly files?: readonly string[];
  /** Line of the file, from 1. */
  readonly line?: number;
  /** Place in the tree that is checked: one event, or [from, to) when no closer place can be told. */
  readonly place?: number | readonly [from: number, to: number];
  /** `<stream>@<revision>` */
  readonly event?: string;
};

/** Findings that are kept; the rest is counted. */
export const LISTED = 100;

export type Findings = {
  readonly add: (finding: Finding) => void;
  readonly list: () => readonly Finding[];
  readonly count: () => number;
};

/** What every check ends with. */
export type Outcome = {
  /** Nothing is wrong. */
  readonly ok: boolean;
  /** At most 100; `count` says how many there were. */
  readonly findings: readonly Finding[];
  readonly count: number;
};

export const outcomeOf = (findings: Findings): Outcome => {
  const count = findings.count();
  return { ok: count === 0, findings: findings.list(), count };
};

export const collectFindings = (): Findings => {
  const list: Finding[] = [];
  let count = 0;
  return {
    add: (finding) => {
      count += 1;
      if (list.length < LISTED) list.push(finding);
    },
    list: () => list,
    count: () => count,
  };
};

/** One line for people: where, then what. */
export const findingText = ({ message, file, line, place, event }: Finding): string => {
  const where = [
    ...(event === undefined ? [] : [`event ${event}`]),
    ...(place === undefined
      ? []
      : [typeof place === 'number' ? `place ${place}` : `places ${place[0]} to ${place[1]}`]),
    ...(file === undefined ? [] : [line === undefined ? file : `${file} line ${line}`]),
  ].join(', ');
  return where === '' ? message : `${where}: ${message}`;
};
