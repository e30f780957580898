import type { FoldRequest, FoldedStream } from '../../app/commands/loaded-streams.ts';

/** Between `createWorkerFolds` and its thread. */
export type FoldWorkerData = {
  /** URL of a module that exports `openFolding(config)`, see `Folding`: adapters know neither stores nor aggregates. */
  readonly module: string;
  /** Plain JSON. */
  readonly config: unknown;
};

/** What the worker needs: who folds, and from where. */
export type Folding = {
  fold(request: FoldRequest): Promise<FoldedStream<unknown>>;
  close(): Promise<void>;
};

export type ToFoldWorker =
  | { readonly kind: 'fold'; readonly call: number; readonly request: FoldRequest }
  | { readonly kind: 'close' };
export type FromFoldWorker =
  | { readonly kind: 'folded'; readonly call: number; readonly folded: FoldedStream<unknown> }
  | { readonly kind: 'failed'; readonly call: number; readonly problem: string };
