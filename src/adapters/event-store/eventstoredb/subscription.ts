import {
  EVENT_TYPE,
  STREAM_NAME,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type Filter,
  type Position as LogPosition,
} from '@eventstore/db-client';
import {
  type Position,
  LogReplaced,
  reachedBy,
  type EventFilter,
  type SubscribeOptions,
  type SubscriptionItem,
} from '../../../app/log/event-store.ts';
import type { Logger } from '../../../app/ports.ts';
import { createReplacedCheck, findBeginning } from './beginning.ts';
import { guarded, type LedgerClient } from './client.ts';
import { CorruptEvent, envelopeOf, isSystem, knownPosition, parsePosition, toRecorded } from './convert.ts';
import { messageOf, isNotLeader, isTooSlow } from './errors.ts';
import type { OurStreams } from './our-streams.ts';
import { pull } from './pull.ts';
import { isOwnStream } from './store-id.ts';
import { backoff, pause, timed } from './waiting.ts';
import type { Watermark } from './watermark.ts';

/** Milliseconds after which a subscription that has not come back is worth a warning. */
const LONG_MS = 10_000;

/** Tells the drops of one subscription: a line when it goes, and a warning when it stays away. */
export type Drops = {
  /** `error` undefined: the server ended it with OK. */
  dropped(after: Position | undefined, error: unknown): void;
  /** Something came again. */
  back(): void;
  end(): void;
};

export const createDrops = (
  logger: Logger | undefined,
  subscriber: string | (() => string) | undefined,
  longMs: number = LONG_MS,
): Drops => {
  const named = (): object =>
    subscriber === undefined
      ? {}
      : { subscriber: typeof subscriber === 'string' ? subscriber : subscriber() };
  let drops = 0;
  let reason = '';
  let isAway = false;
  let warned = false;
  let timer: NodeJS.Timeout | undefined;

  const back = (): void => {
    clearTimeout(timer);
    if (warned) logger?.info({ ...named(), drops }, 'subscription is back');
    isAway = false;
    warned = false;
  };
  return {
    dropped: (after, error) => {
      drops += 1;
      reason = error === undefined ? 'the server ended it' : messageOf(error);
      if (isAway) return;
      isAway = true;
      logger?.info({ ...named(), drops, after, reason }, 'subscription dropped; subscribing again');
      timer = setTimeout(() => {
        warned = true;
        logger?.warn(
          { ...named(), drops, after, reason, seconds: longMs / 1000 },
          'subscription is still away',
        );
      }, longMs).unref();
    },
    back: () => {
      if (isAway) back();
    },
    end: () => clearTimeout(timer),
  };
};

type SubscriberOptions = {
  /** A connection of its own for each subscription, new after each drop. */
  readonly connect: () => LedgerClient;
  /** Milliseconds until a subscription that is not confirmed counts as failed. */
  readonly confirmMs: number;
  /** First and longest wait before subscribing again, in milliseconds. */
  readonly backoffMs: { readonly first: number; readonly longest: number };
  /** Milliseconds of silence after which a subscription asks whether the log goes on without it. */
  readonly silenceMs: number;
  /** Milliseconds that a log stays shorter than what was read of it until it counts as another one. */
  readonly replacedMs: number;
  /** End of the log, asked on another connection than that of a subscription. */
  readonly end: (signal?: AbortSignal) => Promise<Position | undefined>;
  readonly closing: AbortSignal;
  readonly watermark: Watermark;
  readonly ours: OurStreams;
  readonly logger?: Logger | undefined;
  readonly counters: { resubscribed: number; openSubscriptions: number };
};

/** How long closing the connection of a subscription may take, in milliseconds. */
const LEAVE_MS = 1000;
/** How long the node of a silent subscription has to answer, in milliseconds: a node that hangs is left then. */
const LOOK_MS = 2000;

/** What travels through the library's stream: its events, and our marks between them. */
type Travelling = AllStreamResolvedEvent | { readonly mark: 'caught-up' } | { readonly mark: LogPosition };

/** The name may change: of a feed, all who read from it. */
type NamedOptions = Omit<SubscribeOptions, 'name'> & { readonly name?: string | (() => string) };

/** How far a subscriber was told, and which event was the last one. */
type Told = { reached: Position | undefined; event: Position | undefined };

/**
 * Subscribes to the whole log, again and again until its signal: an error, an end with OK, a close, silence instead of a
 * confirmation are all the same drop. It goes on after the last position that it yielded, events and checkpoints alike.
 */
export const createSubscriber = (options: SubscriberOptions) => {
  const { closing, counters, logger, watermark, ours, silenceMs } = options;

  let lookedAt = -Infinity;
  let lastLook: Promise<Position | undefined> = Promise.resolve(undefined);
  /** All subscriptions that are silent share one read. */
  const endNow = (): Promise<Position | undefined> => {
    if (performance.now() - lookedAt < silenceMs) return lastLook;
    lookedAt = performance.now();
    lastLook = timed('looking at the end of the log', options.end(closing), LOOK_MS, closing);
    return lastLook;
  };
  /** Whether the log went on behind what a silent subscription told, or the store does not say. */
  const wentOn = async (reached: Position = ''): Promise<boolean> => {
    if (watermark.highest() > reached) return true;
    return endNow().then(
      (end) => end !== undefined && end > reached,
      () => true,
    );
  };

  async function* subscribe({
    after,
    filter,
    signal,
    name,
  }: NamedOptions): AsyncGenerator<SubscriptionItem, void, undefined> {
    closing.throwIfAborted();
    if (after !== undefined) parsePosition(after);
    const told: Told = { reached: after, event: undefined };
    const drops = createDrops(logger, name);
    const check = createReplacedCheck(options.replacedMs);
    let failures = 0;
    let client: LedgerClient | undefined;
    let lookMs = options.confirmMs;
    const leave = async (): Promise<void> => {
      const left = client;
      client = undefined;
      lookMs = options.confirmMs;
      if (left) await timed('leaving', left.dispose(), LEAVE_MS).catch(() => {});
    };
    counters.openSubscriptions += 1;
    try {
      while (!signal.aborted) {
        try {
          client ??= options.connect();
          const connected = { client, lookMs, check };
          let isSilent = false;
          const silence = async (): Promise<boolean> => {
            isSilent = await wentOn(told.reached);
            return isSilent;
          };
          for await (const item of once(connected, told, filter, signal, silence)) {
            failures = 0;
            lookMs = Math.min(LOOK_MS, options.confirmMs);
            drops.back();
            yield item;
          }
          // Nothing was wrong that is known of: the look before the next subscription tells.
          if (isSilent) continue;
          drops.dropped(told.reached, undefined);
          await leave();
        } catch (error) {
          if (signal.aborted) return;
          closing.throwIfAborted();
          if (error instanceof CorruptEvent || error instanceof LogReplaced) throw error;
          drops.dropped(told.reached, error);
          check.failed(error);
          // The library has noted the leader that it was sent to.
          if (!isNotLeader(error) && !isTooSlow(error)) await leave();
          if (isTooSlow(error)) {
            counters.resubscribed += 1;
            continue;
          }
        }
        if (signal.aborted) return;
        counters.resubscribed += 1;
        await pause(backoff(failures, options.backoffMs.first, options.backoffMs.longest), signal, closing);
        failures += 1;
        closing.throwIfAborted();
      }
    } finally {
      counters.openSubscriptions -= 1;
      drops.end();
      await leave();
    }
  }

  /** One subscription, from where `told` is until it drops. `told` moves on with each item. */
  async function* once(
    { client, lookMs, check }: Connected,
    told: Told,
    filter: EventFilter | undefined,
    signal: AbortSignal,
    isOver: () => Promise<boolean>,
  ): AsyncGenerator<SubscriptionItem, void, undefined> {
    const signals = [signal, closing];
    const { end, from } = await findBeginning(client, told.reached, lookMs, signals);
    check.passed();
    const subscription = guarded(open(client, from, serverFilter(filter, ours)));
    let confirmed = false;
    subscription.on('confirmation', () => {
      confirmed = true;
    });
    for await (const item of pull<Travelling>(subscription as never, {
      what: 'subscribing',
      patienceMs: () => (confirmed ? Infinity : options.confirmMs),
      idle: { ms: silenceMs, isOver },
      signals,
      cancel: () => subscription.unsubscribe(),
    })) {
      const translated = 'mark' in item ? markOf(item.mark, told, end) : eventOf(item, told, filter);
      if (translated === undefined) continue;
      told.reached = reachedBy(translated) ?? told.reached;
      if ('event' in translated) told.event = translated.event.position;
      yield translated;
    }
  }

  /** An event, or undefined for one that is nobody's business or was told before. */
  const eventOf = (
    { event }: AllStreamResolvedEvent,
    told: Told,
    filter: EventFilter | undefined,
  ): SubscriptionItem | undefined => {
    if (event === undefined || isOwnStream(event.streamId)) return undefined;
    const isLink = isSystem(event) && !event.streamId.startsWith('$');
    if (isSystem(event) && !(isLink && asksForStoreRecords(filter))) return undefined;
    if (!ours.has(event.streamId)) {
      if (!isLink) ours.passOver(event);
      return undefined;
    }
    const position = knownPosition(event.position);
    if (position === undefined) throw new CorruptEvent(event, 'it has no position');
    if (told.reached !== undefined && position <= told.reached) {
      if (position === told.reached || (told.event !== undefined && position <= told.event)) return undefined;
      throw new LogReplaced(
        `${event.streamId}@${event.revision} came at position ${position}, but the log had been told to hold nothing new ` +
          `up to ${told.reached}; what was made of it is built again`,
      );
    }
    watermark.saw(position);
    const envelope = envelopeOf(event, position);
    if (isLink) return { kind: 'event', event: { ...envelope, data: {}, metadata: {} } };
    try {
      return { kind: 'event', event: toRecorded(event) };
    } catch (error) {
      if (!(error instanceof CorruptEvent)) throw error;
      return { kind: 'unreadable', event: { ...envelope, reason: error.reason } };
    }
  };

  return { subscribe };
};

type Connected = {
  readonly client: LedgerClient;
  /** Milliseconds that the connection has to answer a look. */
  readonly lookMs: number;
  readonly check: ReturnType<typeof createReplacedCheck>;
};

/** Undefined for a mark that tells nothing new: a checkpoint while catching up is often no event's position. */
const markOf = (
  mark: 'caught-up' | LogPosition,
  { reached }: Told,
  end: Position | undefined,
): SubscriptionItem | undefined => {
  if (mark === 'caught-up') {
    // All that was in the log before the subscription began was sent, whether it matched or not.
    const behind = reached === undefined || (end !== undefined && end > reached);
    return { kind: 'caught-up', position: behind ? end : reached };
  }
  const position = mark.commit === 0n ? undefined : knownPosition(mark);
  if (position === undefined || (reached !== undefined && position <= reached)) return undefined;
  return { kind: 'checkpoint', position };
};

/**
 * Checkpoints and caught-up reach the library's callbacks ahead of up to 16 buffered events. Both callbacks run while
 * their message is being transformed, so a mark pushed there takes its place behind the events before it.
 */
const open = (
  client: LedgerClient,
  fromPosition: LogPosition,
  filter: ServerFilter,
): AllStreamSubscription => {
  const subscription = client.api.subscribeToAll({
    fromPosition,
    // Another node may be behind, and sends again what it then receives.
    requiresLeader: true,
    filter: {
      ...filter,
      checkpointInterval: 1,
      checkpointReached: (source, position) => void source.push({ mark: position }),
    },
  });
  subscription.on('caughtUp', () => void subscription.push({ mark: 'caught-up' }));
  return subscription;
};

const asksForStoreRecords = (filter: EventFilter | undefined): boolean =>
  filter !== undefined && 'alsoStoreRecords' in filter;

/** Always with a filter: without one the server sends no checkpoints, and `$` events would come along. */
type ServerFilter = { filterOn: Filter['filterOn'] } & ({ regex: string } | { prefixes: string[] });
const serverFilter = (filter: EventFilter | undefined, { prefixes: own }: OurStreams): ServerFilter => {
  if (filter === undefined || 'alsoStoreRecords' in filter) {
    if (own !== undefined) return { filterOn: STREAM_NAME, prefixes: [...own] };
    return { filterOn: filter === undefined ? EVENT_TYPE : STREAM_NAME, regex: '^[^$].*' };
  }
  const [filterOn, prefixes] =
    'streamPrefixes' in filter
      ? ([STREAM_NAME, filter.streamPrefixes] as const)
      : ([EVENT_TYPE, filter.typePrefixes] as const);
  // No prefixes match nothing; an empty list would match everything.
  return prefixes.length === 0 ? { filterOn, regex: '(?!)' } : { filterOn, prefixes: [...prefixes] };
};
