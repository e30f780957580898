// A plus sign that was not escaped in a query arrives as a space.
const TIME = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+ -]([01]\d|2[0-3]):[0-5]\d)$/;

/** Whether somebody meant a time, right or wrong. */
export const isLikeTime = (text: string): boolean => /^\d{4}-\d\d-\d\d[Tt ]/.test(text);

/**
 * Milliseconds of a time of RFC 3339, what is finer cut off; undefined for everything else, also for days and hours that no
 * calendar has: Date.parse makes another day of 31 February.
 */
export const readRfc3339 = (text: string): number | undefined => {
  const [, day, time, fraction = '', offset = ''] = TIME.exec(text) ?? [];
  if (day === undefined || time === undefined) return undefined;
  const local = Date.parse(`${day}T${time}Z`);
  if (Number.isNaN(local) || new Date(local).toISOString().slice(0, 19) !== `${day}T${time}`)
    return undefined;
  return Date.parse(`${day}T${time}${fraction}${offset.toUpperCase().replace(' ', '+')}`);
};
