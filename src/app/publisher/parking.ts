import { createBookkeeping } from '../log/bookkeeping.ts';
import { WrongExpectedRevision, type EventStore, type ExpectedRevision } from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import type { ParkedStream } from '../../domain/bookkeeping/events.ts';

/** Streams that one topic may leave out; with more of them the mapper is at fault, and the topic stops. */
export const MOST_PARKED = 100;
/** Characters of an error that are kept. */
const ERROR_LENGTH = 500;

export class TooManyParked extends Error {
  override readonly name = 'TooManyParked';
  constructor(topic: string) {
    super(`${MOST_PARKED} streams of topic ${topic} are parked: it stops until that is put right`);
  }
}

/** Another instance wrote what only the owner of the publisher may write. */
export class TakenOver extends Error {
  override readonly name = 'TakenOver';
  constructor(stream: string) {
    super(`another instance has written ${stream}: it publishes now`);
  }
}

/**
 * The streams that a topic leaves out because one of their events cannot become a record, or is one that the brokers do
 * not take. All of the stream from that event on waits, so that its records stay in order; other streams go on. Kept in
 * the log, since the checkpoint moves past them.
 */
export type Parking = {
  load(signal?: AbortSignal): Promise<void>;
  get(stream: string): ParkedStream | undefined;
  list(): readonly ParkedStream[];
  /** Known at once; resolves when it is durable. Throws TooManyParked, TakenOver. */
  park(stream: Omit<ParkedStream, 'at'>): Promise<void>;
  /** Nothing when the stream was parked anew meanwhile. Throws TakenOver. */
  release(parked: ParkedStream): Promise<void>;
};

export const createParking = ({
  store,
  topic,
  clock,
  ids,
  instance,
}: {
  readonly store: Pick<EventStore, 'readStream' | 'append' | 'setMaxCount'>;
  readonly topic: string;
} & Pick<Runtime, 'clock' | 'ids' | 'instance'>): Parking => {
  const name = `sys-kafkaParked-${topic}`;
  const bookkeeping = createBookkeeping(instance);
  let parked = new Map<string, ParkedStream>();
  let revision: ExpectedRevision = 'no_stream';
  let saving: Promise<void> = Promise.resolve();

  const save = async (): Promise<void> => {
    if (revision === 'no_stream') await store.setMaxCount(name, 1);
    const data = { at: clock.now(), streams: [...parked.values()] };
    const event = bookkeeping(name, { type: 'KafkaParkingChanged', data }, 'ParkStreams', ids.uuidv7());
    try {
      revision = (await store.append(name, revision, [event])).revision;
    } catch (error) {
      throw error instanceof WrongExpectedRevision ? new TakenOver(name) : error;
    }
  };
  const saved = (): Promise<void> => {
    saving = saving.catch(() => undefined).then(save);
    return saving;
  };

  return {
    load: async (signal) => {
      parked = new Map();
      revision = 'no_stream';
      for await (const event of store.readStream(name, {
        direction: 'backward',
        limit: 1,
        ...(signal && { signal }),
      })) {
        const { streams } = event.data as unknown as { readonly streams: readonly ParkedStream[] };
        parked = new Map(streams.map((each) => [each.stream, each]));
        revision = event.revision;
      }
    },
    get: (stream) => parked.get(stream),
    list: () => [...parked.values()],
    park: async ({ stream, revision: from, position, error, reason }) => {
      if (parked.size >= MOST_PARKED && !parked.has(stream)) throw new TooManyParked(topic);
      const entry = {
        stream,
        revision: from,
        position,
        error: error.slice(0, ERROR_LENGTH),
        ...(reason === undefined ? {} : { reason }),
        at: clock.now(),
      };
      parked.set(stream, entry);
      await saved();
    },
    release: async (entry) => {
      if (parked.get(entry.stream) !== entry) return;
      parked.delete(entry.stream);
      await saved();
    },
  };
};
