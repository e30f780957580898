import { LRUCache } from 'lru-cache';

/** How fast something may be called: so many a second on average, and so many at once after a rest. */
export type Pacing = { readonly callsPerSecond: number; readonly burst: number };

type Bucket = { tokens: number; at: number };

/** Rounding of sums of fractions must not make a caller wait for nothing. */
const EPSILON = 1e-9;

const refill = (bucket: Bucket, { callsPerSecond, burst }: Pacing, now: number): void => {
  bucket.tokens = Math.min(burst, bucket.tokens + (Math.max(0, now - bucket.at) * callsPerSecond) / 1000);
  bucket.at = now;
};

const spend = (bucket: Bucket, cost: number): boolean => {
  if (bucket.tokens < cost - EPSILON) return false;
  bucket.tokens = Math.max(0, bucket.tokens - cost);
  return true;
};

const missing = ({ tokens }: Bucket, wanted: number): number =>
  tokens >= wanted - EPSILON ? 0 : wanted - tokens;

export type TokenBucket = {
  /** Takes one token if there is one. */
  take(): boolean;
  /** Gives one back that was not used after all. */
  giveBack(): void;
  /** Milliseconds until there is a token; 0 when there is one. */
  waitMs(): number;
  /** Nothing was taken for so long that it would be the same as a new one. */
  isFull(): boolean;
  /** Another pace; what was saved up stays, as far as it fits. */
  setPace(pacing: Pacing): void;
};

/** `nowMs`: monotonic milliseconds. Begins full. */
export const createTokenBucket = (first: Pacing, nowMs: () => number): TokenBucket => {
  let pacing = first;
  const bucket = { tokens: pacing.burst, at: nowMs() };
  const current = (): Bucket => {
    refill(bucket, pacing, nowMs());
    return bucket;
  };
  return {
    take: () => spend(current(), 1),
    giveBack: () => {
      bucket.tokens = Math.min(pacing.burst, current().tokens + 1);
    },
    waitMs: () => Math.ceil((missing(current(), 1) * 1000) / pacing.callsPerSecond),
    isFull: () => current().tokens >= pacing.burst - EPSILON,
    setPace: (next) => {
      bucket.tokens = Math.min(current().tokens, next.burst);
      pacing = next;
    },
  };
};

/**
 * One bucket for each key, which may spend its quota at once and regains it evenly over the window. Own code
 * rather than the memory store of express-rate-limit: that one counts in fixed windows (twice the quota
 * around a boundary), by the wall clock, behind a promise per request, and has a timer to stop; this needs
 * one look-up and the monotonic clock.
 */
export type RateLimit = {
  /** Takes so many from the key's bucket (default 1), never more than it can hold. */
  take(key: string, cost?: number): Taken;
};

export type Taken = {
  readonly allowed: boolean;
  readonly remaining: number;
  /** Seconds until the bucket is full again. */
  readonly fullAfter: number;
  /** Seconds until one more request of this cost is allowed; 0 when one is now. */
  readonly retryAfter: number;
};

export type RateLimitOptions = {
  /** Requests per window; at least 1. */
  readonly quota: number;
  /** Window, seconds. */
  readonly windowSeconds: number;
  readonly monotonicMs: () => number;
  /** Keys remembered; the one that was quiet for longest starts with a full bucket again. */
  readonly maxKeys: number;
};

export const createRateLimit = ({
  quota,
  windowSeconds,
  monotonicMs,
  maxKeys,
}: RateLimitOptions): RateLimit => {
  // Counted by size: `max` would take the room for all of them at once.
  const buckets = new LRUCache<string, Bucket>({ maxSize: maxKeys, sizeCalculation: () => 1 });
  const perSecond = quota / windowSeconds;
  const pacing = { callsPerSecond: perSecond, burst: quota };
  return {
    take: (key, asked = 1) => {
      const cost = Math.min(asked, quota);
      const now = monotonicMs();
      let bucket = buckets.get(key);
      if (bucket === undefined) buckets.set(key, (bucket = { tokens: quota, at: now }));
      refill(bucket, pacing, now);
      return {
        allowed: spend(bucket, cost),
        remaining: Math.floor(bucket.tokens),
        fullAfter: Math.ceil(missing(bucket, quota) / perSecond),
        retryAfter: missing(bucket, cost) / perSecond,
      };
    },
  };
};
