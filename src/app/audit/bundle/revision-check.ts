import type { RecordedEvent } from '../../event-store.ts';
import type { Findings } from './findings.ts';

/** Revisions of every stream are gap-free: that names what was taken out, put in or moved. */
export const createRevisionCheck = (findings: Findings) => {
  const last = new Map<string, number>();
  return ({ stream, revision }: RecordedEvent, place: number): void => {
    const expected = (last.get(stream) ?? -1) + 1;
    last.set(stream, Math.max(revision, expected - 1));
    if (revision === expected) return;
    findings.add(
      revision > expected
        ? {
            code: 'missing-event',
            place,
            event: `${stream}@${expected}`,
            message: `this event is missing: ${stream}@${revision} stands where it should be`,
          }
        : {
            code: 'order',
            place,
            event: `${stream}@${revision}`,
            message: 'this event stands behind a later one of its stream',
          },
    );
  };
};
