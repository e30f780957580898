import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { DomainEvent } from '../../domain/decider.ts';
import {
  countVersion,
  NO_VERSION,
  type DocumentVersion,
  type VersionedType,
} from '../../domain/document-version.ts';
import type { EventCodec } from '../log/event-codec.ts';
import {
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
  type EventStore,
  type ReadForward,
  OutcomeUnknown,
  StoreUnavailable,
} from '../log/event-store.ts';
import { type Fold, type Loaded, type CommandOutcome, IdempotencyMismatch } from './command.ts';
import type { Snapshot, SnapshotStore } from './snapshot-store.ts';

/** An append that a stream holds: what a repeated command is answered from. */
export type PastAppend = {
  readonly commandId: string;
  readonly requestHash: string;
  /** Revisions of its first and last event. */
  readonly first: number;
  readonly last: number;
  readonly position: Position;
};

/**
 * A stream folded to its state, with what idempotency needs beside it. Mutable, owned by the command runner; each
 * event is applied whole, so that a fold that breaks off half-way is a fold to an earlier revision, never a wrong one.
 */
export type FoldedStream<State> = {
  state: State;
  revision: ExpectedRevision;
  /** Revision at which the stream ends, where records of the store itself stand behind the last event. */
  end?: number | undefined;
  position: Position | undefined;
  eventId: string;
  /** Type of the last event; empty: there is none. */
  lastType: string;
  version: DocumentVersion;
  /** The newest appends, oldest first; at most `REMEMBERED_APPENDS`. */
  appends: PastAppend[];
  /** Newest append that no longer fits in `appends`; undefined: all appends of the stream are there. */
  forgotten: PastAppend | undefined;
  /** Revision of the last snapshot taken of it, -1 for none. */
  snapshotRevision: number;
};

const REMEMBERED_APPENDS = 64;

export const emptyStream = <State>(initial: State): FoldedStream<State> => ({
  state: initial,
  revision: 'no_stream',
  position: undefined,
  eventId: '',
  lastType: '',
  version: NO_VERSION,
  appends: [],
  forgotten: undefined,
  snapshotRevision: -1,
});

export const loadedOf = <State>(folded: FoldedStream<State>): Loaded<State> => ({
  state: folded.state,
  revision: folded.revision,
  version: folded.version.version,
  ...(folded.lastType !== '' && { lastType: folded.lastType }),
  ...(folded.position !== undefined && { position: folded.position }),
});

/** Where the next append expects the stream to be. */
export const endOf = ({ end, revision }: Pick<FoldedStream<unknown>, 'end' | 'revision'>): ExpectedRevision =>
  end ?? revision;

/** To be called when nothing but records of the store lie between the last event and `end`. */
export const noteEnd = (folded: FoldedStream<unknown>, end: number | undefined): void => {
  if (end === undefined) return;
  if (folded.revision === 'no_stream' || end > folded.revision) folded.end = end;
};

/** What one event adds besides its type and data. */
type Envelope = Pick<RecordedEvent, 'revision' | 'position' | 'id'> & {
  readonly commandId: string;
  readonly requestHash: string;
  readonly type: VersionedType | undefined;
};

/** The event is one of the stream's own aggregate, whose `evolve` passes types that it does not know. */
export const foldEvent = <State>(
  folded: FoldedStream<State>,
  evolve: Fold<State>['decider']['evolve'],
  event: DomainEvent,
  envelope: Envelope,
): void => {
  const { commandId, requestHash, revision, position, id } = envelope;
  folded.state = evolve(folded.state, event as never);
  folded.revision = revision;
  folded.end = undefined;
  folded.position = position;
  folded.eventId = id;
  folded.lastType = event.type;
  folded.version = countVersion(folded.version, commandId, envelope.type);
  const newest = folded.appends.at(-1);
  if (newest?.commandId === commandId) {
    folded.appends[folded.appends.length - 1] = { ...newest, last: revision, position };
    return;
  }
  folded.appends.push({ commandId, requestHash, first: revision, last: revision, position });
  if (folded.appends.length > REMEMBERED_APPENDS) folded.forgotten = folded.appends.shift();
};

/** Folds an event as the store returned it. */
export const foldRecorded = <State>(
  folded: FoldedStream<State>,
  evolve: Fold<State>['decider']['evolve'],
  codec: EventCodec,
  event: RecordedEvent,
): void =>
  foldEvent(folded, evolve, codec.decode(event), {
    revision: event.revision,
    position: event.position,
    id: event.id,
    ...commandOf(event),
    type: codec.typeOf(event.type),
  });

export const commandOf = ({ metadata }: RecordedEvent): { commandId: string; requestHash: string } => {
  const commandId = metadata['commandId'];
  const requestHash = metadata['requestHash'];
  return {
    commandId: typeof commandId === 'string' ? commandId : '',
    requestHash: typeof requestHash === 'string' ? requestHash : '',
  };
};

/**
 * Folds long stretches of streams away from the thread that answers HTTP.
 * Without it, or when it fails, they are folded here in slices.
 */
export type LongFolds = {
  /**
   * Goes on from `folded`, which is left alone, to the end of the stream or to `upTo` (a revision, included). What its
   * worker sees may lag behind; whoever asks reads on from there.
   *
   * @returns undefined when it cannot be done now (it failed, it is closing): the caller folds by itself.
   */
  foldOn(request: FoldRequest, signal?: AbortSignal): Promise<FoldedStream<unknown> | undefined>;
  close(): Promise<void>;
};

export type FoldRequest = {
  /** Stream category, which names the aggregate. */
  readonly category: string;
  readonly stream: string;
  /** Structured-cloneable, like a snapshot's content. */
  readonly folded: FoldedStream<unknown>;
  readonly upTo?: number;
};

/**
 * Folds streams from the store: snapshot and tail. What is long goes on in a worker; what is short, or cannot go there,
 * is folded here in slices that let the thread breathe.
 */
type StreamLoader = {
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

/** A stream as it is remembered. */
export type Remembered<S> = {
  readonly folded: FoldedStream<S>;
  /**
   * False: it was read beside the commands of its stream, which may have brought it further meanwhile. True: it was read in
   * their turn, or found to be the newest, and whatever was appended since has moved it on.
   */
  isChecked: boolean;
};

/** Folded streams in memory; the least recently used leaves first. */
export const createFoldedCache = (max: number) => {
  // Counted by size: room for `max` entries would be taken, and filled, before there is one.
  const entries = new LRUCache<string, Remembered<unknown> & { readonly stateVersion: number }>({
    maxSize: max,
    sizeCalculation: () => 1,
  });
  return {
    /** Undefined also when it was folded by another version. */
    get: <S>(stream: string, stateVersion: number): Remembered<S> | undefined => {
      const entry = entries.get(stream);
      // One stream belongs to one aggregate, so that its cached state has that aggregate's type.
      return entry?.stateVersion === stateVersion ? (entry as Remembered<S>) : undefined;
    },
    set: (stream: string, stateVersion: number, folded: FoldedStream<unknown>, isChecked: boolean): void =>
      void entries.set(stream, { folded, stateVersion, isChecked }),
    forget: (stream: string): void => void entries.delete(stream),
  };
};

/** Appends of all streams by command id, built by a projection: answers for commands too old to be remembered. */
export type CommandIndex = {
  /** Undefined: not there up to `appliedTo()`. */
  find(stream: string, commandId: string): Promise<PastAppend | undefined>;
  /**
   * Every append to this stream up to this position is in the index. Undefined: nothing is known of the stream, since
   * the index is empty or passes over this stream's events (it is parked).
   */
  appliedTo(stream: string): Position | undefined;
};

/**
 * The append that a command made to a stream, if it made one. Remembered appends answer at once; when older ones
 * exist the index is asked, and what the index has not seen yet is read from the stream.
 */
export const findPastAppend = async (
  store: EventStore,
  stream: string,
  folded: FoldedStream<unknown>,
  commandId: string,
  index: CommandIndex | undefined,
): Promise<PastAppend | undefined> => {
  const { appends, forgotten } = folded;
  for (let i = appends.length - 1; i >= 0; i -= 1) {
    if (appends[i]?.commandId === commandId) return appends[i];
  }
  if (forgotten === undefined) return undefined;
  // Asked first: what is applied while `find` runs is then at worst looked for twice.
  const appliedTo = index?.appliedTo(stream);
  const indexed = await index?.find(stream, commandId);
  if (indexed !== undefined) return indexed;
  if (appliedTo !== undefined && forgotten.position <= appliedTo) return undefined; // all of them are in the index
  return findInStream(store, stream, commandId, forgotten.last, appliedTo);
};

/** Backward from a revision until the position that the index answers for. */
const findInStream = async (
  store: EventStore,
  stream: string,
  commandId: string,
  from: number,
  downTo: Position | undefined,
): Promise<PastAppend | undefined> => {
  let found: PastAppend | undefined;
  for await (const event of store.readStream(stream, { from, direction: 'backward' })) {
    if (found === undefined && downTo !== undefined && event.position <= downTo) return undefined;
    const command = commandOf(event);
    if (command.commandId !== commandId) {
      if (found !== undefined) return found;
      continue;
    }
    found = {
      ...command,
      first: event.revision,
      last: found?.last ?? event.revision,
      position: found?.position ?? event.position,
    };
  }
  return found;
};

/** How a command ended, for metrics. */
export type CommandResultName =
  | 'accepted'
  | 'replayed'
  | 'unchanged'
  | 'rejected'
  | 'mismatch'
  | 'unknown'
  | 'unavailable'
  | 'failed';

export const resultName = (outcome: CommandOutcome<unknown>): CommandResultName => {
  if (outcome.outcome === 'rejected') return 'rejected';
  if (outcome.replayed) return 'replayed';
  return outcome.events.length === 0 ? 'unchanged' : 'accepted';
};

export const errorName = (error: unknown): CommandResultName => {
  if (error instanceof OutcomeUnknown) return 'unknown';
  if (error instanceof StoreUnavailable) return 'unavailable';
  return error instanceof IdempotencyMismatch ? 'mismatch' : 'failed';
};
