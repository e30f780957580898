/** Letters of a name that are looked at, and of them at most so many wrong ones: work grows with both. */
const MOST_LETTERS = 64;
const MOST_WRONG = 8;

/**
 * The known names that a misspelt one was most likely meant to be, nearest first; none when nothing is near. A thousand
 * known ones take some milliseconds.
 */
export const nearest = (name: string, known: readonly string[], most = 3): readonly string[] => {
  const wanted = name.slice(0, MOST_LETTERS).toLowerCase();
  const reach = Math.min(MOST_WRONG, Math.max(2, Math.floor(wanted.length / 3)));
  return known
    .map((each) => ({ each, far: distance(wanted, each.slice(0, MOST_LETTERS).toLowerCase(), reach) }))
    .filter(({ far }) => far <= reach)
    .toSorted((left, right) => left.far - right.far)
    .slice(0, most)
    .map(({ each }) => each);
};

/** Beyond every distance that counts, and with room above it in a byte. */
const FAR = 200;

/**
 * Letters to change, add, leave out or swap with the next one (optimal string alignment), where that are `most` at most;
 * else more than `most`. Looks at the places alone that are not farther apart than that.
 */
const distance = (wanted: string, known: string, most: number): number => {
  if (Math.abs(wanted.length - known.length) > most) return most + 1;
  const [from, to] = differing(wanted, known);
  let before = new Uint8Array(to.length + 2);
  let last = before.map((_, at) => at);
  let row = new Uint8Array(to.length + 2);
  for (let i = 1; i <= from.length; i += 1) {
    const [low, high] = [Math.max(1, i - most), Math.min(to.length, i + most)];
    row[low - 1] = low === 1 ? i : FAR;
    let nearestOfRow = row[low - 1] ?? FAR;
    for (let j = low; j <= high; j += 1) {
      const same = from[i - 1] === to[j - 1];
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row[j] = least;
      if (least < nearestOfRow) nearestOfRow = least;
    }
    row[high + 1] = FAR;
    if (nearestOfRow > most) return most + 1;
    [before, last, row] = [last, row, before];
  }
  return last[to.length] ?? FAR;
};

/** Two texts without what both begin and end with. */
const differing = (one: string, other: string): readonly [string, string] => {
  const least = Math.min(one.length, other.length);
  let start = 0;
  while (start < least && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < least - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)];
};

/** `; did you mean A or B?`, or what there is, or nothing. */
export const meant = (name: string, known: readonly string[]): string => {
  const near = nearest(name, known);
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
};
