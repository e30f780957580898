/** Milliseconds of each unit of `grpc-timeout`. */
const UNITS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
/** Node's timers count to it; who waits for weeks has no deadline worth keeping. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * How long a call may take: a field that the library reads as it is meant, none, nothing, or what is no time. The library
 * itself takes `-1S` for a second and ten years for the past.
 */
export const deadlineOf = (
  header: string | string[] | undefined,
): { readonly 'grpc-timeout'?: string } | 'passed' | 'malformed' => {
  if (header === undefined) return {};
  const text = String(header);
  const match = /^(\d{1,8})([HMSmun])$/.exec(text);
  if (match === null) return 'malformed';
  const ms = Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1);
  if (ms < 1) return 'passed';
  return ms > LONGEST_MS ? {} : { 'grpc-timeout': text };
};
