/**
 * Disposable per-instance cache of folded streams. Losing it costs time only; a snapshot of another
 * state version, store or history is ignored.
 */
export type Snapshot = {
  readonly stream: string;
  readonly revision: number;
  /** Id of the event at `revision`: proves that the snapshot belongs to the history that is in the log now. */
  readonly eventId: string;
  readonly stateVersion: number;
  /** Structured-cloneable. */
  readonly content: unknown;
};

export type SnapshotStore = {
  load(stream: string): Promise<Snapshot | undefined>;
  /** Returns at once and never throws: writing happens off this thread, and may be dropped under pressure. */
  save(snapshot: Snapshot): void;
  close(): Promise<void>;
};
