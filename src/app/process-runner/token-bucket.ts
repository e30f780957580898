/** How fast something may be called: so many a second on average, and so many at once after a rest. */
export type Pacing = { readonly callsPerSecond: number; readonly burst: number };

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

/** Rounding of sums of fractions must not make a caller wait for nothing. */
const EPSILON = 1e-9;

/** `nowMs`: monotonic milliseconds. Begins full. */
export const createTokenBucket = (first: Pacing, nowMs: () => number): TokenBucket => {
  let pacing = first;
  let tokens = pacing.burst;
  let at = nowMs();
  const refill = (): void => {
    const now = nowMs();
    tokens = Math.min(pacing.burst, tokens + (Math.max(0, now - at) * pacing.callsPerSecond) / 1000);
    at = now;
  };
  return {
    take: () => {
      refill();
      if (tokens < 1 - EPSILON) return false;
      tokens = Math.max(0, tokens - 1);
      return true;
    },
    giveBack: () => {
      refill();
      tokens = Math.min(pacing.burst, tokens + 1);
    },
    waitMs: () => {
      refill();
      return tokens >= 1 - EPSILON ? 0 : Math.ceil(((1 - tokens) * 1000) / pacing.callsPerSecond);
    },
    isFull: () => {
      refill();
      return tokens >= pacing.burst - EPSILON;
    },
    setPace: (next) => {
      refill();
      pacing = next;
      tokens = Math.min(tokens, next.burst);
    },
  };
};
