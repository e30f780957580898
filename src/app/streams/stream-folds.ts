import { LRUCache } from 'lru-cache';
import type { EventStore, RecordedEvent } from '../event-store.ts';

/** Streams folded to any of their revisions, so that a mapper needs no read model and gives the same for the same event. */
export type StreamFolds<State> = {
  /** The stream as it was before this event. Throws StoreUnavailable when it cannot be read. */
  readonly before: (event: RecordedEvent) => Promise<State>;
  /** Folds the event itself, and remembers the result. */
  readonly apply: (before: State, event: RecordedEvent) => State;
};

export type StreamFoldsOptions<State> = {
  readonly initial: () => State;
  readonly fold: (state: State, event: RecordedEvent) => State;
  readonly readStream: EventStore['readStream'];
  /** Streams that stay folded in memory; the least recently used leaves first and is read again when it is needed. */
  readonly kept: number;
};

type Folded<State> = { readonly revision: number; readonly state: State };

export const createStreamFolds = <State>({
  initial,
  fold,
  readStream,
  kept,
}: StreamFoldsOptions<State>): StreamFolds<State> => {
  const folds = new LRUCache<string, Folded<State>>({ max: kept });

  return {
    before: async ({ stream, revision }) => {
      const known = folds.get(stream);
      // What is kept is newer than the event when events come again: then the stream is folded anew.
      const from = known !== undefined && known.revision < revision ? known : undefined;
      let state = from === undefined ? initial() : from.state;
      const first = (from?.revision ?? -1) + 1;
      if (first === revision) return state;
      for await (const event of readStream(stream, { from: first, limit: revision - first }))
        state = fold(state, event);
      return state;
    },
    apply: (before, event) => {
      const state = fold(before, event);
      folds.set(event.stream, { revision: event.revision, state });
      return state;
    },
  };
};
