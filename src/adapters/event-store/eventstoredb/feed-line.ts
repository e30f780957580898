import { on } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  LogDamaged,
  LogReplaced,
  reachedBy,
  type Position,
  type SubscribeOptions,
  type SubscriptionItem,
} from '../../../app/log/event-store.ts';
import {
  createFeed,
  type Batches,
  type Entry,
  type Feed,
  type FeedBounds,
  type FeedOptions,
  type Joining,
} from './feed.ts';
import { onAbort } from './waiting.ts';

/** What a thread is given to read the log together with the others of its process. */
export type FeedEnd = {
  readonly port: MessagePort;
  /** The feed runs in this thread. */
  readonly hosts: boolean;
  readonly bounds?: FeedBounds;
};

/** To the thread with the feed: somebody joins by this port. From it, to all others: the feed has reached the end. */
type LineMessage = { readonly join: MessagePort } | { readonly live: true };

/** Connects the threads of one process; lives in any of them. */
export const createFeedLines = () => {
  const lines = new Set<MessagePort>();
  let host: MessagePort | undefined;
  return {
    open: (hosts: boolean): FeedEnd => {
      const { port1: line, port2: port } = new MessageChannel();
      lines.add(line);
      if (hosts) host = line;
      line.on('message', (message: LineMessage) => {
        if ('live' in message) for (const other of lines) other.postMessage(message);
        else if (host === undefined) message.join.close();
        else host.postMessage(message, [message.join]);
      });
      line.on('close', () => {
        lines.delete(line);
        if (host === line) host = undefined;
      });
      line.unref();
      return { port, hosts };
    },
    close: (): void => {
      for (const line of lines) line.close();
    },
  };
};

type Line = {
  readonly join: (joining: Joining, signal: AbortSignal, from: FeedOptions) => Promise<Batches>;
  readonly expect: Feed['expect'];
  /** Those who are told when the feed has reached the end of the log. */
  readonly listeners: Set<() => void>;
};

/** Several stores of a thread share its one end. */
const known = new WeakMap<MessagePort, Line>();

const lineOf = ({ port, hosts, bounds }: FeedEnd): Line => {
  const listeners = new Set<() => void>();
  const feed = hosts ? createFeed(() => port.postMessage({ live: true }), bounds) : undefined;
  port.on('message', (message: LineMessage) => {
    if ('live' in message) for (const tell of listeners) tell();
    else if (feed === undefined) message.join.close();
    else void serve(message.join, (joining, signal) => feed.join(joining, signal));
  });
  port.unref();
  const join: Line['join'] =
    feed === undefined
      ? (joining, signal) => joinAfar(port, joining, signal)
      : (joining, signal, from) => Promise.resolve(feed.join(joining, signal, from));
  const line = { join, listeners, expect: feed?.expect ?? (() => () => undefined) };
  known.set(port, line);
  return line;
};

/** Somebody of this thread will read soon: the feed that it hosts waits for them. Returns what to call when they have. */
export const expectReader = (end: FeedEnd): (() => void) =>
  known.get(end.port)?.expect() ?? (() => undefined);

/** Items after which a subscription of its own that is under way asks for the feed again. */
const ASK_EVERY = 500;

/**
 * Subscribes to the feed of the process, and, where that has no such position, or none any more, by a subscription of its
 * own until it has. Each reads on where the other one left off.
 */
export const subscribeByFeed = (
  end: FeedEnd,
  store: FeedOptions & { readonly subscribe: (options: SubscribeOptions) => AsyncIterable<SubscriptionItem> },
  saw: (position: Position) => void,
  closing: AbortSignal,
) => {
  const line = known.get(end.port) ?? lineOf(end);
  return async function* subscribe(
    options: SubscribeOptions,
  ): AsyncGenerator<SubscriptionItem, void, undefined> {
    const { signal, filter, patienceMs, name } = options;
    let { after } = options;
    const either = AbortSignal.any([signal, closing]);
    let isCaughtUp = false;
    const goOn = (item: SubscriptionItem): SubscriptionItem => {
      after = reachedBy(item) ?? after;
      isCaughtUp ||= item.kind === 'caught-up';
      return item;
    };
    const join = (): Promise<Batches> =>
      line.join({ after, filter, patienceMs, name, isCaughtUp } as Joining, either, store);
    let joined = await join();
    while (!signal.aborted) {
      closing.throwIfAborted();
      if (joined !== undefined) {
        for await (const batch of joined)
          for (const { item } of batch) {
            if (signal.aborted) return;
            if (item.kind === 'event') saw(item.event.position);
            yield goOn(item);
          }
        joined = undefined;
        continue;
      }
      const leave = new AbortController();
      const tell = (): void => void (isCaughtUp && leave.abort());
      line.listeners.add(tell);
      try {
        let items = 0;
        const over = AbortSignal.any([signal, leave.signal]);
        for await (const item of store.subscribe({
          ...options,
          ...(after !== undefined && { after }),
          signal: over,
        })) {
          yield goOn(item);
          items += 1;
          if (item.kind === 'caught-up' || items % ASK_EVERY === 0) joined = await join();
          if (joined !== undefined) break;
        }
      } finally {
        line.listeners.delete(tell);
      }
      joined ??= await join();
    }
  };
};

/** What crosses to a reader in another thread: a first word that it has joined, then JSON of batches, or an error. */
type Served = { readonly joined: true } | { readonly items: string } | { readonly failure: Failure };
type Failure = Pick<LogDamaged, 'name' | 'message' | 'at'>;

/** Batches that a reader may be behind. */
const AHEAD = 2;

const serve = async (port: MessagePort, join: (joining: Joining, signal: AbortSignal) => Batches) => {
  const over = new AbortController();
  port.on('close', () => over.abort());
  const received = on(port, 'message', { close: ['close'] });
  try {
    const { value } = (await received.next()) as IteratorResult<[Joining], undefined>;
    const batches = value === undefined ? undefined : join(value[0], over.signal);
    if (batches === undefined) return;
    port.postMessage({ joined: true });
    let ahead = 0;
    for await (const batch of batches) {
      port.postMessage({ items: `[${batch.map(({ text }) => text).join()}]` });
      ahead += 1;
      if (ahead < AHEAD) continue;
      await received.next();
      ahead -= 1;
    }
  } catch (error) {
    const { name, message } = error as Error;
    const at = error instanceof LogDamaged ? error.at : undefined;
    port.postMessage({ failure: { name, message, at } });
  } finally {
    port.close();
  }
};

const joinAfar = async (line: MessagePort, joining: Joining, signal: AbortSignal): Promise<Batches> => {
  const { port1: port, port2 } = new MessageChannel();
  const received = on(port, 'message', { close: ['close'] }) as AsyncIterableIterator<[Served]>;
  line.postMessage({ join: port2 }, [port2]);
  port.postMessage(joining);
  const stopListening = onAbort(signal, () => port.close());
  if ((await received.next()).done !== true) return batchesFrom(port, received, stopListening);
  stopListening();
  return undefined;
};

async function* batchesFrom(
  port: MessagePort,
  received: AsyncIterableIterator<[Served]>,
  stopListening: () => void,
): AsyncGenerator<readonly Entry[], void, undefined> {
  try {
    for await (const [served] of received) {
      if ('failure' in served) throw errorOf(served.failure);
      if (!('items' in served)) continue;
      yield (JSON.parse(served.items) as SubscriptionItem[]).map((item) => ({ item, text: '' }));
      port.postMessage('more');
    }
  } finally {
    stopListening();
    port.close();
  }
}

const errorOf = ({ name, message, at }: Failure): Error =>
  name === LogReplaced.name ? new LogReplaced(message) : new LogDamaged(message, at);
