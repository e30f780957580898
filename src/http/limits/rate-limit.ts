import { LRUCache } from 'lru-cache';

/**
 * Token buckets: a key may spend its quota at once and regains it evenly over the window. Own code rather than the
 * memory store of express-rate-limit: that one counts in fixed windows (twice the quota around a boundary), by the wall
 * clock, behind a promise per request, and has a timer to stop; this needs one look-up and the monotonic clock.
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

type Bucket = { tokens: number; at: number };

export const createRateLimit = ({
  quota,
  windowSeconds,
  monotonicMs,
  maxKeys,
}: RateLimitOptions): RateLimit => {
  const buckets = new LRUCache<string, Bucket>({ max: maxKeys });
  const perSecond = quota / windowSeconds;
  return {
    take: (key, asked = 1) => {
      const cost = Math.min(asked, quota);
      const now = monotonicMs();
      const bucket = buckets.get(key) ?? { tokens: quota, at: now };
      bucket.tokens = Math.min(quota, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
      bucket.at = now;
      const allowed = bucket.tokens >= cost;
      if (allowed) bucket.tokens -= cost;
      buckets.set(key, bucket);
      return {
        allowed,
        remaining: Math.floor(bucket.tokens),
        fullAfter: Math.ceil((quota - bucket.tokens) / perSecond),
        retryAfter: bucket.tokens >= cost ? 0 : (cost - bucket.tokens) / perSecond,
      };
    },
  };
};
