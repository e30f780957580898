import { createCheckpoint, type Checkpoint } from '../log/checkpoint.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore, type Position } from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { TopicStream } from '../streams/stream.ts';
import { createCourier } from './courier.ts';
import { createOutbox } from './outbox.ts';
import type { LogPages } from './log-pages.ts';
import { createParking, TakenOver } from './parking.ts';
import { isAnother } from './written-ends.ts';
import { KafkaFault, type KafkaProducers } from './ports.ts';
import { createReader, type Reader } from './reader.ts';
import type { TopicsReady } from './topic-check.ts';
import { TopicIsNew } from './recreated-topic.ts';
import type { Trouble } from './trouble.ts';
import { topicErrorOf, type TopicError, type TopicStatus, type Trying } from './topic-status.ts';
import {
  waitAfter,
  type PublisherFailpoint,
  type PublisherSettings,
  type RetryOutcome,
  type Session,
} from './types.ts';

/** A send is tried for half a minute before it fails: a topic that gets nothing rid for so long is held up already. */
const SLOW_SECONDS = 3;

/** What ends a session and needs nobody: the next one begins at the checkpoint. */
const PASSING = [KafkaFault, StoreUnavailable, OutcomeUnknown, TakenOver, TopicIsNew];

export type TopicPublisherOptions = {
  readonly stream: TopicStream;
  readonly store: EventStore;
  readonly producers: KafkaProducers;
  readonly check: TopicsReady;
  readonly settings: PublisherSettings;
  readonly graceMs: () => number;
  /** Milliseconds before a compacted topic begins. */
  readonly silenceMs: number;
  /** Somebody else has written what only the owner writes: this instance is not the owner any more. */
  readonly takenOver: () => void;
  /** Shared by all topics, like `turn`. */
  readonly trouble: Trouble;
  /** Told when it is filled from the beginning of the log again. */
  readonly refilled: (topic: string) => void;
  /** See `createTurns`: shared by all topics. */
  readonly turn: () => Promise<void> | undefined;
  /** Shared by all topics. */
  readonly pages: LogPages;
  readonly hooks?: { readonly published?: (topic: string, records: number) => void };
  /** Tests only. */
  readonly failpoint?: PublisherFailpoint;
} & Runtime;

/** One topic while this instance owns the publisher. */
export type TopicPublisher = {
  readonly name: string;
  /** Until the signal is aborted; then nothing of it runs any more. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  status(): TopicStatus;
  /** Maps a parked stream anew. Resolves when the brokers have it, or it is parked again. */
  retry(stream: string): Promise<RetryOutcome>;
};

/** `between`: no session runs; the last one has failed, or the first one has not begun. */
type Phase =
  | { readonly is: 'standby' | 'between' }
  | { readonly is: 'publishing'; readonly session: Session; readonly reader: Reader };
const NOTHING_RUNS = { session: undefined, reader: undefined };

/** The last error also after it was overcome. */
type Health = { readonly is: 'fine' | 'waiting' | 'failed'; readonly lastError: TopicError | undefined };

/** `isTold`: a try on the way has told what is wrong. */
type Sending = Trying & { readonly sinceMs: number; readonly isTold: boolean };

/**
 * The topic was found empty and is filled from the beginning of the log again, which may not be stored yet. `upTo`: how far
 * it was published to before; undefined: not known.
 */
type Refill = { readonly since: string; readonly upTo: Position | undefined; readonly isStored: boolean };

export const createTopicPublisher = (options: TopicPublisherOptions): TopicPublisher => {
  const { stream, store, clock, timers, ids, instance, logger, settings, trouble } = options;
  const { name } = stream.topic;
  let phase: Phase = { is: 'standby' };
  let health: Health = { is: 'fine', lastError: undefined };
  let sending: Sending | undefined;
  let refill: Refill | undefined;
  /** What the last session left. */
  let left: Pick<TopicStatus, 'position' | 'parked'> = { position: undefined, parked: [] };
  let confirmed: Pick<TopicStatus, 'sent' | 'confirmedAt' | 'published'> = {
    sent: 0,
    confirmedAt: undefined,
    published: false,
  };

  const isFilling = (reached: Position | undefined): boolean =>
    refill?.upTo !== undefined && (reached === undefined || reached < refill.upTo);

  const failed = (error: unknown, is: 'waiting' | 'failed'): TopicError => {
    const lastError = topicErrorOf(error, clock.now());
    trouble.has(name, lastError);
    health = { is, lastError };
    return lastError;
  };

  const courier = createCourier({
    ...options,
    events: {
      trying: (records) => {
        const before = sending ?? {
          since: clock.now(),
          sinceMs: clock.monotonicMs(),
          attempt: 0,
          failed: 0,
          problem: undefined,
        };
        const next = { ...before, records, attempt: before.attempt + 1, isTold: false };
        sending = records === 0 ? undefined : next;
      },
      trouble: (problem) => {
        sending &&= { ...sending, failed: sending.failed + 1, problem, isTold: true };
      },
      failed: (error) => {
        const { message } = failed(error, isOtherHistory(error) ? 'failed' : 'waiting');
        // Of one that failed at last the tries on the way were told.
        sending &&= { ...sending, failed: sending.failed + (sending.isTold ? 0 : 1), problem: message };
      },
      sent: (records) => {
        if (health.is !== 'fine') trouble.over(name);
        health = { ...health, is: 'fine' };
        sending = undefined;
        confirmed = { sent: confirmed.sent + records, confirmedAt: clock.now(), published: true };
        options.hooks?.published?.(name, records);
      },
    },
  });

  /**
   * Stored before anything is filled: whoever goes on after a crash finds a topic that holds something, and could not know.
   * Whoever has taken over is told, too: it cannot store its position any more, and begins anew.
   */
  const storeNew = async (checkpoint: Checkpoint): Promise<void> => {
    const isOwner = await checkpoint.save(undefined);
    if (!isOwner) {
      await checkpoint.load();
      if (!(await checkpoint.save(undefined))) throw new TakenOver(`sys-kafka-${name}`);
    }
    refill &&= { ...refill, isStored: true };
    if (!isOwner) throw new TakenOver(`sys-kafka-${name}`);
  };

  /** Not known: no. The next look tells. */
  const isAnotherNow = async (): Promise<boolean> => {
    // What is sent meanwhile may lie behind the end that is answered.
    const places = courier.places();
    try {
      return isAnother(await options.check.endsOf(name), places);
    } catch (error) {
      if (error instanceof KafkaFault) return false;
      throw error;
    }
  };

  const session = async (signal: AbortSignal): Promise<void> => {
    const checkpoint = createCheckpoint({ store, name: `kafka-${name}`, clock, ids, instance });
    const parking = createParking({ store, topic: name, clock, ids, instance });
    await parking.load(signal);
    const stored = await checkpoint.load(signal);
    const after = refill?.isStored === false ? undefined : stored;
    if (refill?.isStored === false) await storeNew(checkpoint);
    left = { ...left, position: after };
    const stop = new AbortController();
    const own: Session = {
      outbox: createOutbox(settings.outbox),
      parking,
      signal: AbortSignal.any([signal, stop.signal]),
    };
    const reader = createReader({ ...options, session: own, after });
    const sentBefore = confirmed.sent;
    const wasSent = after !== undefined && !checkpoint.isUnsent();
    confirmed = { ...confirmed, published: confirmed.published || wasSent };
    /**
     * What is sent looks for itself. A topic of which nothing new comes would stay without its history, and be called live.
     */
    const emptied = async (): Promise<void> => {
      while (!own.signal.aborted) {
        const looked = options.check.looked();
        const goesOn = wasSent || confirmed.sent > sentBefore;
        // Asked anew: what was sent since the look may have been the first.
        const ends = options.check.lastEnds(name);
        const mayBe = goesOn && sending === undefined && ends !== undefined;
        if (mayBe && isAnother(ends, courier.places()) && (await isAnotherNow())) throw new TopicIsNew(name);
        await aborted(AbortSignal.any([own.signal, looked]));
      }
    };
    phase = { is: 'publishing', session: own, reader };
    const failures: unknown[] = [];
    /** The first failure ends the other part, too; what that one says then means nothing. */
    const part = async (work: Promise<void>): Promise<void> => {
      try {
        await work;
      } catch (error) {
        failures.push(error);
      } finally {
        stop.abort();
      }
    };
    await Promise.all([
      part(reader.run()),
      part(courier.run(own, checkpoint, { after, wasSent, places: checkpoint.places() })),
      part(emptied()),
    ]);
    left = { parked: parking.list(), position: own.outbox.reached() ?? left.position };
    phase = { is: 'between' };
    const anew = failures.find((error) => error instanceof TopicIsNew);
    if (anew !== undefined) {
      const upTo = farther(left.position, isFilling(left.position) ? refill?.upTo : undefined);
      refill = { since: clock.now(), upTo, isStored: false };
      options.refilled(name);
      await storeNew(checkpoint);
      throw anew;
    }
    if (failures.length > 0) throw failures[0];
  };

  return {
    name,
    run: async (signal) => {
      phase = { is: 'between' };
      if (stream.topic.cleanup === 'compact') await pause(timers, options.silenceMs, signal);
      for (let failures = 0; !signal.aborted; failures += 1) {
        const began = clock.monotonicMs();
        try {
          await session(signal);
        } catch (error) {
          if (signal.aborted) break;
          if (error instanceof TakenOver) options.takenOver();
          if (error instanceof TopicIsNew) continue;
          if (clock.monotonicMs() - began > settings.longestRetryMs) failures = 0;
          const passing = PASSING.some((kind) => error instanceof kind);
          const isNews =
            health.is !== 'failed' || health.lastError?.message !== topicErrorOf(error, '').message;
          failed(error, passing ? 'waiting' : 'failed');
          if (isNews && !passing)
            logger.error({ err: error, topic: name }, 'topic of the publisher broke down');
        }
        await pause(timers, waitAfter(failures, settings), signal);
      }
      phase = { is: 'standby' };
      sending = undefined;
    },
    status: () => {
      const { session: own, reader } = phase.is === 'publishing' ? phase : NOTHING_RUNS;
      const oldest = own?.outbox.head({ records: 1, bytes: 1 })[0];
      const lagSince = oldest?.recordedAt ?? reader?.behindSince();
      const now = Date.parse(clock.now());
      const lagSeconds = lagSince === undefined ? 0 : Math.max(0, (now - Date.parse(lagSince)) / 1000);
      const atEnd = reader?.caughtUp() === true;
      const calm = !atEnd ? 'catching-up' : lagSeconds > SLOW_SECONDS ? 'waiting' : 'live';
      const isStuck =
        sending !== undefined &&
        (sending.problem !== undefined || clock.monotonicMs() - sending.sinceMs > SLOW_SECONDS * 1000);
      const going = health.is !== 'fine' ? health.is : isStuck ? 'waiting' : calm;
      const reached = own?.outbox.reached() ?? left.position;
      return {
        topic: name,
        state: phase.is === 'standby' ? 'standby' : going,
        position: reached,
        waitingEvents: own?.outbox.size().parcels ?? 0,
        waitingRecords: own?.outbox.size().records ?? 0,
        isMoreWaiting: phase.is !== 'standby' && !atEnd,
        waitingSince: lagSince,
        lagSeconds,
        ...confirmed,
        fillingSince: isFilling(reached) ? refill?.since : undefined,
        trying: shown(sending),
        lastError: health.lastError,
        parked: own?.parking.list() ?? left.parked,
      };
    },
    retry: async (parkedStream) =>
      phase.is === 'publishing' ? phase.reader.retry(parkedStream) : { outcome: 'not-parked' },
  };
};

const farther = (left: Position | undefined, right: Position | undefined): Position | undefined =>
  (left ?? '') < (right ?? '') ? right : left;

const isOtherHistory = (error: unknown): boolean =>
  error instanceof KafkaFault && error.reason === 'other-history';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const shown = (sending: Sending | undefined): Trying | undefined => {
  if (sending === undefined) return undefined;
  const { sinceMs: _sinceMs, isTold: _isTold, ...trying } = sending;
  return trying;
};
