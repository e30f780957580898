import type { Clock, Timers } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';

/** Milliseconds until an end is recorded again, doubled each time. */
const RETRY_MS = 250;
const RETRY_MAX_MS = 30_000;
/** Milliseconds that a client waits at most for the record of its end. */
const TOLD_MS = 2_000;
/** Milliseconds that a service that is stopping goes on trying. */
const STOPPING_MS = 5_000;

/** The end of one session on its way to the log. */
export type Closing = {
  readonly machine: string;
  /** Appends it; false: not known to be stored. May be repeated. */
  readonly append: () => Promise<boolean>;
};

export type Closings = {
  /** Appends the end, and goes on trying. Resolves once it is stored, at the latest when its client is to be told. */
  readonly record: (closing: Closing) => Promise<void>;
  /** Tries those of this machine now: whoever comes next is not to wait for a session that is over. */
  readonly settle: (machine: string) => Promise<void>;
};

/**
 * Ends that the log does not take at once. While the store is away each is tried again for as long as a session may last,
 * `limitMs`, after which the log takes it for cut off. `track`: what a stop waits for.
 */
export const createClosings = ({
  clock,
  timers,
  limitMs,
  ending,
  track,
}: {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly limitMs: number;
  readonly ending: AbortSignal;
  readonly track: (work: Promise<unknown>) => unknown;
}): Closings => {
  /** One attempt at a time for each. */
  const pending = new Map<Closing, Promise<boolean> | undefined>();

  const attempt = (closing: Closing): Promise<boolean> => {
    const running = pending.get(closing);
    if (running !== undefined) return running;
    const trying = closing.append().then((stored) => {
      if (stored) pending.delete(closing);
      else pending.set(closing, undefined);
      return stored;
    });
    pending.set(closing, trying);
    return trying;
  };

  const retry = async (closing: Closing): Promise<void> => {
    const until = clock.monotonicMs() + limitMs;
    let stopping: number | undefined;
    for (let wait = RETRY_MS; pending.has(closing); wait *= 2) {
      if (await attempt(closing)) return;
      if (ending.aborted) stopping ??= clock.monotonicMs() + STOPPING_MS;
      const now = clock.monotonicMs();
      if (now >= until || now >= (stopping ?? now + 1)) break;
      if (stopping === undefined) await pause(timers, Math.min(wait, RETRY_MAX_MS), ending);
      else await new Promise<void>((resolve) => timers.after(RETRY_MS, resolve));
    }
    pending.delete(closing);
  };

  return {
    record: async (closing) => {
      const first = attempt(closing);
      track(retry(closing));
      const told = new AbortController();
      void first.then(() => told.abort());
      await pause(timers, TOLD_MS, told.signal);
    },
    settle: async (machine) => {
      const of = [...pending.keys()].filter((one) => one.machine === machine);
      await Promise.all(of.map((one) => attempt(one)));
    },
  };
};
