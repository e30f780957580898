import { randomUUID } from 'node:crypto';
import type {
  EventStore,
  EventToAppend,
  RecordedEvent,
  SubscribeOptions,
} from '../../../../src/app/log/event-store.ts';
import type { SubscriptionItem } from '../../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';

/**
 * One store for one test, with the faults this adapter can play (a store in memory has no connection to cut). The log need not be empty (a real server is shared by all tests):
 * the suite uses stream and type names of its own and starts at `lastPosition()`.
 */
export type StoreUnderTest = {
  readonly store: EventStore;
  /** Closes the store and removes what the test left behind. */
  dispose(): Promise<void>;
  /** Cuts every connection or stream between the adapter and the log once; the log itself goes on. */
  readonly dropConnections?: () => Promise<void>;
  /** From now on appends are not answered (and may or may not be stored) until the returned function is called. */
  readonly unresponsive?: () => Promise<() => Promise<void>>;
  /** Resolves when an append made while it is unresponsive has left the adapter. Offered with `unresponsive`. */
  readonly sent?: () => Promise<void>;
  /** The next append is stored, but its answer is lost. */
  readonly loseNextAnswer?: () => Promise<void>;
  /** The log cannot be reached at all until the returned function is called. */
  readonly down?: () => Promise<() => Promise<void>>;
  /** Closes the store and opens the same log again, as after a restart. The answer replaces `store`. */
  readonly reopen?: () => Promise<EventStore>;
};

/** Names of the faults a fixture may offer; an adapter declares which of them its suite is to run. */
export type Fault = 'dropConnections' | 'unresponsive' | 'loseNextAnswer' | 'down' | 'reopen';

export type StoreFactory = () => Promise<StoreUnderTest>;

/** What the parts of the suite get: the store of the running test and names nobody else uses. */
export type Contract = {
  readonly store: () => EventStore;
  readonly underTest: () => StoreUnderTest;
  /** A stream of this test only: `<category><unique>-<name>`. */
  readonly stream: (name: string, category?: string) => string;
  /** The prefix that all streams of this test and category share. */
  readonly prefix: (category?: string) => string;
  /** An event type of this test only. */
  readonly type: (name: string) => string;
};

export const event = (
  type: string,
  data: JsonObject = {},
  metadata: JsonObject = {},
  id: string = randomUUID(),
): EventToAppend => ({ id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) });

/** `count` events of one type, numbered in `data.n` from `from`. */
export const numbered = (type: string, count: number, from = 0): EventToAppend[] =>
  Array.from({ length: count }, (_, i) => event(type, { n: from + i }));

export const numberOf = (recorded: RecordedEvent): unknown => recorded.data['n'];

export const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

/** Rejects when `promise` has not settled in `ms`: a hanging adapter shows where it hangs. */
export const within = async <T>(ms: number, what: string, promise: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};

/** The error that `promise` rejects with; fails when it resolves. */
export const errorOf = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected a rejection, but the call succeeded');
};

/** A running subscription whose items are collected; the test waits for conditions on them, never for time. */
export type Follower = {
  readonly items: readonly SubscriptionItem[];
  readonly events: () => RecordedEvent[];
  /** Waits until `condition` holds for the items seen so far. */
  readonly until: (what: string, condition: (follower: Follower) => boolean, ms?: number) => Promise<void>;
  readonly untilEvents: (count: number) => Promise<RecordedEvent[]>;
  readonly untilCaughtUp: () => Promise<void>;
  /** Aborts the subscription and waits for its loop to end; rejects with what the loop threw. */
  readonly stop: () => Promise<void>;
  /** Settles when the loop ends, with the error when it threw one. */
  readonly ended: Promise<unknown>;
};

export const follow = (
  store: EventStore,
  options: Omit<SubscribeOptions, 'signal'> = {},
  eachItem: (item: SubscriptionItem) => Promise<void> = async () => {},
): Follower => {
  const controller = new AbortController();
  const items: SubscriptionItem[] = [];
  const waiting = new Set<() => void>();
  const loop = async (): Promise<unknown> => {
    try {
      for await (const item of store.subscribe({ ...options, signal: controller.signal })) {
        items.push(item);
        for (const check of waiting) check();
        await eachItem(item);
      }
      return undefined;
    } catch (error) {
      return error;
    }
  };
  const ended = loop();
  const follower: Follower = {
    items,
    ended,
    events: () => items.flatMap((item) => (item.kind === 'event' ? [item.event] : [])),
    until: (what, condition, ms = 10_000) => {
      const met = new Promise<void>((resolve, reject) => {
        const check = (): void => {
          if (!condition(follower)) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
        void ended.then((error) => reject(error ?? new Error(`the subscription ended before ${what}`)));
      });
      return within(ms, what, met);
    },
    untilEvents: async (count) => {
      await follower.until(`${count} events`, (f) => f.events().length >= count);
      return follower.events();
    },
    untilCaughtUp: () =>
      follower.until('caught-up', (f) => f.items.some((item) => item.kind === 'caught-up')),
    stop: async () => {
      controller.abort();
      const error = await within(5000, 'the end of the subscription after its signal', ended);
      if (error !== undefined) throw error;
    },
  };
  return follower;
};
