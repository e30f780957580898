import { principalIn, type Actor } from '../log/metadata.ts';

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

type Refused = { readonly subjectId: string; readonly actor?: Actor | undefined };

export type RefusalCaps = {
  /** True: record it. False: it was counted. */
  admit(refusal: Refused & { readonly tenant: string; readonly at: string }): boolean;
  /** What was counted since the last call. */
  take(): readonly Suppressed[];
  /** Gives back what was taken and could not be recorded. */
  putBack(suppressed: readonly Suppressed[]): void;
};

type Bucket = { tokens: number; filledAt: number };

const MINUTE_MS = 60_000;
const ROOM = 10_000;
/** Where those are counted together who did not say who they are, or for whom there is no room. */
const ANYBODY = '';

/**
 * Each subject has an allowance in each tenant: whose rights are used, whoever acts for it (RFC 8693). Who acts for many
 * does not use up what is theirs, and nobody gets a new one by another proxy. All who did not say who they are share one:
 * their number is anybody's choice.
 */
export const createRefusalCaps = ({
  perSubject,
  strangers,
  monotonicMs,
  room = ROOM,
}: {
  readonly perSubject: RefusalCap;
  readonly strangers: RefusalCap;
  readonly monotonicMs: () => number;
  /** Allowances that are kept, and counts. Those beyond have one together. Default 10,000 (some 200 bytes each). */
  readonly room?: number;
}): RefusalCaps => {
  const full = (cap: RefusalCap): Bucket => ({ tokens: cap.atOnce, filledAt: monotonicMs() });
  const ofStrangers = full(strangers);
  const ofTheRest = full(perSubject);
  /** The one that was not used for longest comes first. */
  const buckets = new Map<string, Bucket>();
  const counted = new Map<string, Suppressed>();

  const fill = (bucket: Bucket, { atOnce, perMinute }: RefusalCap): void => {
    const now = monotonicMs();
    bucket.tokens = Math.min(atOnce, bucket.tokens + ((now - bucket.filledAt) * perMinute) / MINUTE_MS);
    bucket.filledAt = now;
  };
  const takes = (bucket: Bucket, cap: RefusalCap): boolean => {
    fill(bucket, cap);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  };
  /** Only one that is full again is forgotten: otherwise a new one would be a new allowance. */
  const makeRoom = (): boolean => {
    const [oldest] = buckets;
    if (oldest === undefined) return false;
    const [key, bucket] = oldest;
    fill(bucket, perSubject);
    return bucket.tokens >= perSubject.atOnce && buckets.delete(key);
  };
  const bucketOf = (key: string): Bucket => {
    const known = buckets.get(key);
    if (known === undefined && buckets.size >= room && !makeRoom()) return ofTheRest;
    buckets.delete(key);
    // Somebody may have been one of the rest until now, and has used up as much of its own.
    if (known === undefined) fill(ofTheRest, perSubject);
    const bucket = known ?? { ...ofTheRest };
    buckets.set(key, bucket);
    return bucket;
  };

  const add = (key: string, more: Suppressed): void => {
    const sofar = counted.get(key);
    // Beyond so many callers at once they are counted together.
    const fits = sofar !== undefined || counted.size < room || key === ANYBODY;
    if (!fits) {
      const { subjectId: _one, actor: _who, ...anybody } = more;
      return add(ANYBODY, { ...anybody, tenant: '' });
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
      const known = subjectId !== '';
      const admitted = known
        ? takes(bucketOf(JSON.stringify([tenant, countedAs({ subjectId, actor })])), perSubject)
        : takes(ofStrangers, strangers);
      if (admitted) return true;
      const whose = known ? { ...whoseOf({ subjectId, actor }), tenant } : { tenant: '' };
      const more = { ...whose, count: 1, since: at, until: at };
      add(keyOf(more), more);
      return false;
    },
    take: () => {
      const all = [...counted.values()];
      counted.clear();
      return all;
    },
    putBack: (suppressed) => {
      for (const each of suppressed) add(keyOf(each), each);
    },
  };
};

/** Whose allowance it is. What the service is refused in what it does by itself is its own, whoever asked for that. */
const countedAs = ({ subjectId, actor }: Refused): string =>
  actor === undefined || actor.authMethod === 'internal' ? subjectId : principalIn(actor);

/** What is counted together: of one who acts, for one, in one tenant. */
const keyOf = ({ tenant, subjectId, actor }: Suppressed): string =>
  subjectId === undefined ? ANYBODY : JSON.stringify([tenant, subjectId, actor?.onBehalfOf ?? '']);

/** Whose a count of several calls is. */
export const whoseOf = ({ subjectId, actor }: Refused): Pick<Suppressed, 'subjectId' | 'actor'> => {
  if (actor === undefined) return { subjectId };
  const { personal: _person, tokenIdHash: _token, ...known } = actor;
  return { subjectId, actor: known };
};
