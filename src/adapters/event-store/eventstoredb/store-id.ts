import { randomUUID } from 'node:crypto';
import { createBookkeeping } from '../../../app/log/bookkeeping.ts';
import { OutcomeUnknown, WrongExpectedRevision, type EventStore } from '../../../app/log/event-store.ts';

/** Written once per store and shown to nobody: neither reads nor subscriptions of the whole log yield it. */
const STREAM = 'sys-store';

export const isOwnStream = (stream: string): boolean => stream === STREAM;

/** The id of this store, from its own log. Whoever comes first writes it; the loser of that race reads it. */
export const identify = async (
  store: Pick<EventStore, 'append' | 'readStream'>,
  instance: string,
): Promise<string> => {
  const known = await readId(store);
  if (known !== undefined) return known;
  const storeId = randomUUID();
  const identified = { type: 'StoreIdentified', data: { at: new Date().toISOString(), storeId } } as const;
  const event = createBookkeeping(instance)(STREAM, identified, 'IdentifyStore', randomUUID());
  try {
    await store.append(STREAM, 'no_stream', [event]);
    return storeId;
  } catch (error) {
    if (!(error instanceof WrongExpectedRevision) && !(error instanceof OutcomeUnknown)) throw error;
    const winner = await readId(store);
    if (winner === undefined) throw error;
    return winner;
  }
};

/**
 * Throws StoreUnavailable where the user may not write: the event with the store's id is appended once more, which a
 * server answers without storing it again. Otherwise a missing right shows at the first order.
 */
export const assertWritable = async (store: Pick<EventStore, 'append' | 'readStream'>): Promise<void> => {
  for await (const { id, type, data, metadata } of store.readStream(STREAM, { limit: 1 })) {
    const again = { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
    await store.append(STREAM, 'no_stream', [again]);
  }
};

const readId = async (store: Pick<EventStore, 'readStream'>): Promise<string | undefined> => {
  for await (const { data } of store.readStream(STREAM, { limit: 1 })) {
    if (typeof data['storeId'] === 'string' && data['storeId'] !== '') return data['storeId'];
    throw new Error(`the first event of ${STREAM} holds no storeId`);
  }
  return undefined;
};
