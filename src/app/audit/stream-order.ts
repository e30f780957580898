import { LogDamaged, type DamagedAt, type RecordedEvent } from '../log/event-store.ts';

type OutOfOrderAt = DamagedAt & {
  /** What is wrong in front of the event, which is itself what it was: a sentence. */
  readonly why: string;
};

/**
 * Undefined where an event follows the last one of its stream, which the log gave before it. What does not follow was
 * taken out, put in or moved beneath the service: no store gives revisions with a gap, or twice.
 *
 * @param last revision of that one; undefined for the first event of a stream
 */
export const outOfOrder = (
  { stream, revision, position }: Pick<RecordedEvent, 'stream' | 'revision' | 'position'>,
  last: number | undefined,
): LogDamaged | undefined => {
  const expected = (last ?? -1) + 1;
  if (revision === expected) return undefined;
  const event = `${stream}@${revision}`;
  const what =
    revision > expected
      ? `the event ${stream}@${expected} is missing in the log, or was moved: ${event} stands`
      : `the event ${event} was put in or moved: it stands behind ${stream}@${last}`;
  const why = `${what} at position ${position}`;
  const at: OutOfOrderAt = { event, position, why };
  return new LogDamaged(why, at);
};

/** What is wrong, where it is not the event itself. Also of what came from another thread. */
export const whyOutOfOrder = (at: DamagedAt | undefined): string | undefined =>
  at !== undefined && 'why' in at && typeof at.why === 'string' ? at.why : undefined;
