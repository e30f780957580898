/** The time that the played controllers go by, milliseconds since 1970. */
export type PlayClock = { now(): number };

export type ManualClock = PlayClock & { advance(ms: number): void };

/** A clock that tests move by hand. */
export const manualClock = (start = Date.parse('2026-11-21T12:54:00Z')): ManualClock => {
  let at = start;
  return { now: () => at, advance: (ms) => void (at += ms) };
};

export const wallClock: PlayClock = { now: () => Date.now() };

/** As Kubernetes writes times: whole seconds. */
export const timestamp = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
