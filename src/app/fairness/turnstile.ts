/**
 * How many requests of one key run at once. The rest wait in the order in which they came, so that a caller
 * with a thousand requests in flight delays itself and nobody else; past a bound of waiting ones further are
 * refused.
 */
export type Turnstile = {
  /** Resolves with what ends the turn; undefined: too many wait. Rejects when `signal` fires first. */
  enter(key: string, signal: () => AbortSignal): Leave | undefined | Promise<Leave>;
  readonly size: number;
};

export type Leave = () => void;

export type TurnstileOptions = {
  /** Requests of one key that run at once; at least 1. */
  readonly running: number;
  /** Requests of one key that may wait. */
  readonly waiting: number;
};

type Lane = { running: number; readonly waiting: Set<() => void> };

export const createTurnstile = ({ running, waiting }: TurnstileOptions): Turnstile => {
  const lanes = new Map<string, Lane>();

  const leaveOf = (key: string, lane: Lane): Leave => {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      const [next] = lane.waiting;
      if (next !== undefined) {
        // The turn passes on; `running` stays as it is.
        lane.waiting.delete(next);
        next();
        return;
      }
      lane.running -= 1;
      if (lane.running === 0) lanes.delete(key);
    };
  };

  return {
    enter: (key, signal) => {
      let lane = lanes.get(key);
      if (lane === undefined) lanes.set(key, (lane = { running: 0, waiting: new Set() }));
      if (lane.running < running) {
        lane.running += 1;
        return leaveOf(key, lane);
      }
      if (lane.waiting.size >= waiting) return undefined;
      return wait(lane, leaveOf(key, lane), signal());
    },
    get size() {
      return lanes.size;
    },
  };
};

const wait = (lane: Lane, leave: Leave, signal: AbortSignal): Promise<Leave> =>
  new Promise((resolve, reject) => {
    const gone = (): void => {
      lane.waiting.delete(turn);
      reject(signal.reason instanceof Error ? signal.reason : new Error('the caller went away'));
    };
    const turn = (): void => {
      signal.removeEventListener('abort', gone);
      resolve(leave);
    };
    lane.waiting.add(turn);
    signal.addEventListener('abort', gone, { once: true });
  });
