const DURATION =
  /^P(?=.*[1-9])(?:(\d{1,2})W|(?:(\d{1,3})D)?(?:T(?=\d)(?:(\d{1,4})H)?(?:(\d{1,6})M)?(?:(\d{1,8})S)?)?)$/;
const SECOND_MS = 1_000;

/**
 * Milliseconds of an ISO 8601 duration in weeks, or in days, hours, minutes and seconds; undefined for anything else, and
 * for no time at all. Years and months have no one length.
 */
export const durationMs = (text: string): number | undefined => {
  const parts = DURATION.exec(text);
  if (parts === null) return undefined;
  const [weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
  return ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND_MS;
};
