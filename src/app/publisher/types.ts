import type { ParkedStream } from '../../domain/bookkeeping/events.ts';
import type { Limits, Outbox } from './outbox.ts';
import type { Parking } from './parking.ts';

export type PublisherSettings = {
  /** What one topic holds in memory, waiting for the brokers. */
  readonly outbox: Limits;
  /**
   * What goes to the brokers at once: less than their `max.message.bytes`, 1 MiB by default, and so little that its
   * encoding does not hold the thread for long, which also answers HTTP.
   */
  readonly batch: Limits;
  /** Records after which, and milliseconds after which at the latest, the position is stored. */
  readonly checkpointRecords: number;
  readonly checkpointMs: number;
  /** First and longest wait after a failure, milliseconds. */
  readonly retryMs: number;
  readonly longestRetryMs: number;
  /** Milliseconds that a send which is under way gets to end when the publisher stops. */
  readonly graceMs: number;
  /**
   * Milliseconds that compacted topics wait when the owner before was not heard of any more: for as long as a request of
   * its own may take. A record of it that came behind ours would be the one that compaction keeps.
   */
  readonly silenceMs: number;
  /** Milliseconds after which a topic without news gives its connection back. */
  readonly idleMs: number;
};

export const PUBLISHER_SETTINGS: PublisherSettings = {
  outbox: { records: 2_000, bytes: 1024 * 1024 },
  batch: { records: 400, bytes: 256 * 1024 },
  checkpointRecords: 4_000,
  checkpointMs: 1_000,
  retryMs: 500,
  longestRetryMs: 30_000,
  graceMs: 2_000,
  silenceMs: 30_000,
  idleMs: 60_000,
};

/** Tests only: called, and waited for, at the named points of a topic. */
export type PublisherFailpoint = (
  point: 'before-send' | 'after-send' | 'before-checkpoint' | 'after-checkpoint',
  topic: string,
) => Promise<void> | void;

/** What the parts of one session share: it ends with its first failure, and the next begins at the checkpoint. */
export type Session = {
  readonly outbox: Outbox;
  readonly parking: Parking;
  readonly signal: AbortSignal;
};

export type RetryOutcome =
  /** All of the stream up to now is with the brokers. */
  | { readonly outcome: 'published'; readonly records: number }
  | { readonly outcome: 'parked'; readonly parked: ParkedStream }
  | { readonly outcome: 'not-parked' }
  /** It ended before that was known; the stream is parked still. */
  | { readonly outcome: 'interrupted' };

/** Milliseconds before the next try: twice as long each time, up to a bound. */
export const waitAfter = (
  failures: number,
  { retryMs, longestRetryMs }: Pick<PublisherSettings, 'retryMs' | 'longestRetryMs'>,
): number => Math.min(longestRetryMs, retryMs * 2 ** Math.min(failures, 16));
