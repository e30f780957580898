import {
  GoesOnElsewhere,
  LogDamaged,
  LogReplaced,
  reachedBy,
  type Position,
  type SubscribeOptions,
  type SubscriptionItem,
} from '../../../app/log/event-store.ts';
import { matcher } from '../shared/checks.ts';
import { onAbort, pause } from './waiting.ts';

export type FeedOptions = {
  /** Position of the last event of the log. */
  readonly lastPosition: (signal: AbortSignal) => Promise<Position | undefined>;
  readonly subscribe: (options: UpstreamOptions) => AsyncIterable<SubscriptionItem>;
};

export type UpstreamOptions = Omit<SubscribeOptions, 'name'> & { readonly name: () => string };

/** Who joins: behind `after`, having heard that the end of the log was reached, or not. */
export type Joining = Pick<SubscribeOptions, 'after' | 'filter' | 'patienceMs' | 'name'> & {
  readonly isCaughtUp: boolean;
};

/** An item, and its JSON for other threads, made once for all of them. */
export type Entry = { readonly item: SubscriptionItem; readonly text: string };

/** Undefined: not at this position. It ends when the reader is too slow, or the feed has ended: read on elsewhere. */
export type Batches = AsyncIterable<readonly Entry[]> | undefined;

export type Feed = {
  /** `from`: what to subscribe with where the feed has not begun; undefined: it is not begun for this one. */
  readonly join: (joining: Joining, signal: AbortSignal, from?: FeedOptions) => Batches;
  /** Somebody will join soon: while it catches up, it waits. Returns what to call when they have. */
  readonly expect: () => () => void;
};

export type FeedBounds = {
  readonly entries: number;
  /** Characters of their JSON. */
  readonly weight: number;
};
const BOUNDS: FeedBounds = { entries: 2048, weight: 16 * 1024 * 1024 };

/** Entries that a reader is given at a time. */
const BATCH = 256;
/** Milliseconds without a step of any reader that holds up the catching up, until it goes on without them. */
const STALLED_MS = 1000;
/** Milliseconds that it waits for somebody who is expected: a thread that starts takes a second, or a few on a busy machine. */
const EXPECTED_MS = 10_000;
/** So long waits the news that nothing came for a reader: nobody waits for it. */
const PASSED_OVER_MS = 15;

/** `at`: the first entry that it has not handled. */
type Reader = { at: number; readonly name: string };
/** One subscription of the feed, with those who read from it. */
type Run = {
  readonly readers: Set<Reader>;
  readonly lastPosition: FeedOptions['lastPosition'];
  ended?: { readonly error: unknown };
};

/**
 * One subscription to the whole log for all readers of a process: its last events in memory, from where each reader takes
 * its own. Position alone decides who may join. Until the end of the log is reached it waits for the slowest of those
 * who move on, and for those who are expected; from then on for nobody.
 */
export const createFeed = (onLive: () => void, bounds: FeedBounds = BOUNDS): Feed => {
  const news = createBell();
  const moved = createBell();
  let entries: Entry[] = [];
  /** Number of `entries[0]` since the feed began; readers count on. */
  let first = 0;
  let weight = 0;
  /** Of what is no longer in memory, and of the newest entry; '' is in front of all. */
  let floor: Position = '';
  let head: Position = '';
  /** `ending`: the server has said that the end is reached; events up to there may be on the way. */
  let state: 'off' | 'catching-up' | 'ending' | 'live' = 'off';
  let run: Run = { readers: new Set(), lastPosition: async () => undefined };
  /** Those who are expected, and until when (`performance.now()`); by name: who goes on elsewhere. */
  const expected = new Map<string | object, number>();
  const arrived = (who: string | object): void => {
    if (expected.delete(who)) moved.ring();
  };

  const push = (item: SubscriptionItem): void => {
    const entry = entryOf(item);
    entries.push(entry);
    weight += entry.text.length;
    head = reachedBy(item) ?? head;
    news.ring();
  };
  const isFull = (): boolean => entries.length >= bounds.entries || weight >= bounds.weight;
  const chunk = (): number => Math.ceil(entries.length / 4);
  /** By readers that are here yet: one that was passed already waits for nobody. */
  const heldUp = (): boolean => [...run.readers].some(({ at }) => at >= first && at < first + chunk());
  const makeRoom = async (signal: AbortSignal): Promise<void> => {
    while (state === 'catching-up') {
      const now = performance.now();
      for (const [who, until] of expected) if (until <= now) expected.delete(who);
      if (expected.size > 0) await moved.wait(Math.max(...expected.values()) - now, signal);
      else if (!heldUp() || !(await moved.wait(STALLED_MS, signal))) break;
    }
    for (const { item, text } of entries.splice(0, chunk())) {
      first += 1;
      weight -= text.length;
      floor = reachedBy(item) ?? floor;
    }
    news.ring();
  };

  const begin = async ({ subscribe, lastPosition }: FeedOptions, after: Position): Promise<void> => {
    const { readers } = run;
    const over = new AbortController();
    let end: Position | undefined;
    let error: unknown;
    try {
      for await (const item of subscribe({
        ...(after !== '' && { after }),
        filter: { alsoStoreRecords: true },
        signal: over.signal,
        name: () => [...new Set([...readers].map(({ name }) => name))].toSorted().join(', '),
      })) {
        if (item.kind !== 'caught-up') push(item);
        else if (state === 'catching-up') {
          // From here nobody joins who could have seen more than the end that is read now.
          state = 'ending';
          head = item.position ?? head;
          end = (await lastPosition(over.signal)) ?? '';
        }
        if (state === 'ending' && end !== undefined && head >= end) {
          state = 'live';
          push({ kind: 'caught-up', position: head === '' ? undefined : head });
          onLive();
        }
        if (isFull()) await makeRoom(over.signal);
      }
    } catch (problem) {
      error = problem;
    }
    over.abort();
    run.ended = { error: error instanceof LogReplaced || error instanceof LogDamaged ? error : undefined };
    state = 'off';
    entries = [];
    news.ring();
    moved.ring();
  };

  async function* read(
    reader: Reader,
    { after = '', filter, patienceMs = 0 }: Joining,
    signal: AbortSignal,
    own: Run,
    isLate: boolean,
  ): AsyncGenerator<readonly Entry[], void, undefined> {
    const passes = matcher(filter);
    const withRecords = filter !== undefined && 'alsoStoreRecords' in filter;
    const isWanted = ({ item }: Entry): boolean => {
      const at = reachedBy(item) ?? '';
      if (!('event' in item)) return item.kind === 'caught-up' && at >= after && !isLate;
      return at > after && (withRecords || !item.event.type.startsWith('$')) && passes(item.event);
    };
    let passedOver: Position | undefined;
    let tellAt = Infinity;
    let reached = after;
    own.readers.add(reader);
    try {
      let end = isLate ? await endOf(own, signal) : undefined;
      if (isLate && end === undefined) return;
      while (!signal.aborted) {
        if (own.ended?.error !== undefined) throw own.ended.error as Error;
        if (own.ended !== undefined || reader.at < first) return;
        const taken = entries.slice(reader.at - first, reader.at - first + BATCH);
        const last = taken.at(-1);
        if (last !== undefined) {
          const batch = taken.filter(isWanted);
          passedOver = batch.at(-1) === last ? undefined : reachedBy(last.item);
          if (batch.length > 0) yield batch;
          reader.at += taken.length;
          moved.ring();
          if ((reachedBy(last.item) ?? '') > reached) reached = reachedBy(last.item) ?? '';
        }
        if (end !== undefined && reached >= end) {
          end = undefined;
          yield [entryOf({ kind: 'caught-up', position: reached === '' ? undefined : reached })];
        }
        if (passedOver === undefined || passedOver <= after) tellAt = Infinity;
        else if (tellAt === Infinity) tellAt = performance.now() + PASSED_OVER_MS;
        else if (performance.now() >= tellAt) {
          const item = { kind: 'checkpoint', position: passedOver } as const;
          [passedOver, tellAt] = [undefined, Infinity];
          yield [entryOf(item)];
        }
        if (last !== undefined) continue;
        const came = await news.wait(tellAt === Infinity ? Infinity : tellAt - performance.now(), signal);
        if (came && patienceMs > 0) await pause(patienceMs, signal);
      }
    } finally {
      own.readers.delete(reader);
      if (signal.reason instanceof GoesOnElsewhere)
        expected.set(reader.name, performance.now() + EXPECTED_MS);
      moved.ring();
    }
  }

  const isHere = (after: Position, isCaughtUp: boolean): boolean =>
    after >= floor && state !== 'off' && (after <= head || (state === 'live' && isCaughtUp));

  return {
    join: (joining, signal, from) => {
      const { after = '', isCaughtUp, name = 'unnamed' } = joining;
      arrived(name);
      if (state === 'off' && from !== undefined) {
        run = { readers: new Set(), lastPosition: from.lastPosition };
        [first, weight, floor, head, state] = [0, 0, after, after, 'catching-up'];
        void begin(from, after);
      } else if (!isHere(after, isCaughtUp)) return undefined;
      // Who comes when the end was reached already must hear where it is now, and that it has been reached.
      const isLate = !isCaughtUp && state !== 'catching-up';
      return read({ at: first, name }, joining, signal, run, isLate);
    },
    expect: () => {
      const who = {};
      expected.set(who, performance.now() + EXPECTED_MS);
      return () => arrived(who);
    },
  };
};

/** Undefined: the store does not say. */
const endOf = ({ lastPosition }: Run, signal: AbortSignal): Promise<Position | undefined> =>
  lastPosition(signal).then(
    (end) => end ?? '',
    () => undefined,
  );

const entryOf = (item: SubscriptionItem): Entry => ({ item, text: JSON.stringify(item) });

/** Wakes all who wait, once for what happens in one turn of the event loop. */
const createBell = () => {
  let waiting: (() => void)[] = [];
  let isRinging = false;
  return {
    ring: (): void => {
      if (isRinging || waiting.length === 0) return;
      isRinging = true;
      setImmediate(() => {
        isRinging = false;
        for (const wake of waiting.splice(0)) wake();
      });
    },
    /** False: nothing within `ms`, or the signal came. */
    wait: (ms: number, signal: AbortSignal): Promise<boolean> =>
      new Promise((resolve) => {
        const settle = (came: boolean): void => {
          clearTimeout(timer);
          stopListening();
          if (!came) waiting = waiting.filter((wake) => wake !== ring);
          resolve(came);
        };
        const ring = (): void => settle(true);
        const giveUp = (): void => settle(false);
        waiting.push(ring);
        const timer = ms === Infinity ? undefined : setTimeout(giveUp, ms);
        let stopListening = (): void => undefined;
        stopListening = onAbort(signal, giveUp);
      }),
  };
};
