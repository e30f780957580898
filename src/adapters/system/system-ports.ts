import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';
import type { Clock, Ids, Timers } from '../../app/ports.ts';

/** The machine's own clock, timers and ids. */
export const systemClock = (wallMs: () => number = Date.now): Clock => {
  // Asked for many times in a millisecond: writing a date down costs eight times as much as reading the clock.
  let shown = Number.NaN;
  let text = '';
  return {
    now: () => {
      const ms = wallMs();
      if (ms !== shown) {
        shown = ms;
        text = new Date(ms).toISOString();
      }
      return text;
    },
    monotonicMs: () => performance.now(),
  };
};

/** setTimeout counts 32 bits of milliseconds; longer waits are made of several. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemTimers = (): Timers => ({
  after: (ms, run) => {
    let handle: NodeJS.Timeout;
    const arm = (rest: number): void => {
      const part = Math.min(rest, LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => (rest > part ? arm(rest - part) : run()), part);
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(handle);
  },
});

/** Random bytes are drawn for this many ids at once: one draw per id was a quarter of the cost of a command. */
const POOLED_IDS = 256;
const ID_BYTES = 16;

/** Ids of one process sort in the order in which they were made, also within a millisecond (RFC 9562 §6.2). */
export const systemIds = (now: () => number = Date.now): Ids => {
  const pool = new Uint8Array(POOLED_IDS * ID_BYTES);
  let used = pool.length;
  let msecs = 0;
  let seq = 0;
  const random = (): Uint8Array => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    used += ID_BYTES;
    return pool.subarray(used - ID_BYTES, used);
  };
  return {
    uuidv7: () => {
      const bytes = random();
      const wall = now();
      if (wall > msecs) {
        msecs = wall;
        // The upper half stays free, so that a burst within one millisecond cannot run over.
        seq = new DataView(bytes.buffer, bytes.byteOffset).getUint32(6) >>> 1;
      } else {
        seq += 1;
      }
      return v7({ random: bytes, msecs, seq });
    },
  };
};
