const DURATION = /^P(?:(\d{1,4})W|(?:(\d{1,4})D)?(?:T(?=\d)(?:(\d{1,5})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?)$/;
const SECOND_MS = 1_000;
const DAY_S = 86_400;
const LONGEST_S = 366 * DAY_S;

/**
 * Milliseconds of an ISO 8601 duration in weeks, or in days, hours, minutes and seconds; undefined for anything else, for
 * nothing at all, and for more than 366 days. Years and months have no one length.
 */
export const durationMs = (text: string): number | undefined => {
  const parts = DURATION.exec(text);
  if (parts === null) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part = '0') => Number(part));
  const total = (weeks * 7 + days) * DAY_S + hours * 3_600 + minutes * 60 + seconds;
  return total > 0 && total <= LONGEST_S ? total * SECOND_MS : undefined;
};
