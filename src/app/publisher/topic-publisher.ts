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

/** What this instance does for the topic. `between`: the next session has not begun. */
type Phase =
  | ({ readonly is: 'standby' | 'between' } & Reached)
  | {
      readonly is: 'publishing';
      readonly session: Session;
      readonly reader: Reader;
      readonly from: Position | undefined;
    };
type Reached = Pick<TopicStatus, 'position' | 'parked'>;

/** What has come of sends; the last error also after it was overcome. */
type Delivery = Pick<TopicStatus, 'sent' | 'confirmedAt' | 'published' | 'lastError'> & {
  readonly health: 'fine' | 'waiting' | 'failed';
  /** `isTold`: a try on the way has told what is wrong. Undefined: nothing is on its way. */
  readonly sending: (Trying & { readonly sinceMs: number; readonly isTold: boolean }) | undefined;
};

/**
 * `found`: the topic is empty although it was published to, and the log does not say so yet; `begun`: it is
 * filled from the beginning of the log. `upTo`: how far it was published to before; undefined: not known.
 */
type Refill =
  | { readonly is: 'none' }
  | { readonly is: 'found' | 'begun'; readonly since: string; readonly upTo: Position | undefined };

export const createTopicPublisher = (options: TopicPublisherOptions): TopicPublisher => {
  const { stream, store, clock, timers, ids, instance, logger, settings, trouble } = options;
  const { name } = stream.topic;
  let phase: Phase = { is: 'standby', position: undefined, parked: [] };
  let delivery: Delivery = {
    health: 'fine',
    lastError: undefined,
    sending: undefined,
    sent: 0,
    confirmedAt: undefined,
    published: false,
  };
  let refill: Refill = { is: 'none' };

  const failed = (error: unknown, health: 'waiting' | 'failed'): TopicError => {
    const lastError = topicErrorOf(error, clock.now());
    trouble.has(name, lastError);
    delivery = { ...delivery, health, lastError };
    return lastError;
  };

  const courier = createCourier({
    ...options,
    events: {
      trying: (records) => {
        const first = { since: clock.now(), sinceMs: clock.monotonicMs(), attempt: 0, failed: 0 };
        const before = delivery.sending ?? { ...first, problem: undefined };
        const next = { ...before, records, attempt: before.attempt + 1, isTold: false };
        delivery = { ...delivery, sending: records === 0 ? undefined : next };
      },
      trouble: (problem) => {
        delivery = { ...delivery, sending: hindered(delivery, problem, true) };
      },
      failed: (error) => {
        const { message } = failed(error, isOtherHistory(error) ? 'failed' : 'waiting');
        delivery = { ...delivery, sending: hindered(delivery, message, false) };
      },
      sent: (records) => {
        if (delivery.health !== 'fine') trouble.over(name);
        const sent = delivery.sent + records;
        const confirmed = { sent, confirmedAt: clock.now(), published: true };
        delivery = { ...delivery, health: 'fine', sending: undefined, ...confirmed };
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
    if (refill.is === 'found') refill = { ...refill, is: 'begun' };
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
    const isNew = refill.is === 'found';
    if (isNew) await storeNew(checkpoint);
    const after = isNew ? undefined : stored;
    phase = { is: 'between', parked: reachedIn(phase).parked, position: after };
    const stop = new AbortController();
    const own: Session = {
      outbox: createOutbox(settings.outbox),
      parking,
      signal: AbortSignal.any([signal, stop.signal]),
    };
    const reader = createReader({ ...options, session: own, after });
    const sentBefore = delivery.sent;
    const wasSent = after !== undefined && !checkpoint.isUnsent();
    delivery = { ...delivery, published: delivery.published || wasSent };
    /**
     * What is sent looks for itself. A topic of which nothing new comes would stay without its history, and be called live.
     */
    const emptied = async (): Promise<void> => {
      while (!own.signal.aborted) {
        const looked = options.check.looked();
        const goesOn = wasSent || delivery.sent > sentBefore;
        // Asked anew: what was sent since the look may have been the first.
        const ends = options.check.lastEnds(name);
        const mayBe = goesOn && delivery.sending === undefined && ends !== undefined;
        if (mayBe && isAnother(ends, courier.places()) && (await isAnotherNow())) throw new TopicIsNew(name);
        await aborted(AbortSignal.any([own.signal, looked]));
      }
    };
    phase = { is: 'publishing', session: own, reader, from: after };
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
    const left = reachedIn(phase);
    phase = { is: 'between', ...left };
    const anew = failures.find((error) => error instanceof TopicIsNew);
    if (anew !== undefined) {
      const upTo = farther(left.position, unfilled(refill, left.position)?.upTo);
      refill = { is: 'found', since: clock.now(), upTo };
      options.refilled(name);
      await storeNew(checkpoint);
      throw anew;
    }
    if (failures.length > 0) throw failures[0];
  };

  return {
    name,
    run: async (signal) => {
      phase = { is: 'between', ...reachedIn(phase) };
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
            delivery.health !== 'failed' || delivery.lastError?.message !== topicErrorOf(error, '').message;
          failed(error, passing ? 'waiting' : 'failed');
          if (isNews && !passing)
            logger.error({ err: error, topic: name }, 'topic of the publisher broke down');
        }
        await pause(timers, waitAfter(failures, settings), signal);
      }
      phase = { is: 'standby', ...reachedIn(phase) };
      delivery = { ...delivery, sending: undefined };
    },
    status: () => {
      const { outbox } = phase.is === 'publishing' ? phase.session : NOTHING_RUNS;
      const { reader } = phase.is === 'publishing' ? phase : NOTHING_RUNS;
      const { health, sending, ...confirmed } = delivery;
      const reached = reachedIn(phase);
      const oldest = outbox?.head({ records: 1, bytes: 1 })[0];
      const lagSince = oldest?.recordedAt ?? reader?.behindSince();
      const now = Date.parse(clock.now());
      const lagSeconds = lagSince === undefined ? 0 : Math.max(0, (now - Date.parse(lagSince)) / 1000);
      const atEnd = reader?.caughtUp() === true;
      const calm = !atEnd ? 'catching-up' : lagSeconds > SLOW_SECONDS ? 'waiting' : 'live';
      const isStuck =
        sending !== undefined &&
        (sending.problem !== undefined || clock.monotonicMs() - sending.sinceMs > SLOW_SECONDS * 1000);
      const going = health !== 'fine' ? health : isStuck ? 'waiting' : calm;
      return {
        topic: name,
        state: phase.is === 'standby' ? 'standby' : going,
        ...reached,
        waitingEvents: outbox?.size().parcels ?? 0,
        waitingRecords: outbox?.size().records ?? 0,
        isMoreWaiting: phase.is !== 'standby' && !atEnd,
        waitingSince: lagSince,
        lagSeconds,
        ...confirmed,
        fillingSince: unfilled(refill, reached.position)?.since,
        trying: shown(sending),
      };
    },
    retry: async (parkedStream) =>
      phase.is === 'publishing' ? phase.reader.retry(parkedStream) : { outcome: 'not-parked' },
  };
};

const NOTHING_RUNS = { outbox: undefined, reader: undefined };

const reachedIn = (phase: Phase): Reached => {
  if (phase.is !== 'publishing') return { position: phase.position, parked: phase.parked };
  const { outbox, parking } = phase.session;
  return { position: outbox.reached() ?? phase.from, parked: parking.list() };
};

/** A try that failed at last was told of on the way, if it told anything. */
const hindered = ({ sending }: Delivery, problem: string, isOnTheWay: boolean): Delivery['sending'] =>
  sending && {
    ...sending,
    failed: sending.failed + (isOnTheWay || !sending.isTold ? 1 : 0),
    problem,
    isTold: sending.isTold || isOnTheWay,
  };

/** The refill that has not come as far yet as the topic was published to before. */
const unfilled = (
  refill: Refill,
  reached: Position | undefined,
): Exclude<Refill, { is: 'none' }> | undefined =>
  refill.is !== 'none' && refill.upTo !== undefined && (reached ?? '') < refill.upTo ? refill : undefined;

const farther = (left: Position | undefined, right: Position | undefined): Position | undefined =>
  (left ?? '') < (right ?? '') ? right : left;

const isOtherHistory = (error: unknown): boolean =>
  error instanceof KafkaFault && error.reason === 'other-history';

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const shown = (sending: Delivery['sending']): Trying | undefined => {
  if (sending === undefined) return undefined;
  const { sinceMs: _sinceMs, isTold: _isTold, ...trying } = sending;
  return trying;
};
