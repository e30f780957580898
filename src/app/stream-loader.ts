import { setImmediate } from 'node:timers/promises';
import type { Aggregate } from './command.ts';
import type { DomainEvent } from '../domain/decider.ts';
import type { EventCodec } from './event-codec.ts';
import type { EventStore, RecordedEvent } from './event-store.ts';
import { emptyStream, foldRecorded, type FoldedStream } from './folded-stream.ts';
import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

/** Folds streams from the store: snapshot and tail, in slices that let the thread breathe. */
export type StreamLoader = {
  load<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    stream: string,
    signal?: AbortSignal,
  ): Promise<FoldedStream<S>>;
  /** Reads on from where `folded` stands; returns the number of new events. */
  catchUp<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    stream: string,
    folded: FoldedStream<S>,
    signal?: AbortSignal,
  ): Promise<number>;
  /** The stream as it was at a revision; `seen` is called with each event, oldest first. */
  loadAt<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    stream: string,
    revision: number,
    options?: { signal?: AbortSignal | undefined; seen?: (event: RecordedEvent) => void },
  ): Promise<FoldedStream<S>>;
  /** Takes a snapshot when enough events came since the last one. */
  snapshot<S>(aggregate: { readonly stateVersion: number }, stream: string, folded: FoldedStream<S>): void;
};

/** Events folded in one go: at some 10 µs each far below the 20 ms that the thread may be held (design §5). */
const SLICE = 256;

export const createStreamLoader = ({
  store,
  codec,
  snapshots,
  snapshotEvery,
}: {
  store: EventStore;
  codec: EventCodec;
  snapshots: SnapshotStore | undefined;
  /** Events between two snapshots of a stream, and the length from which a stream has one at all. */
  snapshotEvery: number;
}): StreamLoader => {
  const fold = async <S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    folded: FoldedStream<S>,
    events: AsyncIterable<RecordedEvent>,
    seen?: (event: RecordedEvent) => void,
  ): Promise<number> => {
    let count = 0;
    for await (const event of events) {
      seen?.(event);
      foldRecorded(folded, aggregate.decider.evolve, codec, event);
      count += 1;
      if (count % SLICE === 0) await setImmediate();
    }
    return count;
  };

  const catchUp: StreamLoader['catchUp'] = (aggregate, stream, folded, signal) => {
    const from = folded.revision === 'no_stream' ? 0 : folded.revision + 1;
    return fold(aggregate, folded, store.readStream(stream, { from, ...withSignal(signal) }));
  };

  const fromSnapshot = async <S>(
    stateVersion: number,
    stream: string,
    signal: AbortSignal | undefined,
  ): Promise<FoldedStream<S> | undefined> => {
    const snapshot = await snapshots?.load(stream);
    if (snapshot === undefined || snapshot.stateVersion !== stateVersion) return undefined;
    const at = store.readStream(stream, { from: snapshot.revision, limit: 1, ...withSignal(signal) });
    for await (const event of at) {
      if (event.id === snapshot.eventId) return snapshot.content as FoldedStream<S>;
    }
    return undefined;
  };

  return {
    catchUp,
    load: async (aggregate, stream, signal) => {
      const folded = emptyStream(aggregate.decider.initialState());
      const head = store.readStream(stream, { limit: snapshotEvery, ...withSignal(signal) });
      const count = await fold(aggregate, folded, head);
      if (count < snapshotEvery) return folded;
      const restored = await fromSnapshot<typeof folded.state>(aggregate.stateVersion, stream, signal);
      const start = restored ?? folded;
      await catchUp(aggregate, stream, start, signal);
      return start;
    },
    loadAt: async (aggregate, stream, revision, { signal, seen } = {}) => {
      const folded = emptyStream(aggregate.decider.initialState());
      if (revision < 0) return folded;
      const events = store.readStream(stream, { limit: revision + 1, ...withSignal(signal) });
      await fold(aggregate, folded, events, seen);
      return folded;
    },
    snapshot: (aggregate, stream, folded) => {
      if (snapshots === undefined || folded.revision === 'no_stream') return;
      if (folded.revision - folded.snapshotRevision < snapshotEvery) return;
      folded.snapshotRevision = folded.revision;
      const snapshot: Snapshot = {
        stream,
        revision: folded.revision,
        eventId: folded.eventId,
        stateVersion: aggregate.stateVersion,
        content: { ...folded, appends: [...folded.appends] },
      };
      snapshots.save(snapshot);
    },
  };
};

const withSignal = (signal: AbortSignal | undefined): { signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
