import type { AuditLeaf } from '../../app/audit/tree.ts';
import type { AuditOutcome } from './facts.ts';

export type Order = 'asc' | 'desc';

export type AuditQuery = {
  /** Whose events may be seen. `''`, the service's own, counts with `provider` alone. */
  readonly tenants: 'all' | readonly string[];
  readonly subject?: string;
  /** Kind of the document that the event is about; with `resourceId` one document. */
  readonly kind?: string;
  readonly resourceId?: string;
  /** True: also by objects that only the provider may find events by. */
  readonly provider?: boolean;
  /** Id of the event itself. */
  readonly eventId?: string;
  /** Any of these event types. */
  readonly types?: readonly string[];
  readonly outcome?: AuditOutcome;
  /** Time range [from, to) as the running maximum of recorded time sees it, ISO. */
  readonly from?: string;
  readonly to?: string;
  /** `desc`: the newest first. Default: `asc`, in log order. */
  readonly order?: Order;
  /** Leaf behind which to go on, in that order; default: the first one of it is the first. */
  readonly after?: number;
  /** Only leaves below this number, so that pages are of one moment. */
  readonly below?: number;
  /** At most 500. */
  readonly limit: number;
};

export type AuditPage = {
  readonly leaves: readonly AuditLeaf[];
  /**
   * `after` of the next page; undefined when there is nothing more now. A page may be short, and even empty, and go
   * on nevertheless: the work for one is bounded.
   */
  readonly next: number | undefined;
};

/** The numbers of the leaves that have one property, ascending; walked backwards, their distances from the last leaf. */
export type LeafList = {
  /** The first from `index` on. */
  readonly from: (index: number) => number | undefined;
  /** How many lists are asked for it. */
  readonly cost: number;
};

/** Remembers its last answer, so that lists which are ahead are not looked at again. */
export const remembering = (look: (index: number) => number | undefined): LeafList => {
  let last: { readonly asked: number; readonly found: number | undefined } | undefined;
  return {
    cost: 1,
    from: (index) => {
      if (last !== undefined && index >= last.asked && (last.found === undefined || index <= last.found))
        return last.found;
      last = { asked: index, found: look(index) };
      return last.found;
    },
  };
};

/** Leaves that are in any of the lists. */
export const union = (lists: readonly LeafList[]): LeafList => ({
  cost: lists.length,
  from: (index) => {
    let first: number | undefined;
    for (const list of lists) {
      const found = list.from(index);
      if (found !== undefined && (first === undefined || found < first)) first = found;
    }
    return first;
  },
});

/** Looks at lists for one page, at a few microseconds each: some milliseconds of the HTTP thread. */
const MOST_STEPS = 2000;
export const MOST_FOUND = 500;
/** Leaves that are read in a row at once. */
export const MOST_LEAVES = 1000;

/**
 * Numbers of leaves from `start` on, below `end`, that are in all lists: each list is asked for its next number from
 * the candidate on, and the largest answer is the next candidate, so that rare properties lead.
 */
export const intersect = (
  lists: readonly LeafList[],
  { start, end, limit }: { start: number; end: number; limit: number },
): { readonly found: readonly number[]; readonly next: number | undefined } => {
  const found: number[] = [];
  let candidate = start;
  let steps = 0;
  while (candidate < end) {
    if (found.length >= limit || steps >= MOST_STEPS) return { found, next: candidate - 1 };
    let agreed = candidate;
    for (const list of lists) {
      steps += list.cost;
      const next = list.from(agreed);
      if (next === undefined) return { found, next: undefined };
      agreed = next;
    }
    if (agreed !== candidate) {
      candidate = agreed;
      // A list before the one that moved on has not been asked for this number yet.
      if (lists.length > 1) continue;
    }
    if (candidate >= end) break;
    found.push(candidate);
    candidate += 1;
  }
  return { found, next: undefined };
};

/** The smallest number of [0, size) for which `holds`, which stays true once it is; `size` when there is none. */
export const firstWhere = (size: number, holds: (index: number) => boolean): number => {
  let [low, high] = [0, size];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
};

/** The numbers [start, end) in one order, as places that ascend: lists are walked in one way, whichever that is. */
export type Walk = {
  /** Where the first place is, and how many there are. */
  readonly start: number;
  readonly end: number;
  /** The number at a place, and the place of a number. */
  readonly numberAt: (place: number) => number;
  readonly placeOf: (number: number) => number;
};

export const walkOf = (
  order: Order,
  { start, end, after }: { readonly start: number; readonly end: number; readonly after: number | undefined },
): Walk => {
  if (order === 'asc') {
    const same = (number: number): number => number;
    return { start: Math.max(start, (after ?? -1) + 1), end, numberAt: same, placeOf: same };
  }
  const mirrored = (number: number): number => end - 1 - number;
  return {
    start: Math.max(0, mirrored(after ?? end) + 1),
    end: end - start,
    numberAt: mirrored,
    placeOf: mirrored,
  };
};
