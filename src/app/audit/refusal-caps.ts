import { LRUCache } from 'lru-cache';
import type { Actor } from '../metadata.ts';

/**
 * How many refusals are recorded one by one (a caller who is refused a thousand times a second must not fill the log): so
 * many at once, and so many a minute after that. What is beyond is counted.
 */
export type RefusalCap = { readonly atOnce: number; readonly perMinute: number };

export type Suppressed = {
  /** Absent: of all who did not say who they are. */
  readonly subjectId?: string;
  /** Who that is, as of the first that was counted: of no one call, so without token and person. */
  readonly actor?: Actor;
  readonly tenant: string;
  readonly count: number;
  readonly since: string;
  readonly until: string;
};

export type RefusalCaps = {
  /** True: record it. False: it was counted. */
  admit(refusal: {
    readonly subjectId: string;
    readonly tenant: string;
    readonly at: string;
    readonly actor?: Actor;
  }): boolean;
  /** What was counted since the last call. */
  take(): readonly Suppressed[];
  /** Gives back what was taken and could not be recorded. */
  putBack(suppressed: readonly Suppressed[]): void;
};

type Bucket = { tokens: number; filledAt: number };

const MINUTE_MS = 60_000;
const MAX_SUBJECTS = 10_000;

/** All who did not say who they are share one allowance: their number is anybody's choice. */
export const createRefusalCaps = ({
  perSubject,
  strangers,
  monotonicMs,
}: {
  readonly perSubject: RefusalCap;
  readonly strangers: RefusalCap;
  readonly monotonicMs: () => number;
}): RefusalCaps => {
  const buckets = new LRUCache<string, Bucket>({ max: MAX_SUBJECTS });
  const counted = new Map<string, Suppressed>();

  const takes = (key: string, { atOnce, perMinute }: RefusalCap): boolean => {
    const now = monotonicMs();
    const bucket = buckets.get(key) ?? { tokens: atOnce, filledAt: now };
    buckets.set(key, bucket);
    bucket.tokens = Math.min(atOnce, bucket.tokens + ((now - bucket.filledAt) * perMinute) / MINUTE_MS);
    bucket.filledAt = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  };

  const add = (key: string, more: Suppressed): void => {
    const sofar = counted.get(key);
    // Beyond so many callers at once they are counted together.
    const room = sofar !== undefined || counted.size < MAX_SUBJECTS || key === '';
    if (!room) {
      const { subjectId: _one, actor: _who, ...anybody } = more;
      return add('', { ...anybody, tenant: '' });
    }
    counted.set(
      key,
      sofar === undefined
        ? more
        : {
            ...sofar,
            count: sofar.count + more.count,
            since: sofar.since < more.since ? sofar.since : more.since,
            until: sofar.until > more.until ? sofar.until : more.until,
          },
    );
  };

  return {
    admit: ({ subjectId, tenant, at, actor }) => {
      if (takes(subjectId, subjectId === '' ? strangers : perSubject)) return true;
      const whose = subjectId === '' ? { tenant: '' } : { ...whoseOf({ subjectId, actor }), tenant };
      add(subjectId, { ...whose, count: 1, since: at, until: at });
      return false;
    },
    take: () => {
      const all = [...counted.values()];
      counted.clear();
      return all;
    },
    putBack: (suppressed) => {
      for (const each of suppressed) add(each.subjectId ?? '', each);
    },
  };
};

/** Whose a count of several calls is. */
export const whoseOf = ({
  subjectId,
  actor,
}: {
  readonly subjectId: string;
  readonly actor?: Actor | undefined;
}): Pick<Suppressed, 'subjectId' | 'actor'> => {
  if (actor === undefined) return { subjectId };
  const { personal: _person, tokenIdHash: _token, ...known } = actor;
  return { subjectId, actor: known };
};
