import { randomInt, randomUUID } from 'node:crypto';
import { StoreUnavailable, type EventStore } from '../../../app/log/event-store.ts';
import type { Logger } from '../../../app/ports.ts';
import { createAppender } from './append.ts';
import { createBatchWriter } from './batch-writer.ts';
import { checkConnectionString, connect } from './client.ts';
import { closedStore, createFaults, isTlsFault } from './errors.ts';
import { subscribeByFeed, type FeedEnd } from './feed-line.ts';
import { createOurStreams } from './our-streams.ts';
import { createReader } from './reads.ts';
import { assertWritable, identify } from './store-id.ts';
import { createSubscriber } from './subscription.ts';
import { tlsFaultOf } from './tls-probe.ts';
import { createWatermark } from './watermark.ts';

export type EventStoreDbOptions = {
  /** `esdb://` with one host or a list of nodes, or `esdb+discover://` with one DNS name; user and password percent-encoded. Never logged. */
  readonly connectionString: string;
  /** Name of this process incarnation, for logs. */
  readonly instance: string;
  /** Milliseconds until an append's outcome counts as unknown, a read or an unconfirmed subscription as failed. Default 10,000. */
  readonly deadlineMs?: number;
  /** Milliseconds for a ping. Default: the deadline, at most 1,500. */
  readonly pingMs?: number;
  /** First and longest wait before a dropped subscription is opened again, in milliseconds. Default 100 and 5,000. */
  readonly resubscribeMs?: { readonly first: number; readonly longest: number };
  /** Milliseconds of silence after which a subscription looks whether the log goes on without it. Default 5,000. */
  readonly silenceMs?: number;
  /** Milliseconds that the log stays shorter than what was read of it until it counts as replaced. Default 10,000. */
  readonly replacedMs?: number;
  /**
   * Categories of our streams, where others write to the same log: reads and subscriptions of the whole log pass over
   * their events. Default: nobody else does.
   */
  readonly categories?: readonly string[];
  /** Subscriptions read from the one that the threads of a process share (`feed.ts`). Default: each is one of its own. */
  readonly feed?: FeedEnd;
  readonly logger?: Logger;
  /** This process writes: opening fails when it may not. Default: that shows at the first append. */
  readonly writes?: boolean;
  /** Default: read from the store, or written to it when it has none. */
  readonly storeId?: string;
};

/** Counts since the start. */
export type EventStoreDbStats = {
  readonly retriedAppends: number;
  readonly unknownOutcomes: number;
  readonly resubscribed: number;
  readonly openSubscriptions: number;
  /** Events of other writers that were passed over. */
  readonly foreignEvents: number;
  /** Connections opened, by all clients. */
  readonly connections: number;
  /** Whether the connection for appends is open now; false until the first append. */
  readonly appendConnected: boolean;
};

export type EventStoreDbStore = EventStore & { stats(): EventStoreDbStats };

const DEFAULT_DEADLINE_MS = 10_000;
/** Less than readiness waits for a ping, so that it hears the cause. */
const PING_MS = 1500;
const CONNECT_MS = 2000;
const SILENCE_MS = 5000;
const REPLACED_MS = 10_000;

/**
 * The event log in an EventStoreDB or KurrentDB server (22.6 or later for positions of reads, 23.10 for caught-up).
 * Throws TypeError for a connection string it cannot use, StoreUnavailable when the server cannot be reached.
 */
export const createEventStoreDbStore = async (options: EventStoreDbOptions): Promise<EventStoreDbStore> => {
  const { connectionString, deadlineMs = DEFAULT_DEADLINE_MS, replacedMs = REPLACED_MS } = options;
  const logger = options.logger?.child({ component: 'eventstoredb', instance: options.instance });
  const { endpoints, warning } = checkConnectionString(connectionString);
  if (warning !== undefined) logger?.warn({ endpoints }, warning);

  const counters = {
    retriedAppends: 0,
    unknownOutcomes: 0,
    resubscribed: 0,
    openSubscriptions: 0,
    foreignEvents: 0,
    connections: 0,
  };
  // Keeps the connections of several stores in one process apart (client.ts).
  const firstSerial = randomInt(64) * 64;
  const connectOwn = () => {
    counters.connections += 1;
    return connect(connectionString, `ledger-${options.instance}`, firstSerial + (counters.connections % 64));
  };
  const closing = new AbortController();
  const watermark = createWatermark();
  const faults = createFaults(userOf(connectionString));
  const ours = createOurStreams(options.categories, counters, logger);
  const shared = { connect: connectOwn, closing: closing.signal, watermark, ours, faults, counters, logger };

  const writer = createBatchWriter({ ...shared, connectTimeoutMs: Math.min(deadlineMs, CONNECT_MS) });
  const reader = createReader({ ...shared, deadlineMs, replacedMs, unauthenticated: () => writer.retire() });
  const { readIds } = reader;
  const { append, appendMetadata } = createAppender({ ...shared, writer, deadlineMs, readIds });
  const subscriber = createSubscriber({
    ...shared,
    confirmMs: deadlineMs,
    backoffMs: options.resubscribeMs ?? { first: 100, longest: 5000 },
    silenceMs: options.silenceMs ?? SILENCE_MS,
    replacedMs,
    end: reader.end,
  });
  const subscribe =
    options.feed === undefined
      ? subscriber.subscribe
      : subscribeByFeed(
          options.feed,
          { ...subscriber, lastPosition: reader.lastPosition },
          watermark.saw,
          closing.signal,
        );

  const refuseWhenClosed = (): void => closing.signal.throwIfAborted();
  const setMaxCount = async (stream: string, maxCount: number): Promise<void> => {
    refuseWhenClosed();
    if (!stream.startsWith('sys-')) throw new TypeError(`${stream} is not a sys- stream: its events stay`);
    if (!Number.isSafeInteger(maxCount) || maxCount < 1)
      throw new TypeError(`a stream cannot keep ${maxCount} events`);
    const data = new TextEncoder().encode(JSON.stringify({ $maxCount: maxCount }));
    const event = { id: randomUUID(), type: '$metadata', data, metadata: new Uint8Array() };
    await appendMetadata({ stream: `$$${stream}`, expected: 'any', events: [event] });
  };

  const close = async (): Promise<void> => {
    if (closing.signal.aborted) return;
    closing.abort(closedStore());
    await Promise.allSettled([writer.close(), reader.close()]);
  };

  const store = {
    kind: 'eventstoredb',
    singleWriter: false,
    append: async (...args) => {
      refuseWhenClosed();
      if (!ours.has(args[0]))
        throw new TypeError(`${args[0]} is of no category of ours: nobody would read it`);
      const { after } = args[3] ?? {};
      if (after !== undefined) await after;
      return append(...args);
    },
    readStream: (stream, readOptions) => reader.readStream(stream, readOptions),
    readAll: (readOptions) => reader.readAll(readOptions),
    subscribe,
    currentRevision: reader.currentRevision,
    lastPosition: reader.lastPosition,
    end: reader.end,
    idAt: reader.idAt,
    setMaxCount,
    ping: (signal) => reader.ping(options.pingMs ?? Math.min(deadlineMs, PING_MS), signal),
    close,
    stats: () => ({ ...counters, appendConnected: writer.isConnected() }),
  } satisfies Omit<EventStoreDbStore, 'storeId'>;

  try {
    const storeId =
      options.storeId ??
      (await Promise.race([identify(store, options.instance), untrusted(connectionString)]));
    if (options.writes === true) await assertWritable(store);
    // From here on, what was stored before this start is known to be old (watermark.ts).
    await reader.lastPosition();
    logger?.info({ endpoints, storeId }, 'connected to the event store');
    return { ...store, storeId };
  } catch (error) {
    await close();
    throw isTlsFault(error) && !(error instanceof StoreUnavailable)
      ? faults.unavailable('connecting', error, { right: '$r', on: '$all' })
      : error;
  }
};

/** Rejects when no host of a cluster can be trusted; settles in no other way. */
const untrusted = async (connectionString: string): Promise<never> => {
  const fault = await tlsFaultOf(connectionString);
  if (fault !== undefined) throw fault;
  return new Promise(() => {});
};

/** The user whom the connection string names. */
const userOf = (connectionString: string): string | undefined => {
  const [, user] = /^esdb(?:\+discover)?:\/\/([^:@/]+):[^@/]*@/.exec(connectionString.trim()) ?? [];
  return user === undefined ? undefined : decodeURIComponent(user);
};
