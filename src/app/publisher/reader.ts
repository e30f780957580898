import { categoryOf, filterFor, matchesFilter } from './filter.ts';
import {
  StoreUnavailable,
  type EventStore,
  type Position,
  type RecordedEvent,
  type SubscriptionItem,
  type UnreadableEvent,
} from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import type { Follower, LogPage, LogPages } from './log-pages.ts';
import { pause } from '../process-runner/pause.ts';
import { NewerRelease } from '../streams/current-version.ts';
import type { KafkaRecord, TopicStream } from '../streams/stream.ts';
import type { RetryOutcome, Session } from './types.ts';

/**
 * Reads the log for one topic, maps, and fills the outbox in log order: page by page while it is behind, together with the
 * others that are; then by a subscription of its own.
 */
export type Reader = {
  run(): Promise<void>;
  caughtUp(): boolean;
  /** Recorded time of the newest event read while the end of the log is not reached yet. */
  behindSince(): string | undefined;
  retry(stream: string): Promise<RetryOutcome>;
};

/** Milliseconds that news may be late: many topics look for them. */
const PATIENCE_MS = 50;
/** Milliseconds after which an event that is read last was not recorded just now. */
const FRESH_MS = 5_000;
/** Milliseconds without an item after which there is none: behind the end of the log the next one comes at once. */
const QUIET_MS = 1_000;
/** Milliseconds before an event is mapped again whose stream could not be read. */
const READ_AGAIN_MS = 500;

/** Milliseconds of waiting for room after which a topic is behind. */
const BEHIND_MS = 2_000;

type Records = readonly KafkaRecord[];
type Mapped = { readonly records: Records } | { readonly error: unknown };

type Order = { readonly stream: string; readonly done: (outcome: RetryOutcome) => void };

export const createReader = ({
  stream: { topic, map, isNothing },
  store,
  clock,
  timers,
  logger,
  turn,
  pages,
  session: { outbox, parking, signal },
  after,
}: {
  readonly stream: TopicStream;
  readonly store: Pick<EventStore, 'subscribe' | 'readStream'>;
  readonly pages: LogPages;
  readonly turn: () => Promise<void> | undefined;
  readonly session: Session;
  readonly after: Position | undefined;
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>): Reader => {
  const category = categoryOf(topic.filter);
  let caughtUp = false;
  /** Recorded time of what was read last; undefined once the end of the log was reached. */
  let newest: string | undefined;
  /** Since when the next item of the log is waited for; undefined: one is worked on. */
  let askedAt: number | undefined;
  let read = after;
  /** While it reads pages. */
  let follower: Follower | undefined;
  const orders: Order[] = [];
  let wake = (): void => undefined;

  /** Those that read the same pages go on meanwhile. */
  const waits = <Result>(wait: Promise<Result>): Promise<Result> => follower?.waits(wait) ?? wait;

  const attempt = (event: RecordedEvent): Records | Promise<Records> => {
    try {
      return map(event);
    } catch (error) {
      return Promise.reject(error);
    }
  };

  const mapped = async (event: RecordedEvent, first?: Promise<Records>): Promise<Mapped> => {
    for (let made = first; ; made = undefined) {
      try {
        return { records: await (made ?? attempt(event)) };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof StoreUnavailable)) return { error };
      }
      await pause(timers, READ_AGAIN_MS, signal);
      signal.throwIfAborted();
    }
  };

  const parkAt = async (
    { stream, revision, position }: RecordedEvent | UnreadableEvent,
    error: unknown,
  ): Promise<void> => {
    const text = error instanceof Error ? error.message : String(error);
    logger.error(
      { err: error, topic: topic.name, stream, revision },
      'event cannot become a record; stream parked',
    );
    const reason = error instanceof NewerRelease ? { reason: 'newer-release' as const } : {};
    await parking.park({ stream, revision, position, error: text, ...reason });
  };

  /** What came before in a parked stream is not left out: a publisher that died may have parked it and sent nothing yet. */
  const isLeftOut = ({ stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>): boolean =>
    revision >= (parking.get(stream)?.revision ?? Number.POSITIVE_INFINITY);

  /** Most events of the log are none of a topic's: for them nothing is awaited, and no records are made. */
  const isOurs = (event: RecordedEvent | UnreadableEvent): boolean =>
    isNothing?.(event) !== true && matchesFilter(topic.filter, event) && !isLeftOut(event);

  const pass = ({ position, recordedAt }: RecordedEvent | UnreadableEvent, events?: number): void => {
    newest = recordedAt;
    read = position;
    outbox.pass(position, events);
  };

  const put = async (event: RecordedEvent, records: Records): Promise<void> => {
    const { position, stream, revision, recordedAt } = event;
    read = position;
    await outbox.put({ position, stream, revision, recordedAt, records }, signal, () => !isLeftOut(event));
    await turn();
  };

  const takeLater = async (event: RecordedEvent, made: Promise<Records>): Promise<void> => {
    const outcome = await mapped(event, made);
    if ('error' in outcome) await parkAt(event, outcome.error);
    const records = 'error' in outcome ? [] : outcome.records;
    if (records.length > 0) return put(event, records);
    pass(event);
    await turn();
  };

  /** Undefined: it is done with, as most events are, which are mapped at once and find room. */
  const take = (event: RecordedEvent): Promise<void> | undefined => {
    newest = event.recordedAt;
    const records = attempt(event);
    if (records instanceof Promise) return waits(takeLater(event, records));
    if (records.length === 0) pass(event);
    else {
      const { position, stream, revision, recordedAt } = event;
      const hasRoom = outbox.offer({ position, stream, revision, recordedAt, records });
      if (!hasRoom) return waits(put(event, records));
      read = position;
    }
    return turn();
  };

  const emptied = async (): Promise<void> => {
    while (outbox.size().parcels > 0 && !signal.aborted) await outbox.changed(signal);
    signal.throwIfAborted();
  };

  /** Calls `ends` in place of an error where an event cannot be read: its stream stays parked. */
  async function* readFrom(
    { stream, revision }: Pick<RecordedEvent, 'stream' | 'revision'>,
    ends: () => void,
  ) {
    try {
      yield* store.readStream(stream, { from: revision, signal });
    } catch (error) {
      if (signal.aborted || error instanceof StoreUnavailable) throw error;
      ends();
    }
  }

  /** The stream from where it was parked up to what this topic has read; what follows comes by itself. */
  const publishAgain = async (stream: string): Promise<RetryOutcome> => {
    const parked = parking.get(stream);
    if (parked === undefined) return { outcome: 'not-parked' };
    let count = 0;
    let poison: { readonly event: RecordedEvent; readonly error: unknown } | undefined;
    let isUnreadable = false;
    const noFurther = (): void => {
      isUnreadable = true;
    };
    for await (const event of readFrom(parked, noFurther)) {
      // Sent now, it would move the position over all that was not read yet.
      if (read === undefined || event.position > read) break;
      if (!matchesFilter(topic.filter, event)) continue;
      const outcome = await mapped(event);
      if ('error' in outcome) {
        poison = { event, error: outcome.error };
        break;
      }
      const { records } = outcome;
      count += records.length;
      // In front of the checkpoint, which must not go back.
      const { revision, recordedAt } = event;
      const parcel = { stream, revision, recordedAt, position: read, records };
      if (records.length > 0) await outbox.put(parcel, signal, () => parking.get(stream) === parked);
      await turn();
    }
    // Until the brokers have it the stream stays parked where it was: nothing else would bring it back after a crash.
    await emptied();
    if (isUnreadable) return { outcome: 'parked', parked: parking.get(stream) ?? parked };
    if (poison?.event.revision === parked.revision && poison.error instanceof NewerRelease)
      return { outcome: 'parked', parked };
    if (poison !== undefined && parking.get(stream) === parked) await parkAt(poison.event, poison.error);
    const again = parking.get(stream);
    // The brokers may have refused one of them.
    if (again !== undefined && again !== parked) return { outcome: 'parked', parked: again };
    await parking.release(parked);
    return { outcome: 'published', records: count };
  };

  /** What an older release parked, this one may know; in front of everything else, since nobody is asked to do it. */
  const afterUpgrade = async (): Promise<void> => {
    for (const { stream, reason } of parking.list())
      if (reason === 'newer-release' && !signal.aborted) await publishAgain(stream);
  };

  const carryOut = async (): Promise<void> => {
    for (let order = orders.shift(); order !== undefined; order = orders.shift()) {
      try {
        order.done(await publishAgain(order.stream));
      } finally {
        // Says nothing any more when it was answered.
        order.done({ outcome: 'interrupted' });
      }
    }
  };

  /** The next item of the log; undefined: somebody wants a stream to be tried again. */
  const nextOrOrder = async <Item>(next: Promise<Item>): Promise<Item | undefined> => {
    if (orders.length > 0) return undefined;
    // Behind the end of the log it comes at once, and an order is carried out after it.
    if (!caughtUp) return next;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    wake = () => resolve(undefined);
    return Promise.race([next, promise]);
  };

  /** Undefined: the rest comes by the subscription, which also knows what to do when it cannot be read. */
  const nextPage = async (own: Follower): Promise<LogPage | undefined> => {
    while (!signal.aborted) {
      try {
        return await own.next(read);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof StoreUnavailable)) return undefined;
      }
      await pause(timers, READ_AGAIN_MS, signal);
    }
    return undefined;
  };

  /** False: the session is over, and what comes is not to be passed. */
  const takeAll = async ({ events, of }: LogPage): Promise<boolean> => {
    const from = read ?? '';
    for (const event of of(category)) {
      if (event.position <= from || !isOurs(event)) continue;
      const taken = take(event);
      if (taken !== undefined) {
        await taken;
        if (orders.length > 0 && !signal.aborted) await waits(carryOut());
        // Looked at here only: it takes as long as passing an event over, and changes while something is awaited.
        if (signal.aborted) return false;
      }
    }
    const last = events.at(-1);
    if (last === undefined) return false;
    pass(last, events.length);
    await turn();
    return true;
  };

  /** Up to the end of the log. */
  const runThroughPages = async (): Promise<void> => {
    const own = pages.follow(signal);
    follower = own;
    askedAt = undefined;
    try {
      for (
        let page = await nextPage(own);
        page !== undefined && !signal.aborted;
        page = await nextPage(own)
      ) {
        if (!(await takeAll(page)) || page.isLast) return;
        if (orders.length > 0) await waits(carryOut());
      }
    } finally {
      follower = undefined;
      own.end();
    }
  };

  const takeItem = async (item: SubscriptionItem): Promise<void> => {
    if (item.kind === 'event') {
      if (isOurs(item.event)) await take(item.event);
      else pass(item.event);
      return;
    }
    if (item.kind === 'unreadable') {
      if (isOurs(item.event)) await parkAt(item.event, new Error(item.event.reason));
      return pass(item.event);
    }
    if (item.kind === 'caught-up') {
      caughtUp = true;
      newest = undefined;
      // The end that it names is not stored: should an event come there all the same, it is read from in front of it.
      return;
    }
    read = item.position;
    outbox.pass(item.position);
  };

  /** What comes now. True: the brokers have not taken it for so long that much may have come meanwhile. */
  const follow = async (): Promise<boolean> => {
    const subscription = store
      .subscribe({
        signal,
        patienceMs: PATIENCE_MS,
        name: topic.name,
        ...(read === undefined ? {} : { after: read }),
        ...filterFor(topic.filter),
      })
      [Symbol.asyncIterator]();
    const pull = () => {
      askedAt = clock.monotonicMs();
      const item = subscription.next();
      // Read below; when this loop has ended before, nobody does.
      item.catch(() => undefined);
      return item;
    };
    try {
      let next = pull();
      while (!signal.aborted) {
        const result = await nextOrOrder(next);
        if (result === undefined) {
          await carryOut();
          continue;
        }
        if (result.done === true) return false;
        const began = clock.monotonicMs();
        askedAt = undefined;
        await takeItem(result.value);
        if (clock.monotonicMs() - began > BEHIND_MS) break;
        next = pull();
      }
    } finally {
      // Not waited for: where its next item is waited for still, it ends with the session only.
      void subscription.return?.().catch(() => undefined);
    }
    return !signal.aborted;
  };

  /** It was reached once, and has not run away since. */
  const isAtEnd = (): boolean => {
    if (!caughtUp || newest === undefined) return caughtUp;
    if (Date.parse(clock.now()) - Date.parse(newest) < FRESH_MS) return true;
    return askedAt !== undefined && clock.monotonicMs() - askedAt >= QUIET_MS;
  };

  return {
    run: async () => {
      try {
        await afterUpgrade();
        do await runThroughPages();
        while (await follow());
      } finally {
        for (const order of orders.splice(0)) order.done({ outcome: 'interrupted' });
      }
    },
    caughtUp: isAtEnd,
    behindSince: () => (isAtEnd() ? undefined : newest),
    retry: (stream) =>
      new Promise((done) => {
        if (signal.aborted) return done({ outcome: 'interrupted' });
        orders.push({ stream, done });
        wake();
      }),
  };
};
