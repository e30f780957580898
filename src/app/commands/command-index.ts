import type { EventStore, Position } from '../log/event-store.ts';
import { commandOf, type FoldedStream, type PastAppend } from './folded-stream.ts';

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
