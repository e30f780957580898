import type { DomainEvent } from '../../domain/decider.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { streamName } from '../../domain/stream-name.ts';
import { heldRead, type LeafGuard } from '../audit/verified-reads.ts';
import type { Aggregate, CommandRunner, Loaded } from '../commands/command.ts';
import type { EventStore, Position, RecordedEvent } from './event-store.ts';

/** What streams looked like earlier: folded again, up to a position, each event held against its leaf. */
export type AsOf = {
  /**
   * The state after everything that had been stored at the position; undefined: the stream was empty, or is of a
   * tenant that
   * is not `visible`. Of such a stream no more is read than of one that is not there, so that the time that the
   * answer takes
   * does not tell the two apart. Throws ChangedEvent where an event of a visible one is not the one that was
   * recorded, or is
   * gone.
   */
  load<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    position: Position,
    options?: AsOfOptions,
  ): Promise<Loaded<S> | undefined>;
};

type Placed = { readonly tenant: string; readonly project: string; readonly name: string };

/**
 * Whether an object is one of the caller's: every stream that is asked for begins with an event that says where its
 * object
 * lies. Without a place: whether any object of the tenant is.
 */
export type Visible = (tenant: string, placed?: Placed) => boolean;

export type AsOfOptions = {
  readonly signal?: AbortSignal;
  /** Whose streams are wanted, and which of them. Default: any. */
  readonly visible?: Visible;
};

export const createAsOf = ({
  store,
  runner,
  guard,
}: {
  readonly store: Pick<EventStore, 'readStream' | 'currentRevision'>;
  readonly runner: Pick<CommandRunner, 'load'>;
  readonly guard: LeafGuard;
}): AsOf => {
  const read = heldRead((stream, options) => store.readStream(stream, options), guard);

  /** It is as absent as what never was; but not because somebody took its first event out, or gave it to another tenant. */
  const assertAbsent = (
    stream: string,
    first: RecordedEvent | undefined,
    { position, visible }: { readonly position: Position; readonly visible: Visible },
  ): void => {
    const leaf = guard.standing(stream, 0);
    if (leaf === undefined || leaf.position > position || !visible(leaf.tenant)) return;
    if (first === undefined) guard.assertNone(stream, 0, position);
    else guard.assertUnchanged(first);
  };

  return {
    load: async (aggregate, id, position, { signal, visible = () => true } = {}) => {
      const stream = streamName(aggregate.category, id);
      const first = await firstOf(store, stream, signal);
      if (first === undefined || !visible(stringAt(first.data, 'tenant'), placeOf(first))) {
        assertAbsent(stream, first, { position, visible });
        return undefined;
      }
      if (first.position > position) return undefined;
      const asOfRevision = await revisionAt(store, stream, position, signal);
      if (asOfRevision === undefined) return undefined;
      const how = { asOfRevision, read, ...(signal === undefined ? {} : { signal }) };
      const loaded = await runner.load(aggregate, id, how);
      guard.assertNone(stream, asOfRevision + 1, position);
      return loaded;
    },
  };
};

/** Where an object lies, as its first event says. */
const placeOf = ({ data }: RecordedEvent): Placed => ({
  tenant: stringAt(data, 'tenant'),
  project: stringAt(data, 'project'),
  name: stringAt(data, 'name'),
});

/** Undefined also where the stream begins later: its first event was taken out. */
const firstOf = async (
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  signal: AbortSignal | undefined,
): Promise<RecordedEvent | undefined> => {
  const first = await eventAt(store, stream, 0, signal);
  return first?.revision === 0 ? first : undefined;
};

/**
 * Revision of the last event of a stream that is not behind a position, when the first one is not; undefined: there
 * is no
 * event. Looks at as many events as the number of revisions has binary digits.
 */
const revisionAt = async (
  store: Pick<EventStore, 'readStream' | 'currentRevision'>,
  stream: string,
  position: Position,
  signal?: AbortSignal,
): Promise<number | undefined> => {
  const isThere = async (revision: number): Promise<boolean> => {
    const event = await eventAt(store, stream, revision, signal);
    return event !== undefined && event.position <= position;
  };
  const last = await store.currentRevision(stream, signal);
  if (last === 'no_stream') return undefined;
  // Mostly nothing has happened since.
  if (await isThere(last)) return last;
  let [there, behind] = [0, last];
  while (behind - there > 1) {
    const middle = Math.floor((there + behind) / 2);
    if (await isThere(middle)) there = middle;
    else behind = middle;
  }
  return there;
};

/** The event at a revision, or the last one before it where the store holds that revision itself. */
const eventAt = async (
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  revision: number,
  signal: AbortSignal | undefined,
): Promise<RecordedEvent | undefined> => {
  for await (const event of store.readStream(stream, {
    from: revision,
    direction: 'backward',
    limit: 1,
    ...(signal === undefined ? {} : { signal }),
  }))
    return event;
  return undefined;
};
