import type { DomainEvent } from '../domain/decider.ts';
import { streamName } from '../domain/stream-name.ts';
import type { Aggregate, CommandRunner, Loaded } from './command.ts';
import type { EventStore, Position, RecordedEvent } from './event-store.ts';

/** What streams looked like earlier (design §5): folded again, up to a position. */
export type AsOf = {
  /**
   * The state after everything that had been stored at the position; undefined: the stream was empty, or did not begin as
   * `begun` asks. Of a stream that begins otherwise no more is read than of one that is not there, so that the time that
   * the answer takes does not tell the two apart.
   */
  load<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    position: Position,
    options?: AsOfOptions,
  ): Promise<Loaded<S> | undefined>;
};

export type AsOfOptions = {
  readonly signal?: AbortSignal;
  /** Whether the stream that begins with this event is wanted. Default: any. */
  readonly begun?: (first: RecordedEvent) => boolean;
};

export const createAsOf = ({
  store,
  runner,
}: {
  readonly store: Pick<EventStore, 'readStream' | 'currentRevision'>;
  readonly runner: Pick<CommandRunner, 'load'>;
}): AsOf => ({
  load: async (aggregate, id, position, { signal, begun } = {}) => {
    const stream = streamName(aggregate.category, id);
    const first = await eventAt(store, stream, 0, signal);
    if (first === undefined || begun?.(first) === false || first.position > position) return undefined;
    const asOfRevision = await revisionAt(store, stream, position, signal);
    if (asOfRevision === undefined) return undefined;
    return runner.load(aggregate, id, { asOfRevision, ...(signal === undefined ? {} : { signal }) });
  },
});

/**
 * Revision of the last event of a stream that is not behind a position, when the first one is not; undefined: there is no
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

const eventAt = async (
  store: Pick<EventStore, 'readStream'>,
  stream: string,
  revision: number,
  signal: AbortSignal | undefined,
): Promise<RecordedEvent | undefined> => {
  for await (const event of store.readStream(stream, {
    from: revision,
    limit: 1,
    ...(signal === undefined ? {} : { signal }),
  }))
    return event;
  return undefined;
};
