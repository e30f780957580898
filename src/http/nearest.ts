/** Letters of a name that are looked at: nobody misspells more, and work grows with them. */
const MOST_LETTERS = 64;

/** The known names that a misspelt one was most likely meant to be, nearest first; none when nothing is near. */
export const nearest = (name: string, known: readonly string[], most = 3): readonly string[] => {
  const wanted = name.slice(0, MOST_LETTERS).toLowerCase();
  const reach = Math.max(2, Math.floor(wanted.length / 3));
  return known
    .map((each) => ({ each, far: distance(wanted, each.slice(0, MOST_LETTERS).toLowerCase()) }))
    .filter(({ far }) => far <= reach)
    .toSorted((left, right) => left.far - right.far)
    .slice(0, most)
    .map(({ each }) => each);
};

/** Letters to change, add, leave out or swap with the next one (optimal string alignment). */
const distance = (from: string, to: string): number => {
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const same = from[i - 1] === to[j - 1];
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[to.length] ?? 0;
};

/** `; did you mean A or B?`, or what there is, or nothing. */
export const meant = (name: string, known: readonly string[]): string => {
  const near = nearest(name, known);
  return near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
};
