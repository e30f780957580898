import type { Position } from '../../app/log/event-store.ts';
import type { Timers } from '../../app/ports.ts';

/** Those who wait until a view has applied a position. */
export type Waiters = {
  /** False past `timeoutMs` (milliseconds), on the signal, after `end`, or at once when too many wait already. */
  readonly wait: (position: Position, timeoutMs: number, signal?: AbortSignal) => Promise<boolean>;
  /** The lowest position that somebody waits for. */
  readonly next: () => Position | undefined;
  readonly applied: (position: Position | undefined) => void;
  /** Nothing is applied any more: it begins again. */
  readonly restart: () => void;
  readonly end: () => void;
};

type Waiter = {
  readonly position: Position;
  readonly settle: (reached: boolean) => void;
};

export const createWaiters = (timers: Timers, most: number): Waiters => {
  // Ordered by position: what has been appended last waits last, so nearly every insertion is at the end.
  const waiting: Waiter[] = [];
  let reached: Position | undefined;
  let ended = false;

  const isReached = (position: Position): boolean => reached !== undefined && position <= reached;
  const enqueue = (waiter: Waiter): void => {
    let at = waiting.length;
    while (at > 0 && (waiting[at - 1] as Waiter).position > waiter.position) at -= 1;
    waiting.splice(at, 0, waiter);
  };
  const forget = (waiter: Waiter): void => {
    const at = waiting.indexOf(waiter);
    if (at >= 0) waiting.splice(at, 1);
  };

  return {
    wait: (position, timeoutMs, signal) => {
      if (isReached(position)) return Promise.resolve(true);
      if (ended || timeoutMs <= 0 || signal?.aborted === true || waiting.length >= most)
        return Promise.resolve(false);
      return new Promise((resolve) => {
        const settle = (result: boolean): void => {
          cancel();
          signal?.removeEventListener('abort', giveUp);
          resolve(result);
        };
        const waiter: Waiter = { position, settle };
        const giveUp = (): void => {
          forget(waiter);
          settle(false);
        };
        const cancel = timers.after(timeoutMs, giveUp);
        signal?.addEventListener('abort', giveUp, { once: true });
        enqueue(waiter);
      });
    },
    next: () => waiting[0]?.position,
    applied: (position) => {
      if (position === undefined || (reached !== undefined && position <= reached)) return;
      reached = position;
      let count = 0;
      while (count < waiting.length && isReached((waiting[count] as Waiter).position)) count += 1;
      for (const waiter of waiting.splice(0, count)) waiter.settle(true);
    },
    restart: () => {
      reached = undefined;
    },
    end: () => {
      ended = true;
      for (const waiter of waiting.splice(0)) waiter.settle(false);
    },
  };
};
