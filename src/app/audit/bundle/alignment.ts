/**
 * Lays the events of a bundle beside the leaves they should be, so that what is wrong is named and not only noticed:
 * behind a missing or added event all others are still found at their place.
 */
export type Difference =
  | { readonly kind: 'missing'; readonly place: number }
  | { readonly kind: 'changed' | 'added'; readonly place: number; readonly line: number };

/** Leaves that are looked ahead for the one that a line is. */
export const LOOKAHEAD = 1024;

/** After so many differences it is another history: looking far ahead for each of its events would take minutes. */
const PATIENCE = 2000;
const IMPATIENT_LOOKAHEAD = 8;

export type ExpectedLeaves = {
  /** The leaf `ahead` places behind the cursor; undefined behind the end. */
  readonly ahead: (ahead: number) => Buffer | undefined;
  readonly advance: (places: number) => void;
  /** Place of the cursor in the tree. */
  readonly place: () => number;
};

export type Alignment = {
  /** The next line; undefined for one that cannot be read. Returns its place in the tree, when it has one. */
  readonly next: (line: number, leaf: Buffer | undefined) => number | undefined;
  /** Called once, behind the last line: what is ahead then has no line. */
  readonly end: () => void;
};

export const createAlignment = (
  expected: ExpectedLeaves,
  report: (difference: Difference) => void,
): Alignment => {
  /** Lines since the cursor that are none of the leaves ahead. */
  let strangers: number[] = [];
  let differences = 0;
  const settle = (leaves: number): void => {
    const place = expected.place();
    differences += Math.max(leaves, strangers.length);
    for (let at = 0; at < Math.max(leaves, strangers.length); at += 1) {
      const line = strangers[at];
      if (line === undefined) report({ kind: 'missing', place: place + at });
      else report({ kind: at < leaves ? 'changed' : 'added', place: place + Math.min(at, leaves), line });
    }
    strangers = [];
  };
  const find = (leaf: Buffer): number => {
    // A stranger usually stands in the place of a leaf: there it is looked for first.
    if (strangers.length > 0 && (expected.ahead(strangers.length)?.equals(leaf) ?? false))
      return strangers.length;
    const reach = differences > PATIENCE ? IMPATIENT_LOOKAHEAD : LOOKAHEAD;
    for (let at = 0; at < reach; at += 1) {
      const candidate = expected.ahead(at);
      if (candidate === undefined) return -1;
      if (candidate.equals(leaf)) return at;
    }
    return -1;
  };
  return {
    next: (line, leaf) => {
      const found = leaf === undefined ? -1 : find(leaf);
      if (found < 0) {
        strangers.push(line);
        if (strangers.length === LOOKAHEAD) {
          // Nothing of this stretch was found again: line by line they stand for what should be there.
          let leaves = 0;
          while (leaves < LOOKAHEAD && expected.ahead(leaves) !== undefined) leaves += 1;
          settle(leaves);
          expected.advance(leaves);
        }
        return undefined;
      }
      if (found > 0 || strangers.length > 0) settle(found);
      const place = expected.place() + found;
      expected.advance(found + 1);
      return place;
    },
    end: () => {
      let left = 0;
      while (expected.ahead(left) !== undefined) left += 1;
      settle(left);
    },
  };
};
