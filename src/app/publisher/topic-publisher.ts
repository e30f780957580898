import type { ParkedStream } from '../../domain/bookkeeping/events.ts';
import { createCheckpoint, type Checkpoint } from '../checkpoint.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore, type Position } from '../event-store.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { TopicStream } from '../streams/stream.ts';
import { createCourier } from './courier.ts';
import { createOutbox } from './outbox.ts';
import type { LogPages } from './log-pages.ts';
import { createParking, TakenOver } from './parking.ts';
import { isAnother } from './places.ts';
import { KafkaFault, type KafkaProducers } from './ports.ts';
import { createReader, type Reader } from './reader.ts';
import type { TopicsReady } from './topic-check.ts';
import { TopicIsNew } from './topic-is-new.ts';
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

export const createTopicPublisher = (options: TopicPublisherOptions): TopicPublisher => {
  const { stream, store, clock, timers, ids, instance, logger, settings, trouble } = options;
  const { name } = stream.topic;
  let running: { session: Session; reader: Reader } | undefined;
  let active = false;
  let lastError: TopicError | undefined;
  let failing: 'waiting' | 'failed' | undefined;
  let position: Position | undefined;
  let sent = 0;
  let confirmedAt: string | undefined;
  let trying: (Trying & { readonly sinceMs: number }) | undefined;
  let parkedBefore: readonly ParkedStream[] = [];
  let published = false;
  /** Up to where it was published to before it was found empty. */
  let filling: { readonly since: string; readonly upTo: Position } | undefined;

  const isFilling = (reached: Position | undefined): boolean =>
    filling !== undefined && (reached === undefined || reached < filling.upTo);

  const failed = (error: unknown, state: 'waiting' | 'failed'): void => {
    const next = topicErrorOf(error, clock.now());
    trouble.has(name, next);
    failing = state;
    lastError = next;
  };
  /** Of one that failed at last the tries on the way were told. */
  const failedOnce = (wasTold: boolean): void => {
    if (trying !== undefined && !wasTold) trying = { ...trying, failed: trying.failed + 1 };
  };
  let isTold = false;
  const recovered = (): void => {
    if (failing !== undefined) trouble.over(name);
    failing = undefined;
  };

  const courier = createCourier({
    ...options,
    events: {
      trying: (records) => {
        if (records === 0) {
          trying = undefined;
          return;
        }
        isTold = false;
        trying = {
          records,
          since: trying?.since ?? clock.now(),
          sinceMs: trying?.sinceMs ?? clock.monotonicMs(),
          attempt: (trying?.attempt ?? 0) + 1,
          failed: trying?.failed ?? 0,
          problem: trying?.problem,
        };
      },
      trouble: (problem) => {
        isTold = true;
        if (trying !== undefined) trying = { ...trying, failed: trying.failed + 1, problem };
      },
      failed: (error) => {
        failed(error, isOtherHistory(error) ? 'failed' : 'waiting');
        failedOnce(isTold);
        if (trying !== undefined) trying = { ...trying, problem: lastError?.message };
      },
      sent: (records) => {
        recovered();
        trying = undefined;
        confirmedAt = clock.now();
        published = true;
        sent += records;
        options.hooks?.published?.(name, records);
      },
    },
  });

  /** The topic has to be filled from the beginning of the log, and that is not stored yet. */
  let isNew = false;

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
    isNew = false;
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
    const after = isNew ? undefined : stored;
    if (isNew) await storeNew(checkpoint);
    position = after;
    const stop = new AbortController();
    const own: Session = {
      outbox: createOutbox(settings.outbox),
      parking,
      signal: AbortSignal.any([signal, stop.signal]),
    };
    const reader = createReader({ ...options, session: own, after });
    const sentBefore = sent;
    const wasSent = after !== undefined && !checkpoint.isUnsent();
    published ||= wasSent;
    /**
     * What is sent looks for itself. A topic of which nothing new comes would stay without its history, and be called live.
     */
    const emptied = async (): Promise<void> => {
      while (!own.signal.aborted) {
        const looked = options.check.looked();
        const goesOn = wasSent || sent > sentBefore;
        // Asked anew: what was sent since the look may have been the first.
        const ends = options.check.lastEnds(name);
        const mayBe = goesOn && trying === undefined && ends !== undefined;
        if (mayBe && isAnother(ends, courier.places()) && (await isAnotherNow())) throw new TopicIsNew(name);
        await aborted(AbortSignal.any([own.signal, looked]));
      }
    };
    running = { session: own, reader };
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
    parkedBefore = parking.list();
    position = own.outbox.reached() ?? position;
    running = undefined;
    const anew = failures.find((error) => error instanceof TopicIsNew);
    if (anew !== undefined) {
      isNew = true;
      const upTo = farther(position, isFilling(position) ? filling?.upTo : undefined);
      if (upTo !== undefined) filling = { since: clock.now(), upTo };
      options.refilled(name);
      await storeNew(checkpoint);
      throw anew;
    }
    if (failures.length > 0) throw failures[0];
  };

  return {
    name,
    run: async (signal) => {
      active = true;
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
          const isNews = failing !== 'failed' || lastError?.message !== topicErrorOf(error, '').message;
          failed(error, passing ? 'waiting' : 'failed');
          if (isNews && !passing)
            logger.error({ err: error, topic: name }, 'a topic of the publisher broke down');
        }
        await pause(timers, waitAfter(failures, settings), signal);
      }
      active = false;
      trying = undefined;
    },
    status: () => {
      const oldest = running?.session.outbox.head({ records: 1, bytes: 1 })[0];
      const lagSince = oldest?.recordedAt ?? running?.reader.behindSince();
      const now = Date.parse(clock.now());
      const lagSeconds = lagSince === undefined ? 0 : Math.max(0, (now - Date.parse(lagSince)) / 1000);
      const atEnd = running?.reader.caughtUp() === true;
      const calm = !atEnd ? 'catching-up' : lagSeconds > SLOW_SECONDS ? 'waiting' : 'live';
      const isStuck =
        trying !== undefined &&
        (trying.problem !== undefined || clock.monotonicMs() - trying.sinceMs > SLOW_SECONDS * 1000);
      const reached = running?.session.outbox.reached() ?? position;
      return {
        topic: name,
        state: !active ? 'standby' : (failing ?? (isStuck ? 'waiting' : calm)),
        position: reached,
        waitingEvents: running?.session.outbox.size().parcels ?? 0,
        waitingRecords: running?.session.outbox.size().records ?? 0,
        isMoreWaiting: active && !atEnd,
        waitingSince: lagSince,
        lagSeconds,
        sent,
        confirmedAt,
        published,
        fillingSince: isFilling(reached) ? filling?.since : undefined,
        trying: shown(trying),
        lastError,
        parked: running?.session.parking.list() ?? parkedBefore,
      };
    },
    retry: async (parkedStream) => {
      if (running === undefined) return { outcome: 'not-parked' };
      return running.reader.retry(parkedStream);
    },
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

const shown = (trying: Trying | undefined): Trying | undefined => {
  if (trying === undefined) return undefined;
  const { records, since, attempt, failed, problem } = trying;
  return { records, since, attempt, failed, problem };
};
