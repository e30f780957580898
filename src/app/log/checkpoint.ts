import { defined } from '../../domain/json-tools.ts';
import { createBookkeeping } from './bookkeeping.ts';
import type { EventStore, ExpectedRevision, Position } from './event-store.ts';
import { WrongExpectedRevision } from './event-store.ts';
import type { Runtime } from '../ports.ts';

/** Where a loop over the log resumes, kept in a `sys-` stream of which only the newest event stays. */
export type Checkpoint = {
  /** Undefined: from the beginning. */
  load(signal?: AbortSignal): Promise<Position | undefined>;
  /**
   * Returns false when another instance has saved since `load`: then it is the owner of the loop. Undefined: the loop
   * begins at the beginning again.
   */
  save(position: Position | undefined, about?: About): Promise<boolean>;
};

/** What became of what lies in front of the position, where something is sent of it. */
type About = {
  /** Everything was passed over, and nothing sent anywhere. */
  readonly nothingSent?: boolean;
  readonly places?: StoredPlaces;
};

/** Where something was sent: offsets by partition of what went there last, and the id of the topic where that is known. */
type StoredPlaces = { readonly offsets: ReadonlyMap<number, bigint>; readonly topicId: string | undefined };
const NOWHERE: StoredPlaces = { offsets: new Map(), topicId: undefined };

export const createCheckpoint = ({
  store,
  name,
  clock,
  ids,
  instance,
}: {
  store: EventStore;
  /** Becomes the stream `sys-<name>`. */
  name: string;
} & Pick<Runtime, 'clock' | 'ids' | 'instance'>): Checkpoint & {
  /** Whether the position that `load` found was stored with `nothingSent`. */
  isUnsent(): boolean;
  /** The `places` that were stored with it; nothing in it: none were. */
  places(): StoredPlaces;
} => {
  const stream = `sys-${name}`;
  const bookkeeping = createBookkeeping(instance);
  let revision: ExpectedRevision = 'no_stream';
  let isUnsent = false;
  let places = NOWHERE;
  return {
    load: async (signal) => {
      for await (const event of store.readStream(stream, {
        direction: 'backward',
        limit: 1,
        ...(signal && { signal }),
      })) {
        revision = event.revision;
        const position = event.data['position'];
        isUnsent = event.data['nothingSent'] === true;
        const topicId = event.data['topicId'];
        places = {
          offsets: offsetsOf(event.data['places']),
          topicId: typeof topicId === 'string' ? topicId : undefined,
        };
        return typeof position === 'string' ? position : undefined;
      }
      await store.setMaxCount(stream, 1);
      return undefined;
    },
    isUnsent: () => isUnsent,
    places: () => places,
    save: async (position, { nothingSent = false, places: { offsets, topicId } = NOWHERE } = {}) => {
      const reached = [...offsets].map(([partition, at]) => `${partition}:${at}`);
      const data = {
        at: clock.now(),
        ...defined({ position }),
        ...(nothingSent && { nothingSent }),
        ...(reached.length > 0 && { places: reached }),
        ...defined({ topicId }),
      };
      const saved = { type: 'CheckpointReached', data } as const;
      const event = bookkeeping(stream, saved, 'SaveCheckpoint', ids.uuidv7());
      try {
        revision = (await store.append(stream, revision, [event])).revision;
        return true;
      } catch (error) {
        if (error instanceof WrongExpectedRevision) return false;
        throw error;
      }
    },
  };
};

const PLACE = /^(\d{1,9}):(\d{1,19})$/;

const offsetsOf = (stored: unknown): ReadonlyMap<number, bigint> =>
  new Map(
    (Array.isArray(stored) ? stored : []).flatMap((text): [number, bigint][] => {
      const [, partition, at] = PLACE.exec(String(text)) ?? [];
      return partition === undefined || at === undefined ? [] : [[Number(partition), BigInt(at)]];
    }),
  );
