import { setImmediate } from 'node:timers/promises';
import type { Fold } from './command.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { EventStore, ExpectedRevision, ReadForward, RecordedEvent } from '../log/event-store.ts';
import { emptyStream, foldRecorded, type FoldedStream } from './folded-stream.ts';
import type { LongFolds } from './long-folds.ts';
import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

/**
 * Folds streams from the store: snapshot and tail. What is long goes on in a worker; what is short, or cannot go there,
 * is folded here in slices that let the thread breathe.
 */
export type StreamLoader = {
  load<S>(aggregate: Fold<S>, stream: string, signal?: AbortSignal): Promise<FoldedStream<S>>;
  /** Reads on from where `folded` stands; returns the number of new events. */
  catchUp<S>(
    aggregate: Fold<S>,
    stream: string,
    folded: FoldedStream<S>,
    signal?: AbortSignal,
  ): Promise<number>;
  /**
   * The stream as it was at a revision; `seen` is called, oldest first, with each event from `seenFrom` on. With
   * `read` all
   * of it comes from there, on this thread: neither a snapshot nor a worker stands in for events.
   */
  loadAt<S>(
    aggregate: Fold<S>,
    stream: string,
    revision: number,
    options?: {
      signal?: AbortSignal | undefined;
      seen?: (event: RecordedEvent) => void;
      seenFrom?: number;
      read?: ReadForward | undefined;
    },
  ): Promise<FoldedStream<S>>;
  /** Takes a snapshot when enough events came since the last one. */
  snapshot<S>(aggregate: { readonly stateVersion: number }, stream: string, folded: FoldedStream<S>): void;
};

/** Events folded in one go: at some 10 µs each far below the 20 ms that the thread may be held. */
const SLICE = 256;
/** Events after which the rest is folded elsewhere: two slices cost less than the way to a worker and back. */
const LONG = 2 * SLICE;

export const createStreamLoader = ({
  store,
  codec,
  snapshots,
  snapshotEvery,
  longFolds,
}: {
  store: EventStore;
  codec: EventCodec;
  snapshots: SnapshotStore | undefined;
  /** Events between two snapshots of a stream. */
  snapshotEvery: number;
  longFolds?: LongFolds | undefined;
}): StreamLoader => {
  type Stretch = {
    /** Last revision to fold; absent: to the end. */
    readonly upTo?: number | undefined;
    readonly signal?: AbortSignal | undefined;
    /** Called with each event; then all of them must come by here. */
    readonly seen?: ((event: RecordedEvent) => void) | undefined;
    /** Where events come from; the same holds then. Default: the store. */
    readonly read?: ReadForward | undefined;
  };

  const fromStore: ReadForward = (stream, options) => store.readStream(stream, options);

  /** Folds on from where `folded` stands; returns the number of events. */
  const foldOn = async <S>(
    aggregate: Fold<S>,
    stream: string,
    folded: FoldedStream<S>,
    { upTo, signal, seen, read }: Stretch,
  ): Promise<number> => {
    const first = nextOf(folded.revision);
    const mayLeave = longFolds !== undefined && seen === undefined && read === undefined;
    let count = await foldHere(aggregate, stream, folded, {
      upTo: mayLeave ? Math.min(upTo ?? Infinity, first + LONG - 1) : upTo,
      signal,
      seen,
      read,
    });
    if (!mayLeave || count < LONG) return count;
    const { category } = aggregate;
    const request = { category, stream, folded, ...(upTo === undefined ? {} : { upTo }) };
    const further = await longFolds.foldOn(request, signal);
    if (further !== undefined) Object.assign(folded, further);
    count = nextOf(folded.revision) - first;
    return count + (await foldHere(aggregate, stream, folded, { upTo, signal }));
  };

  const foldHere = async <S>(
    aggregate: Fold<S>,
    stream: string,
    folded: FoldedStream<S>,
    { upTo, signal, seen, read = fromStore }: Stretch,
  ): Promise<number> => {
    const from = nextOf(folded.revision);
    const limit = upTo === undefined || upTo === Infinity ? {} : { limit: upTo - from + 1 };
    if (limit.limit !== undefined && limit.limit <= 0) return 0;
    let count = 0;
    for await (const event of read(stream, { from, ...limit, ...withSignal(signal) })) {
      seen?.(event);
      foldRecorded(folded, aggregate.decider.evolve, codec, event);
      count += 1;
      if (count % SLICE === 0) await setImmediate();
    }
    return count;
  };

  const catchUp: StreamLoader['catchUp'] = (aggregate, stream, folded, signal) =>
    foldOn(aggregate, stream, folded, { signal });

  /** The newest snapshot, when it is of this state version and history and not behind revision `newest`. */
  const fromSnapshot = async <S>(
    stateVersion: number,
    stream: string,
    signal: AbortSignal | undefined,
    newest = Infinity,
  ): Promise<FoldedStream<S> | undefined> => {
    const snapshot = await snapshots?.load(stream);
    if (snapshot === undefined || snapshot.stateVersion !== stateVersion) return undefined;
    if (snapshot.revision > newest) return undefined;
    const at = store.readStream(stream, { from: snapshot.revision, limit: 1, ...withSignal(signal) });
    for await (const event of at) {
      if (event.id === snapshot.eventId) return snapshot.content as FoldedStream<S>;
    }
    return undefined;
  };

  return {
    catchUp,
    load: async (aggregate, stream, signal) => {
      const empty = emptyStream(aggregate.decider.initialState());
      const restored = await fromSnapshot<typeof empty.state>(aggregate.stateVersion, stream, signal);
      const folded = restored ?? empty;
      await catchUp(aggregate, stream, folded, signal);
      return folded;
    },
    loadAt: async (aggregate, stream, revision, { signal, seen, seenFrom = Infinity, read } = {}) => {
      const empty = emptyStream(aggregate.decider.initialState());
      if (revision < 0) return empty;
      if (read !== undefined) {
        await foldOn(aggregate, stream, empty, { upTo: revision, signal, read });
        return empty;
      }
      const { stateVersion } = aggregate;
      const unseen = Math.min(revision, seenFrom - 1);
      const folded = (await fromSnapshot<typeof empty.state>(stateVersion, stream, signal, unseen)) ?? empty;
      await foldOn(aggregate, stream, folded, { upTo: unseen, signal });
      if (unseen < revision) await foldOn(aggregate, stream, folded, { upTo: revision, signal, seen });
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

const nextOf = (revision: ExpectedRevision): number => (revision === 'no_stream' ? 0 : revision + 1);

const withSignal = (signal: AbortSignal | undefined): { signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
