/**
 * Who computes next on the HTTP thread. All requests that have arrived would otherwise be carried out in one go, in the
 * order of their arrival: a tenant that sends hundreds of long lists would hold the thread for as long as they take,
 * and
 * everybody else with it. Here requests run at once until a turn of the thread has been used for some milliseconds; the
 * following ones wait for the next turn, one of each key after the other.
 */
export type FairTurns = {
  /** Undefined: go on at once. Otherwise resolves when it is this key's turn. */
  enter(key: string): Promise<void> | undefined;
  readonly waiting: number;
};

export type FairTurnsOptions = {
  readonly monotonicMs: () => number;
  /** Milliseconds of a turn after which nothing more is begun in it. */
  readonly sliceMs?: number;
  /** Calls back in the next turn of the thread. */
  readonly nextTurn?: (go: () => void) => void;
};

/** With one more request of the longest kind a turn stays below the 20 ms that nothing may hold the thread. */
export const TURN_SLICE_MS = 4;

export const createFairTurns = ({
  monotonicMs,
  sliceMs = TURN_SLICE_MS,
  nextTurn = (go) => void setImmediate(go),
}: FairTurnsOptions): FairTurns => {
  /** Keys in the order of their turns. */
  const lanes = new Map<string, (() => void)[]>();
  let waiting = 0;
  /** Undefined: nothing was begun in this turn of the thread yet. */
  let began: number | undefined;

  const begin = (): void => {
    began = undefined;
    if (waiting === 0) return;
    began = monotonicMs();
    step();
  };
  const step = (): void => {
    const [lane] = lanes;
    if (lane === undefined) {
      nextTurn(begin);
      return;
    }
    const [key, queue] = lane;
    const go = queue.shift();
    lanes.delete(key);
    if (queue.length > 0) lanes.set(key, queue); // behind the others
    waiting -= 1;
    go?.();
    afterMicrotasks(() => (monotonicMs() - (began ?? 0) < sliceMs ? step() : nextTurn(begin)));
  };

  return {
    enter: (key) => {
      if (waiting === 0) {
        if (began === undefined) {
          began = monotonicMs();
          nextTurn(begin);
          return undefined;
        }
        if (monotonicMs() - began < sliceMs) return undefined;
      }
      waiting += 1;
      return new Promise((resolve) => {
        const queue = lanes.get(key);
        if (queue === undefined) lanes.set(key, [resolve]);
        else queue.push(resolve);
      });
    },
    get waiting() {
      return waiting;
    },
  };
};

/** A tick that is asked for by a microtask comes after all other microtasks, those that they cause included. */
const afterMicrotasks = (go: () => void): void => queueMicrotask(() => process.nextTick(go));
