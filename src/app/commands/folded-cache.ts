import { LRUCache } from 'lru-cache';
import type { FoldedStream } from './folded-stream.ts';

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
