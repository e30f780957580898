import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { AuditLeaf } from './tree.ts';

/** The events of leaves, in the order of the leaves; undefined for one that the log does not hold (any more). */
export const eventsOf = async (
  { readStream }: Pick<EventStore, 'readStream'>,
  leaves: readonly AuditLeaf[],
  signal?: AbortSignal,
): Promise<readonly (RecordedEvent | undefined)[]> => {
  const found = new Map<string, RecordedEvent>();
  for (const [stream, revisions] of byStream(leaves))
    for (const { from, to } of runsOf(revisions)) {
      const limit = to - from + 1;
      for await (const event of readStream(stream, { from, limit, ...(signal && { signal }) }))
        found.set(`${stream}@${event.revision}`, event);
    }
  return leaves.map(({ record }) => found.get(`${record.stream}@${record.revision}`));
};

const byStream = (leaves: readonly AuditLeaf[]): Map<string, number[]> => {
  const streams = new Map<string, number[]>();
  for (const { record } of leaves) {
    const revisions = streams.get(record.stream);
    if (revisions === undefined) streams.set(record.stream, [record.revision]);
    else revisions.push(record.revision);
  }
  return streams;
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
