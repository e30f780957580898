import { LogDamaged, type EventStore, type RecordedEvent } from '../log/event-store.ts';
import { leafHashOf, leafOf } from './merkle/leaf.ts';
import type { AuditLeaf } from './tree.ts';

/** The events of leaves, in the order of the leaves; undefined for one that the log does not hold (any more). */
export const eventsOf = async (
  { readStream }: Pick<EventStore, 'readStream'>,
  leaves: readonly AuditLeaf[],
  signal?: AbortSignal,
): Promise<readonly (RecordedEvent | undefined)[]> => {
  const found = new Map<string, RecordedEvent>();
  for (const [stream, each] of Map.groupBy(leaves, ({ record }) => record.stream))
    for (const { from, to } of runsOf(each.map(({ record }) => record.revision))) {
      const limit = to - from + 1;
      for await (const event of readStream(stream, { from, limit, ...(signal && { signal }) }))
        found.set(`${stream}@${event.revision}`, event);
    }
  return leaves.map(({ record }) => found.get(`${record.stream}@${record.revision}`));
};

/** Revisions that are read in one go: those that follow each other. */
const runsOf = (revisions: readonly number[]): readonly { readonly from: number; readonly to: number }[] => {
  const runs: { from: number; to: number }[] = [];
  for (const revision of revisions.toSorted((left, right) => left - right)) {
    const last = runs.at(-1);
    if (last !== undefined && revision <= last.to + 1) last.to = revision;
    else runs.push({ from: revision, to: revision });
  }
  return runs;
};

/** The log holds another event at the place of a leaf than the one that the tree was made of, or none. */
export class ChangedEvent extends LogDamaged {
  override readonly name = 'ChangedEvent';
  /** Number of the leaf. */
  readonly place: number;
  constructor(
    { index, position, record }: AuditLeaf,
    what: 'is missing in the log' | 'is not what it was when it was recorded',
  ) {
    const event = `${record.stream}@${record.revision}`;
    super(`the event ${event} at position ${position}, leaf ${index} of the audit tree, ${what}`, {
      event,
      position,
    });
    this.place = index;
  }
}

/** Throws ChangedEvent unless the event hashes to the leaf. `hash`: as the tree holds it; default: that of its record. */
export const assertUnchanged = (
  leaf: AuditLeaf,
  event: RecordedEvent | undefined,
  hash: Buffer = leafHashOf(leaf.record),
): void => {
  if (event === undefined) throw new ChangedEvent(leaf, 'is missing in the log');
  if (!leafHashOf(leafOf(event)).equals(hash))
    throw new ChangedEvent(leaf, 'is not what it was when it was recorded');
};

/** Milliseconds that hashing has the thread at a time; one event adds at most its own 1 MiB, about 10 ms. */
const SLICE_MS = 5;

/** `eventsOf` for what is shown beside its leaf. Throws ChangedEvent; an event that is gone is undefined. */
export const unchangedEventsOf = async (
  store: Pick<EventStore, 'readStream'>,
  leaves: readonly AuditLeaf[],
  rest: () => Promise<void>,
  signal?: AbortSignal,
): Promise<readonly (RecordedEvent | undefined)[]> => {
  const events = await eventsOf(store, leaves, signal);
  let since = performance.now();
  for (const [at, leaf] of leaves.entries()) {
    const event = events[at];
    if (event !== undefined) assertUnchanged(leaf, event);
    if (performance.now() - since < SLICE_MS) continue;
    await rest();
    since = performance.now();
  }
  return events;
};
