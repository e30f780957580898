import { LogReplaced, type EventStore, type Position, type RecordedEvent } from './event-store.ts';

/** The last event that a reader of the log has taken in: while it stands where it stood, the log is the same one. */
export type Anchor = Pick<RecordedEvent, 'position' | 'id'>;

/** Undefined for a record of a bounded stream (`sys-*`): it leaves the log in time, and would then prove nothing. */
export const anchorOf = ({
  stream,
  position,
  id,
}: Pick<RecordedEvent, 'stream' | 'position' | 'id'>): Anchor | undefined =>
  stream.startsWith('sys-') ? undefined : { position, id };

/**
 * Where to subscribe for a reader that kept an anchor: behind it; undefined: from the beginning. The reader may have got
 * further, but what lay there was none of its events, and in a log that was restored and written on it may be one now.
 * Throws LogReplaced when another event stands at the anchor, or none.
 */
export const resumeAfter = async (
  log: Pick<EventStore, 'idAt'>,
  anchor: Anchor | undefined,
  signal?: AbortSignal,
): Promise<Position | undefined> => {
  if (anchor === undefined) return undefined;
  const { position, id } = anchor;
  const found = await log.idAt(position, signal);
  if (found === id) return position;
  throw new LogReplaced(
    `the log was replaced: position ${position} held event ${id} and now holds ${found === undefined ? 'none' : `event ${found}`}`,
  );
};

/** What a subscription says of its own position proves nothing yet; the next start looks at the anchor. */
export const unproved = (error: unknown): unknown =>
  error instanceof LogReplaced ? new Error(error.message, { cause: error }) : error;
