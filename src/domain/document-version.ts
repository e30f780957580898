/**
 * OSAC's `metadata.version` (osac-api.md §5): the number of appends that changed the document, minus one. One append
 * is a run of events with the same command id; it counts once, and only when one of its events changes the document.
 * The command runner and the read models fold it with this function, so that both always agree.
 */
export type DocumentVersion = {
  /** -1 before the first append that changes the document. */
  readonly version: number;
  /** Command id of the last event seen. */
  readonly commandId: string;
  /** True when the append of that command has been counted already. */
  readonly counted: boolean;
};

export const NO_VERSION: DocumentVersion = { version: -1, commandId: '', counted: false };

/** Folds one event. `changes` is the registry entry's `changesDocument` (absent means true). */
export const countVersion = (
  before: DocumentVersion,
  commandId: string,
  changes: boolean,
): DocumentVersion => {
  const counted = before.commandId === commandId && before.counted;
  if (!changes || counted) {
    return before.commandId === commandId ? before : { version: before.version, commandId, counted: false };
  }
  return { version: before.version + 1, commandId, counted: true };
};
