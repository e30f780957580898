/** Milliseconds since 1970, or NaN. */
export const timeOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(text);

/**
 * When a machine began to run or ceased to: as its hub says, if that can be. What it says of other changes is not their
 * time. `told`: the last change that its hub says of it, and whether it ran then.
 */
export const momentOf = (
  [was, is]: readonly [was: boolean, is: boolean],
  told: { readonly at: string | undefined; readonly runs: boolean },
  { since, at }: { readonly since: string; readonly at: string },
): string => {
  const toldMs = timeOf(told.at);
  if (was === is || Number.isNaN(toldMs) || told.runs !== is || toldMs > timeOf(at)) return at;
  return new Date(Math.max(toldMs, timeOf(since))).toISOString();
};
