import { createBookkeeping } from './bookkeeping.ts';
import type { EventStore, ExpectedRevision, Position } from './event-store.ts';
import { WrongExpectedRevision } from './event-store.ts';
import type { Clock, Ids } from './ports.ts';

/** Where a loop over the log resumes, kept in a `sys-` stream of which only the newest event stays. */
export type Checkpoint = {
  /** Undefined: from the beginning. */
  load(signal?: AbortSignal): Promise<Position | undefined>;
  /**
   * Returns false when another instance has saved since `load`: then it is the owner of the loop. Undefined: the loop
   * begins at the beginning again. `nothingSent`: everything up to there was passed over, and nothing sent anywhere.
   */
  save(position: Position | undefined, about?: { readonly nothingSent: boolean }): Promise<boolean>;
};

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
  clock: Clock;
  ids: Ids;
  instance: string;
}): Checkpoint & {
  /** Whether the position that `load` found was stored with `nothingSent`. */
  isUnsent(): boolean;
} => {
  const stream = `sys-${name}`;
  const bookkeeping = createBookkeeping(instance);
  let revision: ExpectedRevision = 'no_stream';
  let isUnsent = false;
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
        return typeof position === 'string' ? position : undefined;
      }
      await store.setMaxCount(stream, 1);
      return undefined;
    },
    isUnsent: () => isUnsent,
    save: async (position, { nothingSent } = { nothingSent: false }) => {
      const data = {
        at: clock.now(),
        ...(position === undefined ? {} : { position }),
        ...(nothingSent ? { nothingSent } : {}),
      };
      const reached = { type: 'CheckpointReached', data } as const;
      const event = bookkeeping(stream, reached, 'SaveCheckpoint', ids.uuidv7());
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
