import type { EventStore, Position, RecordedEvent } from '../log/event-store.ts';
import { nextTurn } from '../fairness/slicer.ts';
import { lengthOf } from '../streams/stream-folds.ts';

/** A stretch of the log with every event of it, whatever its stream: those behind `after` up to `upTo`. */
export type LogPage = {
  /** Empty: the beginning. */
  readonly after: Position;
  readonly upTo: Position;
  readonly events: readonly RecordedEvent[];
  /** Those of one category of streams, which stands in front of the first hyphen; all of them when none is named. */
  readonly of: (category: string | undefined) => readonly RecordedEvent[];
  /** Nothing lay behind it when it was read. */
  readonly isLast: boolean;
};

/**
 * The log for topics that are behind. Each goes at its own pace and from its own position; those that are near each other
 * are given the same pages, so that an event is read and parsed once and not for each topic. What is kept is bounded:
 * a topic that others have left behind reads again for itself.
 */
export type LogPages = {
  /** The signal is the topic's own; it ends `next`. */
  follow(signal: AbortSignal): Follower;
};

export type Follower = {
  /**
   * A page that holds what comes behind this position, and may begin in front of it; undefined: nothing comes. Asking says
   * that what was given before is done with. Throws what the store throws.
   */
  next(after: Position | undefined): Promise<LogPage | undefined>;
  /** Waits for something else than the log, as for room: nobody waits for this topic meanwhile. */
  waits<Result>(wait: Promise<Result>): Promise<Result>;
  /** To be called when it asks no more. */
  end(): void;
};

/** Bounds of one page: few looks of a store, which leave the thread to others between them. */
const PAGE_EVENTS = 500;
const PAGE_CHARACTERS = 640 * 1024;
/** Of one event, about: what an event says of its command is bounded. */
const METADATA = 700;
/** Pages that are kept. */
const PAGES = 16;

type State = {
  readonly signal: AbortSignal;
  /** What it works on at present. */
  page?: LogPage;
  /** How its own read ended. */
  outcome?: { readonly isEnd: boolean } | { readonly error: unknown };
};

export const createLogPages = (store: Pick<EventStore, 'readAll'>, signal: AbortSignal): LogPages => {
  let kept: readonly LogPage[] = [];
  const followers = new Set<State>();
  const waiting = new Set<() => void>();
  let isReading = false;

  const tell = (): void => {
    for (const wake of waiting) wake();
    waiting.clear();
  };
  const changed = (): Promise<void> => new Promise((resolve) => waiting.add(resolve));
  const keptBehind = (after: Position): LogPage | undefined =>
    kept.find((page) => page.after <= after && after < page.upTo);

  const read = async (after: Position): Promise<LogPage | undefined> => {
    const events: RecordedEvent[] = [];
    let characters = 0;
    let isLast = true;
    const from = after === '' ? {} : { after };
    for await (const event of store.readAll({ ...from, limit: PAGE_EVENTS, signal })) {
      events.push(event);
      characters += METADATA + lengthOf(event.data);
      isLast = events.length < PAGE_EVENTS && characters < PAGE_CHARACTERS;
      if (!isLast) break;
    }
    const upTo = events.at(-1)?.position;
    return upTo === undefined ? undefined : { after, upTo, events, of: byCategory(events), isLast };
  };

  /** One at a time: each look into an embedded log holds the thread. */
  const begin = async (state: State, after: Position): Promise<void> => {
    isReading = true;
    try {
      // Whoever passes everything over waits for nothing else, and would keep the thread to the end of the log.
      await nextTurn();
      const page = await read(after);
      if (page !== undefined && followers.size > 0) kept = [...kept, page].slice(-PAGES);
      state.outcome = { isEnd: page === undefined };
    } catch (error) {
      state.outcome = { error };
    }
    isReading = false;
    tell();
  };

  const isFront = (after: Position): boolean => kept.every(({ upTo }) => upTo <= after);
  /** All that lies between the page and the newest one is kept. */
  const isNear = ({ upTo }: LogPage): boolean => {
    const following = keptBehind(upTo);
    return following === undefined ? isFront(upTo) : isNear(following);
  };
  /** What others work on is read already: it is not to be let go before they had all of it. */
  const isTooEarly = (after: Position): boolean =>
    isFront(after) && [...followers].some(({ page }) => page !== undefined && isNear(page));

  const next = async (state: State, after: Position): Promise<LogPage | undefined> => {
    delete state.page;
    tell();
    for (;;) {
      state.signal.throwIfAborted();
      const page = keptBehind(after);
      if (page !== undefined) {
        state.page = page;
        return page;
      }
      if (isReading || isTooEarly(after)) {
        await changed();
        continue;
      }
      void begin(state, after);
      while (state.outcome === undefined && !state.signal.aborted) await changed();
      const { outcome } = state;
      delete state.outcome;
      if (outcome === undefined) continue;
      if ('error' in outcome) throw outcome.error;
      if (outcome.isEnd) return undefined;
    }
  };

  return {
    follow: (own) => {
      const state: State = { signal: own };
      followers.add(state);
      own.addEventListener('abort', tell, { once: true });
      return {
        next: (after) => next(state, after ?? ''),
        waits: async (wait) => {
          const { page } = state;
          delete state.page;
          tell();
          try {
            return await wait;
          } finally {
            if (page !== undefined) state.page = page;
          }
        },
        end: () => {
          own.removeEventListener('abort', tell);
          followers.delete(state);
          if (followers.size === 0) kept = [];
          tell();
        },
      };
    },
  };
};

const NONE: readonly RecordedEvent[] = [];

const byCategory = (events: readonly RecordedEvent[]): LogPage['of'] => {
  let index: ReadonlyMap<string, readonly RecordedEvent[]> | undefined;
  return (category) => {
    if (category === undefined) return events;
    index ??= Map.groupBy(events, ({ stream }) => stream.slice(0, Math.max(0, stream.indexOf('-'))));
    return index.get(category) ?? NONE;
  };
};
