import {
  EVENT_TYPE,
  START,
  STREAM_NAME,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type Filter,
  type Position as LogPosition,
} from '@eventstore/db-client';
import {
  reachedBy,
  type EventFilter,
  type Position,
  type SubscribeOptions,
  type SubscriptionItem,
} from '../../../app/event-store.ts';
import type { Logger } from '../../../app/ports.ts';
import { guarded, type LedgerClient } from './client.ts';
import { CorruptEvent, isSystem, parsePosition, positionOf, toRecorded } from './convert.ts';
import { isNotLeader, messageOf } from './errors.ts';
import { pull } from './pull.ts';
import { isOwnStream } from './store-id.ts';
import { backoff, pause, timed } from './waiting.ts';
import type { Watermark } from './watermark.ts';

export type SubscriberOptions = {
  /** A connection of its own for each subscription, new after each drop. */
  readonly connect: () => LedgerClient;
  /** Milliseconds until a subscription that is not confirmed counts as failed. */
  readonly confirmMs: number;
  /** First and longest wait before subscribing again, in milliseconds. */
  readonly backoffMs: { readonly first: number; readonly longest: number };
  readonly lastPosition: (signal?: AbortSignal) => Promise<Position | undefined>;
  readonly closing: AbortSignal;
  readonly watermark: Watermark;
  readonly logger?: Logger | undefined;
  readonly counters: { resubscribed: number; openSubscriptions: number };
};

/** How long closing the connection of a subscription may take, in milliseconds. */
const LEAVE_MS = 1000;

/** What travels through the library's stream: its events, and our marks between them. */
type Travelling = AllStreamResolvedEvent | { readonly mark: 'caught-up' } | { readonly mark: LogPosition };

/**
 * Subscribes to the whole log, again and again until its signal (eventstore-client.md §3.3 E–H): an error, an end with
 * OK, a close, silence instead of a confirmation are all the same drop. It goes on after the last position that it
 * yielded, events and checkpoints alike.
 */
export const createSubscriber = (options: SubscriberOptions) => {
  const { closing, counters, logger, watermark } = options;

  async function* subscribe({
    after,
    filter,
    signal,
  }: SubscribeOptions): AsyncGenerator<SubscriptionItem, void, undefined> {
    closing.throwIfAborted();
    if (after !== undefined) parsePosition(after);
    let reached = after;
    let failures = 0;
    let client: LedgerClient | undefined;
    const leave = async (): Promise<void> => {
      const left = client;
      client = undefined;
      if (left) await timed('leaving', left.dispose(), LEAVE_MS).catch(() => {});
    };
    counters.openSubscriptions += 1;
    try {
      while (!signal.aborted) {
        try {
          client ??= options.connect();
          for await (const item of once(client, reached, filter, signal)) {
            failures = 0;
            reached = reachedBy(item) ?? reached;
            yield item;
          }
          logger?.info({ after: reached }, 'the event store ended a subscription; subscribing again');
          await leave();
        } catch (error) {
          if (signal.aborted) return;
          closing.throwIfAborted();
          if (error instanceof CorruptEvent) throw error;
          logger?.warn({ after: reached, reason: messageOf(error), failures }, 'a subscription dropped');
          // The library has noted the leader that it was sent to.
          if (!isNotLeader(error)) await leave();
        }
        if (signal.aborted) return;
        counters.resubscribed += 1;
        await pause(backoff(failures, options.backoffMs.first, options.backoffMs.longest), signal, closing);
        failures += 1;
        closing.throwIfAborted();
      }
    } finally {
      counters.openSubscriptions -= 1;
      await leave();
    }
  }

  /** One subscription, from `after` until it drops. */
  async function* once(
    client: LedgerClient,
    after: Position | undefined,
    filter: EventFilter | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<SubscriptionItem, void, undefined> {
    // All that is in the log now has been passed when the server says caught-up, whether it matched or not.
    const end = await options.lastPosition(signal);
    let reached = after;
    const subscription = guarded(open(client, after, filter));
    let confirmed = false;
    subscription.on('confirmation', () => {
      confirmed = true;
    });
    for await (const item of pull<Travelling>(subscription as never, {
      what: 'subscribing',
      patienceMs: () => (confirmed ? Infinity : options.confirmMs),
      signals: [signal, closing],
      cancel: () => subscription.unsubscribe(),
    })) {
      const translated = translate(item, reached, end);
      if (translated === undefined) continue;
      reached = reachedBy(translated) ?? reached;
      yield translated;
    }
  }

  const translate = (
    item: Travelling,
    reached: Position | undefined,
    end: Position | undefined,
  ): SubscriptionItem | undefined => {
    if ('mark' in item) {
      if (item.mark === 'caught-up') {
        const behind = reached === undefined || (end !== undefined && end > reached);
        return { kind: 'caught-up', position: behind ? end : reached };
      }
      return { kind: 'checkpoint', position: positionOf(item.mark.commit, item.mark.prepare) };
    }
    const { event } = item;
    if (event === undefined || isSystem(event) || isOwnStream(event.streamId)) return undefined;
    const recorded = toRecorded(event);
    watermark.saw(recorded.position);
    return { kind: 'event', event: recorded };
  };

  return { subscribe };
};

/**
 * Checkpoints and caught-up reach the library's callbacks ahead of up to 16 buffered events (§3.3 C). Both callbacks run
 * while their message is being transformed, so a mark pushed there takes its place behind the events before it.
 */
const open = (
  client: LedgerClient,
  after: Position | undefined,
  filter: EventFilter | undefined,
): AllStreamSubscription => {
  const subscription = client.api.subscribeToAll({
    fromPosition: after === undefined ? START : parsePosition(after),
    filter: {
      ...filterOf(filter),
      checkpointInterval: 1,
      checkpointReached: (source, position) => void source.push({ mark: position }),
    },
  });
  subscription.on('caughtUp', () => void subscription.push({ mark: 'caught-up' }));
  return subscription;
};

/** Always with a filter: without one the server sends no checkpoints, and `$` events would come along (§3.2). */
type ServerFilter = { filterOn: Filter['filterOn'] } & ({ regex: string } | { prefixes: string[] });
const filterOf = (filter: EventFilter | undefined): ServerFilter => {
  if (filter === undefined) return { filterOn: EVENT_TYPE, regex: '^[^$].*' };
  const [filterOn, prefixes] =
    'streamPrefixes' in filter
      ? ([STREAM_NAME, filter.streamPrefixes] as const)
      : ([EVENT_TYPE, filter.typePrefixes] as const);
  // No prefixes match nothing; an empty list would match everything.
  return prefixes.length === 0 ? { filterOn, regex: '(?!)' } : { filterOn, prefixes: [...prefixes] };
};
