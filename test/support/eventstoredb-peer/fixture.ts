import { randomUUID } from 'node:crypto';
import {
  createEventStoreDbStore,
  type EventStoreDbOptions,
  type EventStoreDbStore,
} from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import type { EventToAppend } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { startPeer, type Peer, type PeerOptions } from './peer.ts';

let loaded: Promise<void> | undefined;

/** The first connection of a process compiles the client, which takes longer than the short deadlines of these stores. */
const load = async (): Promise<void> => {
  const peer = await startPeer();
  const store = await createEventStoreDbStore({
    connectionString: peer.connectionString,
    instance: 'first',
    deadlineMs: 15_000,
  });
  await store.close();
  await peer.stop();
};

/** Peers and stores of one test, all ended by `clean()`. */
export const createBench = () => {
  const endings: (() => Promise<void>)[] = [];
  return {
    peer: async (options: PeerOptions = {}): Promise<Peer> => {
      const peer = await startPeer(options);
      endings.push(() => peer.stop());
      return peer;
    },
    /**
     * A store with short waits: 1,500 ms deadline, resubscribing after 5–50 ms, a shorter log counts as replaced after
     * 200 ms. Opened once, as production opens it.
     */
    store: async (
      peer: Peer | string,
      options: Partial<EventStoreDbOptions> = {},
    ): Promise<EventStoreDbStore> => {
      await (loaded ??= load());
      const store = await createEventStoreDbStore({
        connectionString: typeof peer === 'string' ? peer : peer.connectionString,
        instance: 'test',
        deadlineMs: 1500,
        resubscribeMs: { first: 5, longest: 50 },
        replacedMs: 200,
        ...options,
      });
      endings.push(() => store.close());
      return store;
    },
    clean: async (): Promise<void> => {
      for (const end of endings.splice(0).toReversed()) await end();
    },
  };
};

export const event = (type: string, data: JsonObject = {}, metadata: JsonObject = {}): EventToAppend => ({
  id: randomUUID(),
  type,
  data: JSON.stringify(data),
  metadata: JSON.stringify(metadata),
});

/** The error that a promise rejects with. */
export const rejection = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected a rejection, but the call succeeded');
};

export const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};

/** Ids of what a peer has stored in a stream, in its order. */
export const idsIn = (peer: Peer, stream: string): string[] =>
  peer.log.all.filter((e) => e.stream === stream).map((e) => e.id);

/** What a call is rejected with, and after how many milliseconds. */
export const timed = async (call: Promise<unknown>): Promise<{ error: unknown; ms: number }> => {
  const started = performance.now();
  const error = await rejection(call);
  return { error, ms: performance.now() - started };
};
