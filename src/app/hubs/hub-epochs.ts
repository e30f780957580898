import { createBookkeeping } from '../log/bookkeeping.ts';
import { WrongExpectedRevision, type EventStore } from '../log/event-store.ts';
import type { Clock, Ids } from '../ports.ts';

/**
 * The epochs in which this log's services drove hubs. Epoch n is the event of revision n - 1, so that a log knows of a mark
 * by one read. A copy of the log lacks what was begun after it was taken, or has another nonce there.
 */
export const DRIVING_STREAM = 'sys-driving';
/** At six an hour about two months: a hub that was away for longer is taken for one that was never marked later. */
const MAX_COUNT = 10_000;
const TRIES = 20;

export type Epoch = { readonly epoch: number; readonly nonce: string };

export type HubEpochs = {
  /** Begins the next epoch, which is in the log when this resolves. Throws what the store throws. */
  begin(): Promise<Epoch>;
  /** Whether the log has this very epoch. Throws what the store throws. */
  knows(epoch: Epoch): Promise<boolean>;
};

export const createHubEpochs = ({
  store,
  clock,
  ids,
  instance,
  holder,
}: {
  readonly store: EventStore;
  readonly clock: Pick<Clock, 'now'>;
  readonly ids: Ids;
  readonly instance: string;
  /** Data directory of this instance. */
  readonly holder: string;
}): HubEpochs => {
  const bookkeeping = createBookkeeping(instance);
  return {
    begin: async () => {
      const nonce = ids.uuidv7();
      for (let tries = 0; tries < TRIES; tries += 1) {
        const last = await store.currentRevision(DRIVING_STREAM);
        const epoch = last === 'no_stream' ? 1 : last + 2;
        const data = { at: clock.now(), epoch, nonce, holder };
        const begun = { type: 'DrivingEpochBegun', data } as const;
        try {
          if (last === 'no_stream') await store.setMaxCount(DRIVING_STREAM, MAX_COUNT);
          // One command id for all tries: an append that was stored without an answer is found again by its event id.
          await store.append(DRIVING_STREAM, last, [
            bookkeeping(DRIVING_STREAM, begun, 'BeginDrivingEpoch', nonce),
          ]);
          return { epoch, nonce };
        } catch (error) {
          if (!(error instanceof WrongExpectedRevision)) throw error;
        }
      }
      throw new Error(`${DRIVING_STREAM}: other instances keep on beginning epochs`);
    },
    knows: async ({ epoch, nonce }) => {
      if (!Number.isSafeInteger(epoch) || epoch < 1) return false;
      for await (const event of store.readStream(DRIVING_STREAM, { from: epoch - 1, limit: 1 }))
        if (event.revision === epoch - 1) return event.data['nonce'] === nonce;
      // Older than what is kept is what this log once had; newer is what it never had.
      const last = await store.currentRevision(DRIVING_STREAM);
      return last !== 'no_stream' && last >= epoch - 1;
    },
  };
};
