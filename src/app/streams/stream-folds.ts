import { LRUCache } from 'lru-cache';
import type { JsonValue } from '../../domain/json.ts';
import type { ReadForward, RecordedEvent } from '../log/event-store.ts';

/** Streams folded to any of their revisions, so that a mapper needs no read model and gives the same for the same event. */
export type StreamFolds<State> = {
  /** The stream as it was before this event: at once when it is in memory. Rejects with StoreUnavailable when it cannot be read. */
  readonly before: (event: RecordedEvent) => Folded<State> | Promise<Folded<State>>;
  /** What is made of it: at once when it is there. Rejects, and never throws. */
  readonly use: <Result>(
    event: RecordedEvent,
    make: (before: Folded<State>) => Result,
  ) => Result | Promise<Result>;
  /** Folds the event itself, and remembers the result. */
  readonly apply: (before: Folded<State>, event: RecordedEvent) => State;
};

/**
 * `size`: about how many characters of JSON the state stands for. Events hold whole documents, or what was ordered at the
 * beginning, so that the largest one tells it.
 */
export type Folded<State> = { readonly state: State; readonly size: number };

/** Folded streams in memory, shared by all mappers of one publisher; what was not used for longest leaves first. */
export type FoldMemory = LRUCache<string, Remembered>;
type Remembered = Folded<unknown> & { readonly revision: number };

export type FoldMemoryOptions = {
  /** Most streams. Default 20,000. */
  readonly streams?: number;
  /** Most characters of JSON that the states stand for, about. Default 32 Mi; in memory that is a few times as much. */
  readonly characters?: number;
};

const MEBI = 1024 * 1024;
/** What an entry takes beside its state. */
const ENTRY = 200;

export const createFoldMemory = ({
  streams = 20_000,
  characters = 32 * MEBI,
}: FoldMemoryOptions = {}): FoldMemory =>
  new LRUCache<string, Remembered>({
    max: streams,
    maxSize: characters,
    sizeCalculation: ({ size }) => size + ENTRY,
  });

export type StreamFoldsOptions<State> = {
  /** Tells the states of this fold apart from others of the same streams. */
  readonly name: string;
  readonly memory: FoldMemory;
  readonly initial: () => State;
  readonly fold: (state: State, event: RecordedEvent) => State;
  readonly readStream: ReadForward;
  /** Asked after each event of a stream that is read anew, and waited for: such a fold may be long. */
  readonly turn: () => Promise<void> | undefined;
};

export const createStreamFolds = <State>({
  name,
  memory,
  initial,
  fold,
  readStream,
  turn,
}: StreamFoldsOptions<State>): StreamFolds<State> => {
  const keyOf = (stream: string): string => `${name} ${stream}`;
  const next = ({ state, size }: Folded<State>, event: RecordedEvent): Folded<State> => ({
    state: fold(state, event),
    size: Math.max(size, lengthOf(event.data)),
  });
  const readFrom = async (
    stream: string,
    first: number,
    limit: number,
    from: Folded<State>,
  ): Promise<Folded<State>> => {
    let folded = from;
    for await (const event of readStream(stream, { from: first, limit })) {
      folded = next(folded, event);
      await turn();
    }
    return folded;
  };
  const before: StreamFolds<State>['before'] = ({ stream, revision }) => {
    // Under this name there are only states of this fold.
    const known = memory.get(keyOf(stream)) as (Folded<State> & { readonly revision: number }) | undefined;
    // What is kept is newer than the event when events come again: then the stream is folded anew.
    const from = known !== undefined && known.revision < revision ? known : undefined;
    const first = (from?.revision ?? -1) + 1;
    const folded: Folded<State> = from ?? { state: initial(), size: 0 };
    return first === revision ? folded : readFrom(stream, first, revision - first, folded);
  };
  return {
    before,
    use: (event, make) => {
      const known = before(event);
      if (known instanceof Promise) return known.then(make);
      try {
        return make(known);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    apply: (before, event) => {
      const { state, size } = next(before, event);
      memory.set(keyOf(event.stream), { revision: event.revision, state, size });
      return state;
    },
  };
};

/** About as many characters as the JSON text has, without making it. */
export const lengthOf = (value: JsonValue | undefined): number => {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return SCALAR;
  let length = 2;
  if (Array.isArray(value)) for (const item of value as readonly JsonValue[]) length += lengthOf(item) + 1;
  else for (const [name, item] of Object.entries(value)) length += name.length + 4 + lengthOf(item);
  return length;
};
const SCALAR = 5;
