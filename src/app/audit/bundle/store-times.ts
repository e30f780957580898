import type { RecordedEvent } from '../../log/event-store.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Findings } from './findings.ts';

/** So far the clock of who signs may be from that of the store, also after a restart has set one of them anew. */
export const MOST_SKEW_MS = 5 * 60_000;

/** A size that was signed, and how it is called. */
export type Signed = { readonly what: string; readonly checkpoint: Checkpoint };

/** An event whose time or place in the log is compared; `place`: in the tree. */
export type PlacedEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'recordedAt' | 'position'> & {
  readonly place: number;
};

/**
 * Recorded times and positions are no part of a leaf, so that no root tells of them. But a checkpoint says when it was
 * signed and at which position: what it covers was recorded before, what came behind it later.
 */
export const checkTime = (
  event: PlacedEvent,
  { below, above }: { readonly below: Signed | undefined; readonly above: Signed | undefined },
  findings: Findings,
): void => {
  const at = Date.parse(event.recordedAt);
  const wrong = (message: string): void =>
    findings.add({ code: 'time', place: event.place, event: nameOf(event), message });
  const when = ({ what, checkpoint }: Signed): string =>
    `${what} of size ${checkpoint.size} was signed (${checkpoint.time})`;
  if (Number.isNaN(at)) wrong('the time at which it was recorded is none');
  else if (above !== undefined && at > Date.parse(above.checkpoint.time) + MOST_SKEW_MS)
    wrong(`it says that it was recorded at ${event.recordedAt}, later than ${when(above)}`);
  else if (below !== undefined && at < Date.parse(below.checkpoint.time) - MOST_SKEW_MS)
    wrong(`it says that it was recorded at ${event.recordedAt}, earlier than ${when(below)}`);
};

/** `event`: the last one that the checkpoint covers. */
export const checkPosition = (
  { what, checkpoint }: Signed,
  event: PlacedEvent | undefined,
  findings: Findings,
): void => {
  if (event === undefined || event.position === checkpoint.position) return;
  findings.add({
    code: 'order',
    place: event.place,
    event: nameOf(event),
    message: `it stands at position ${event.position} of the store; when ${what} was signed it stood at ${checkpoint.position}`,
  });
};

const nameOf = ({ stream, revision }: PlacedEvent): string => `${stream}@${revision}`;
