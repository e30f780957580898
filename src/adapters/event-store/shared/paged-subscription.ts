import { StoreUnavailable, type RecordedEvent, type SubscriptionItem } from '../../../app/log/event-store.ts';
import { formatPosition } from './position.ts';

/** One bounded look into the log. */
export type Page = {
  /** Events that pass the filter, in log order. */
  readonly events: readonly RecordedEvent[];
  /** Number of the last event that was looked at, matching or not; the given one when there was none. */
  readonly considered: number;
  /** True when nothing lay behind `considered` at the time of the look. */
  readonly atEnd: boolean;
  /** Number of the last event of the log, 0 when it is empty. */
  readonly last: number;
};

export type PageSource = {
  /** The next events after number `after`. Throws StoreUnavailable when the log cannot be read at the moment. */
  readonly readPage: (after: number) => Page;
  /** Resolves when events after number `after` may be there, on the signal, and at close. */
  readonly changed: (after: number, signal: AbortSignal) => Promise<void>;
  readonly isClosed: () => boolean;
  /** Called before another look after one that failed. */
  readonly recover: (signal: AbortSignal) => Promise<void>;
  /** Called between pages, so that a long catch-up leaves the thread to others. */
  readonly breathe: () => Promise<void>;
};

/** The reader has seen events that the log does not hold: it was restored from an older backup, or is another one. */
export class PositionBeyondEnd extends RangeError {
  override readonly name = 'PositionBeyondEnd';
  constructor(after: number, last: number) {
    super(
      `position ${formatPosition(after)} lies behind the end of this log, ${formatPosition(last)}: ` +
        'what was read from it before is no longer in it. Rebuild whatever was folded from it.',
    );
  }
}

/**
 * A subscription on a log that this process can look into: events, a checkpoint behind each look that ended on
 * events that did not match, and caught-up once. Ends on the signal; throws StoreUnavailable('closed') at close and
 * PositionBeyondEnd for a start that this log never reached.
 */
export async function* pagedSubscription(
  source: PageSource,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<SubscriptionItem> {
  let reached = after;
  let caughtUp = false;
  while (!signal.aborted) {
    if (source.isClosed()) throw new StoreUnavailable('the event store is closed', 'closed');
    const page = lookOrUndefined(source, reached);
    if (page === undefined) {
      caughtUp = false;
      await source.recover(signal);
      continue;
    }
    if (page.last < reached) throw new PositionBeyondEnd(reached, page.last);
    for (const event of page.events) {
      yield { kind: 'event', event };
      if (signal.aborted) return;
    }
    const considered = formatPosition(page.considered);
    if (page.considered > reached && page.events.at(-1)?.position !== considered) {
      yield { kind: 'checkpoint', position: considered };
      if (signal.aborted) return;
    }
    reached = page.considered;
    if (!page.atEnd) {
      await source.breathe();
      continue;
    }
    if (!caughtUp) {
      caughtUp = true;
      yield { kind: 'caught-up', position: reached === 0 ? undefined : formatPosition(reached) };
      // The consumer may have taken its time: look again before waiting.
      continue;
    }
    await source.changed(reached, signal);
  }
}

/** Undefined when the log cannot be read at the moment: a subscription outlives that (app/event-store.ts). */
const lookOrUndefined = (source: PageSource, after: number): Page | undefined => {
  try {
    return source.readPage(after);
  } catch (error) {
    if (error instanceof StoreUnavailable && error.reason !== 'closed') return undefined;
    throw error;
  }
};

/** Wakes everyone who waits for the log to grow. Waiting costs nothing until then. */
export type Growth = {
  /** The log now reaches to number `last`. */
  readonly grew: (last: number) => void;
  /** Wakes everyone without growth, at close. */
  readonly wakeAll: () => void;
  readonly changed: (after: number, signal: AbortSignal) => Promise<void>;
};

/** `pollMs`: waiting ends after so many milliseconds also without word of growth. Default: never. */
export const createGrowth = ({ pollMs }: { pollMs?: number } = {}): Growth => {
  const waiting = new Set<() => void>();
  let reached = 0;
  const wakeAll = (): void => {
    for (const wake of waiting) wake();
  };
  return {
    wakeAll,
    grew: (last) => {
      if (last <= reached) return;
      reached = last;
      wakeAll();
    },
    changed: (after, signal) => {
      if (reached > after || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = pollMs === undefined ? undefined : setTimeout(() => done(), pollMs).unref();
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        waiting.add(done);
        signal.addEventListener('abort', done, { once: true });
      });
    },
  };
};
