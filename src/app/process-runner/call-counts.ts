/** Calls of the last hour and how many of them failed, by lane: what the health score of placement is made of. */
export type CallCounts = {
  note(lane: string, ok: boolean): void;
  /** Undefined: there were none. */
  of(lane: string): { readonly attempts: number; readonly failures: number } | undefined;
};

const MINUTE_MS = 60_000;
const MINUTES = 60;

type Minute = { readonly minute: number; attempts: number; failures: number };

/** Counts by the minute, so that each lane costs at most sixty small objects. `nowMs`: monotonic milliseconds. */
export const createCallCounts = (nowMs: () => number): CallCounts => {
  const lanes = new Map<string, Minute[]>();
  const minuteNow = (): number => Math.floor(nowMs() / MINUTE_MS);
  const recent = (lane: string): Minute[] => {
    const oldest = minuteNow() - MINUTES;
    const kept = (lanes.get(lane) ?? []).filter(({ minute }) => minute > oldest);
    if (kept.length === 0) lanes.delete(lane);
    else lanes.set(lane, kept);
    return kept;
  };
  return {
    note: (lane, ok) => {
      const minute = minuteNow();
      const last = lanes.get(lane)?.at(-1);
      const entry = last?.minute === minute ? last : { minute, attempts: 0, failures: 0 };
      entry.attempts += 1;
      if (!ok) entry.failures += 1;
      if (entry !== last) lanes.set(lane, [...recent(lane), entry]);
    },
    of: (lane) => {
      const minutes = recent(lane);
      if (minutes.length === 0) return undefined;
      const sum = (of: (minute: Minute) => number): number =>
        minutes.reduce((total, minute) => total + of(minute), 0);
      return { attempts: sum(({ attempts }) => attempts), failures: sum(({ failures }) => failures) };
    },
  };
};
