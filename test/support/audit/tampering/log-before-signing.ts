import type { RecordedEvent } from '../../../../src/app/log/event-store.ts';
import type { Draw } from './bundle.ts';

/** A log that was tampered with before it was signed: all signatures are over what it is now. */
export type TamperedLog = {
  readonly what: string;
  readonly events: readonly RecordedEvent[];
};

/** Takes an event out, puts one in a second time (as it is, or by another id), or turns two round. */
export const tamperBefore = (events: readonly RecordedEvent[], { kind, a, b, bit }: Draw): TamperedLog => {
  const [i, j] = [a % events.length, b % events.length];
  const [one, two] = [events[i] as RecordedEvent, events[j] as RecordedEvent];
  const done = (what: string, changed: readonly RecordedEvent[]): TamperedLog => ({
    what,
    // As a store gives them: places in the log follow each other, whatever was done.
    events: changed.map((event, n) => ({ ...event, position: String(2 * n + 1).padStart(16, '0') })),
  });
  switch (kind % 5) {
    case 0:
      return done(`event ${i} dropped`, events.toSpliced(i, 1));
    case 1:
      return done(`events ${i} and ${j} swapped`, events.with(i, two).with(j, one));
    case 2:
      return done(`event ${j} again at ${i}`, events.toSpliced(i, 0, two));
    case 3:
      return done(
        `event ${j} by another id at ${i}`,
        events.toSpliced(i, 0, { ...two, id: `forged ${bit}` }),
      );
    default:
      return done(`event ${i} with the id of ${j}`, events.with(i, { ...one, id: two.id }));
  }
};

/**
 * The first place at which a list of events shows by itself that it is not what was written, and the event that tells
 * it; undefined where it does not.
 *
 * @param isWhole whether all events of every stream are in it: else one may be elsewhere
 */
export const firstOddPlace = (events: readonly RecordedEvent[], isWhole: boolean): number | undefined => {
  const place = events.findIndex(({ stream, revision, id }, n) => {
    const before = events.slice(0, n);
    const revisions = before.filter((event) => event.stream === stream).map((event) => event.revision);
    const isBehind = revisions.every((known) => known < revision);
    const follows = isWhole ? revision === revisions.length : true;
    return !isBehind || !follows || before.some((event) => event.id === id);
  });
  return place < 0 ? undefined : place;
};
