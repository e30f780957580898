import type { Clock, Timers } from '../ports.ts';
import type { BrokerTrouble } from './contact.ts';
import { THE_BROKERS, type Trouble } from './trouble.ts';

/** Milliseconds that brokers may be away without a word: one of them is started again, a leader moves. */
const SHORT_MS = 5_000;
/** Milliseconds after which they are looked at when something went wrong: nobody may send anything for hours. */
const LOOK_SOON_MS = 2_000;

/**
 * What becomes of the brokers' trouble: told in the service's log when it lasts, and a look at the topics soon, for brokers
 * that went away may come back empty.
 */
export type BrokerWatch = {
  /** Each trouble; undefined: it is over. */
  readonly heard: (trouble: BrokerTrouble | undefined) => void;
  /** Who writes it down from now on; undefined: nobody. */
  readonly tellTo: (trouble: Trouble | undefined) => void;
  /** Aborted a moment after the next trouble has begun. */
  readonly begun: () => AbortSignal;
};

export const createBrokerWatch = ({
  clock,
  timers,
}: {
  readonly clock: Pick<Clock, 'now'>;
  readonly timers: Timers;
}): BrokerWatch => {
  let current: BrokerTrouble | undefined;
  let log: Trouble | undefined;
  let isTold = false;
  let cancel: (() => void) | undefined;
  let begun = new AbortController();

  const tell = (): void => {
    if (current === undefined || log === undefined) return;
    isTold = true;
    const { reason, message } = current;
    log.has(THE_BROKERS, { reason, message, at: clock.now() });
  };
  const wait = (): void => {
    cancel ??= timers.after(SHORT_MS, tell);
  };
  const rest = (): void => {
    cancel?.();
    cancel = undefined;
    isTold = false;
  };

  return {
    heard: (trouble) => {
      const isNew = current === undefined && trouble !== undefined;
      current = trouble;
      if (trouble === undefined) {
        if (isTold) log?.over(THE_BROKERS);
        return rest();
      }
      if (isTold) tell();
      else if (log !== undefined) wait();
      if (!isNew) return;
      const ending = begun;
      begun = new AbortController();
      timers.after(LOOK_SOON_MS, () => ending.abort());
    },
    tellTo: (trouble) => {
      rest();
      log = trouble;
      if (current !== undefined && log !== undefined) wait();
    },
    begun: () => begun.signal,
  };
};
