import {
  BEFORE_ALL_CHANGES,
  compareKeys,
  type ChangeKey,
} from '../../../projections/resources/change-reader.ts';
import type { FilterNode } from '../../../projections/filter/ast.ts';
import type { Audience } from './audience.ts';
import type { ApiError } from '../../errors.ts';
import type { Ending } from './endings.ts';
import type { Framing, RenderedChange } from './rendered-change.ts';

/** Where a watcher's bytes go. */
export type Sink = {
  /** Bytes that were given to it and have not left this process. */
  readonly backlog: () => number;
  /** False: `onDrain` will say when everything has left. */
  readonly write: (chunks: readonly Uint8Array[]) => boolean;
  /** Calls back once everything that was written has left; called after a `write` that gave false. */
  readonly onDrain: (listener: () => void) => void;
  /** Ends the answer and says why; what the far side does not take in time is cut. */
  readonly end: (error: ApiError) => void;
};

/** Watchers who see the same and asked for the same: what they get is put together once. */
export type Group = {
  readonly key: string;
  readonly audience: Audience;
  readonly filter: FilterNode | undefined;
  readonly framing: Framing;
  /** Those who get what comes; the others still read what was. */
  readonly live: Set<Watcher>;
  /** All of them. */
  size: number;
};

export type Watcher = {
  readonly group: Group;
  readonly sink: Sink;
  /** Everything up to here has been dealt with; of a live watcher at least, see `Tail.reached`. */
  after: ChangeKey;
  /** The last event that it was sent; at first where it began. */
  last: ChangeKey;
  /** Monotonic milliseconds of the last write; of one that does not take what it was sent, since when. */
  lastWriteMs: number;
  state: 'reading' | 'waiting' | 'live' | 'ended';
};

/** What of these changes the group gets; undefined: nothing. */
export const chunkFor = (
  { audience, filter, framing }: Group,
  changes: readonly RenderedChange[],
): { readonly chunks: readonly Uint8Array[]; readonly last: ChangeKey } | undefined => {
  const frames: Uint8Array[] = [];
  let last: ChangeKey | undefined;
  for (const change of changes) {
    if (!change.concerns(audience, filter)) continue;
    frames.push(change.frame(audience.surface, framing));
    last = change;
  }
  return last === undefined
    ? undefined
    : { chunks: framing === 'grpc' ? frames : joined(frames), last: keyOf(last) };
};

/** As one chunk. Most often there is one, which all groups share. */
const joined = (frames: readonly Uint8Array[]): readonly Uint8Array[] =>
  frames.length === 1 ? frames : [Buffer.concat(frames)];

/** Only the key: a rendered change holds its whole document. */
const keyOf = ({ position, n }: ChangeKey): ChangeKey => ({ position, n });

export const endOf = ({ last }: Watcher, ending: Ending, formatId: (key: ChangeKey) => string): ApiError =>
  ending(compareKeys(last, BEFORE_ALL_CHANGES) === 0 ? undefined : formatId(last));
