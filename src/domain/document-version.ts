import type { JsonObject } from './json.ts';

/**
 * OSAC's `metadata.version`: the number of appends that changed the document, minus one. One append
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

/** What the registry says of an event's type; absent means that it changes the document, and does not begin it. */
export type VersionedType = { readonly changesDocument?: boolean; readonly begins?: true };

/** Folds one event. `type`: undefined is one of a newer release. */
export const countVersion = (
  before: DocumentVersion,
  commandId: string,
  { changesDocument: changes = true, begins }: VersionedType = {},
): DocumentVersion => {
  if (begins === true) return { version: 0, commandId, counted: true };
  const counted = before.commandId === commandId && before.counted;
  if (!changes || counted) {
    return before.commandId === commandId ? before : { version: before.version, commandId, counted: false };
  }
  return { version: before.version + 1, commandId, counted: true };
};

/** `metadata.version` is left out while it is 0, as OSAC's JSON leaves out every default. */
export const privateDocument = (document: JsonObject, version: number): JsonObject => {
  if (version === 0) return document;
  const metadata = document['metadata'] as JsonObject | undefined;
  return { ...document, metadata: { ...metadata, version } };
};
