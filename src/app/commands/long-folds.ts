import type { FoldedStream } from './folded-stream.ts';

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
