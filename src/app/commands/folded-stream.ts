import type { DomainEvent } from '../../domain/decider.ts';
import {
  countVersion,
  NO_VERSION,
  type DocumentVersion,
  type VersionedType,
} from '../../domain/document-version.ts';
import type { Fold, Loaded } from './command.ts';
import type { EventCodec } from '../log/event-codec.ts';
import type { ExpectedRevision, Position, RecordedEvent } from '../log/event-store.ts';

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

export const REMEMBERED_APPENDS = 64;

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
