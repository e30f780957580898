import type { Checkpoint } from '../log/checkpoint.ts';
import type { Position } from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { TopicStream } from '../streams/stream.ts';
import type { Parcel } from './outbox.ts';
import { TakenOver } from './parking.ts';
import {
  KafkaFault,
  type KafkaFaultReason,
  type KafkaProducer,
  type KafkaProducers,
  type KafkaRecord,
} from './ports.ts';
import { TopicIsNew } from './recreated-topic.ts';
import type { TopicsReady } from './topic-check.ts';
import { waitAfter, type PublisherFailpoint, type PublisherSettings, type Session } from './types.ts';
import { createPlaces, isAnother, type Places } from './written-ends.ts';

/** Characters of a position that counts bytes: commit and prepare of an EventStoreDB. Others count events. */
const BYTE_POSITION = 40;
const FAR_BYTES = 10_000_000n;
const FAR_EVENTS = 10_000n;

/** Whether so much of the log lies between the two that reading it again would take a while. */
export const isFarBehind = (from: Position | undefined, to: Position | undefined): boolean => {
  if (to === undefined) return false;
  const counts = to.length !== BYTE_POSITION;
  const number = (position: Position): bigint =>
    BigInt(counts ? position : position.slice(0, BYTE_POSITION / 2));
  return number(to) - (from === undefined ? 0n : number(from)) >= (counts ? FAR_EVENTS : FAR_BYTES);
};

/**
 * Takes what is in the outbox of one topic to the brokers: one batch at a time, awaited; then, not after each, the
 * position is stored. After any rejected send the producer is closed and another one made, since the same one would
 * lose a batch of another boundary without a word.
 */
type Courier = {
  /** Until the session's signal is aborted. Throws TopicIsNew, also then, TakenOver and what the store throws. */
  run(session: Session, checkpoint: Checkpoint, from: Start): Promise<void>;
  /** Where its records went, as far as is known now. */
  places(): Places;
};

export type Start = {
  readonly after: Position | undefined;
  /** Something of what lies in front of it was sent, as far as is known. */
  readonly wasSent: boolean;
  /** Where its records went; nothing in it: nobody has stored that. */
  readonly places: Places;
};

type CourierOptions = {
  readonly stream: Pick<TopicStream, 'topic'>;
  readonly producers: KafkaProducers;
  readonly check: TopicsReady;
  readonly settings: PublisherSettings;
  /** Milliseconds that a send which is under way has when the session ends. */
  readonly graceMs: () => number;
  readonly failpoint?: PublisherFailpoint;
  readonly events: {
    /** So many records are tried from now on; 0: nothing is left to send. */
    readonly trying: (records: number) => void;
    /** What goes wrong on the way, before it has failed. */
    readonly trouble: (problem: string) => void;
    readonly failed: (error: unknown) => void;
    readonly sent: (records: number) => void;
  };
} & Pick<Runtime, 'clock' | 'timers' | 'logger'>;

export const createCourier = (options: CourierOptions): Courier => {
  const places = createPlaces(options.stream.topic.name);
  return {
    run: (session, checkpoint, from) => {
      // All of it is sent again then, also to a topic that is another one than before.
      if (!from.wasSent) places.forget();
      else if (from.places.offsets.size > 0 || from.places.topicId !== undefined) places.start(from.places);
      return run({ ...options, places }, session, checkpoint, from);
    },
    places: places.all,
  };
};

type WithPlaces = CourierOptions & { readonly places: ReturnType<typeof createPlaces> };

const run = async (
  options: WithPlaces,
  session: Session,
  checkpoint: Checkpoint,
  from: Start,
): Promise<void> => {
  const sender = createSender(options, session, from);
  const saver = createSaver(options, session, checkpoint, from);
  try {
    while (!session.signal.aborted) {
      const sent = await sender.next();
      if (sent !== undefined) saver.count(sent);
      if (saver.isDue()) await saver.save();
      else if (sent === undefined) await news(options, session, saver.dueIn() ?? sender.idleIn());
      if (sender.idleIn() === 0) await sender.close();
    }
  } catch (error) {
    // A send that is cut off at the end says so. That the topic is new must be known to whoever comes next.
    if (!session.signal.aborted || error instanceof TopicIsNew) throw error;
  } finally {
    await sender.close();
  }
  // What was confirmed during the goodbye need not be sent again by whoever comes next.
  await saver.finish();
};

/** Waits for something to send, at most so many milliseconds. */
const news = async (
  { timers }: Pick<CourierOptions, 'timers'>,
  { outbox, signal }: Session,
  ms: number | undefined,
): Promise<void> => {
  await outbox.changed(signal, ms === undefined ? undefined : (end) => timers.after(ms, end));
};

/** What the brokers find wrong with a record itself: no repetition changes it. */
const NOT_TAKEN: ReadonlySet<KafkaFaultReason> = new Set(['too-large', 'invalid']);

/** What brokers say of a topic that they do not have, to somebody who tries again. */
const MISSING = /does not host (this )?topic/;

/** The connection to the brokers and the batch that is next. */
const createSender = (options: WithPlaces, { outbox, parking, signal }: Session, { wasSent }: Start) => {
  const { stream, producers, check, clock, timers, logger, settings, graceMs, failpoint, events, places } =
    options;
  const { name } = stream.topic;
  let producer: KafkaProducer | undefined;
  let usedAt = 0;
  let failures = 0;
  /** It was seen that the topic holds what was sent before. */
  let isFilled = !wasSent;
  /** The topic was not there while this send was tried. */
  let wasMissing = false;
  const goesOn = (): boolean => wasSent || outbox.reached() !== undefined;
  const trouble = (problem: string): void => {
    wasMissing ||= MISSING.test(problem);
    events.trouble(problem);
  };
  /** Parcels at once: fewer after the brokers found a batch too large. */
  let most = Number.POSITIVE_INFINITY;

  /** Parcels whose records were not taken together. */
  const alone = new WeakSet<Parcel>();
  const sendsOf = (parcels: readonly Parcel[]): readonly (readonly KafkaRecord[])[] => {
    const records = parcels.flatMap((parcel) => parcel.records);
    const [first] = parcels;
    return first !== undefined && alone.has(first) ? records.map((record) => [record]) : [records];
  };

  const close = async (): Promise<void> => {
    const closing = producer;
    producer = undefined;
    await closing?.close();
  };

  /**
   * A send that is under way when the publisher stops gets some time: cut off, it would come twice. When the lease
   * is lost
   * it gets none: it would come behind what the next owner sends.
   */
  const send = async (parcels: readonly Parcel[]): Promise<void> => {
    await check.ready(name);
    // Who has no connection does not know what became of the topic meanwhile.
    if (producer === undefined || !isFilled) {
      const ends = await check.endsOf(name);
      if ((goesOn() || !isFilled) && isAnother(ends, places.all())) {
        places.forget();
        throw new TopicIsNew(name);
      }
      // Before anything is sent: what is made anew behind this look has another id.
      places.goTo(ends);
    }
    isFilled = true;
    signal.throwIfAborted();
    producer ??= await producers.open(signal, undefined, trouble);
    const open = producer;
    let cancel = (): void => undefined;
    const stop = (): void => {
      const ms = graceMs();
      if (ms === 0) void open.close();
      else cancel = timers.after(ms, () => void open.close());
    };
    signal.addEventListener('abort', stop, { once: true });
    try {
      await failpoint?.('before-send', name);
      signal.throwIfAborted();
      for (const records of sendsOf(parcels)) places.add(await open.send(records), wasMissing && goesOn());
      await failpoint?.('after-send', name);
    } finally {
      signal.removeEventListener('abort', stop);
      cancel();
    }
    wasMissing = false;
    usedAt = clock.monotonicMs();
  };

  /** What no broker will ever take must not hold up the rest; records that are too large together may go alone. */
  const notTaken = async (parcels: readonly Parcel[], fault: KafkaFault): Promise<void> => {
    const [only] = parcels;
    if (parcels.length > 1 || only === undefined) {
      most = Math.ceil(parcels.length / 2);
      return;
    }
    if (only.records.length > 1 && !alone.has(only)) {
      alone.add(only);
      return;
    }
    const { stream: poison, revision, position } = only;
    logger.error(
      { topic: name, stream: poison, revision, reason: fault.reason, problem: fault.message },
      'brokers refuse a record; stream parked',
    );
    await parking.park({ stream: poison, revision, position, error: fault.message });
    outbox.drop(poison);
    most = Number.POSITIVE_INFINITY;
  };

  const failed = async (error: unknown, parcels: readonly Parcel[]): Promise<void> => {
    await close();
    if (error instanceof TopicIsNew) throw error;
    signal.throwIfAborted();
    if (!(error instanceof KafkaFault)) throw error;
    if (NOT_TAKEN.has(error.reason)) return notTaken(parcels, error);
    if (error.reason === 'topic-missing') {
      check.forget(name);
      // Somebody will make it, empty.
      isFilled = !goesOn();
    }
    events.failed(error);
    failures += 1;
    const until = error.reason === 'topic-missing' ? AbortSignal.any([signal, check.making()]) : signal;
    await pause(timers, waitAfter(failures - 1, settings), until);
  };

  return {
    /** Sends the oldest batch; undefined: there was none. 0: it was in vain, and is the oldest one still. */
    next: async (): Promise<number | undefined> => {
      const parcels = outbox.head(settings.batch).slice(0, most);
      if (parcels.length === 0) {
        events.trying(0);
        return undefined;
      }
      const records = parcels.reduce((sum, parcel) => sum + parcel.records.length, 0);
      events.trying(records);
      try {
        await send(parcels);
      } catch (error) {
        await failed(error, parcels);
        return 0;
      }
      failures = 0;
      most = Number.POSITIVE_INFINITY;
      outbox.sent(parcels.length);
      events.sent(records);
      return records;
    },
    /** Milliseconds until the connection has been idle for too long; undefined: there is none. */
    idleIn: (): number | undefined =>
      producer === undefined ? undefined : Math.max(0, usedAt + settings.idleMs - clock.monotonicMs()),
    close,
  };
};

const createSaver = (
  { stream, clock, settings, failpoint, places }: WithPlaces,
  { outbox }: Session,
  checkpoint: Checkpoint,
  { after, wasSent }: Start,
) => {
  const { name } = stream.topic;
  let saved = after;
  let isAnySent = wasSent;
  let isSavedSent = wasSent;
  let savedAt = clock.monotonicMs();
  let unsaved = 0;

  const save = async (): Promise<void> => {
    const position = outbox.reached();
    if (position === undefined || (position === saved && isAnySent === isSavedSent)) {
      // What was parked and sent later stands in front of what is stored.
      unsaved = 0;
      return;
    }
    await failpoint?.('before-checkpoint', name);
    const records = unsaved;
    const nothingSent = !isAnySent;
    if (!(await checkpoint.save(position, { nothingSent, places: places.all() })))
      throw new TakenOver(`sys-kafka-${name}`);
    await failpoint?.('after-checkpoint', name);
    saved = position;
    isSavedSent = !nothingSent;
    savedAt = clock.monotonicMs();
    unsaved -= records;
  };
  /** Each stored position is an event, which moves the end of the log: without anything sent it is worth one only now and then. */
  const isFar = (): boolean => isFarBehind(saved, outbox.reached());
  const dueIn = (): number | undefined =>
    unsaved === 0 ? undefined : Math.max(0, savedAt + settings.checkpointMs - clock.monotonicMs());

  return {
    count: (records: number): void => {
      if (unsaved === 0 && records > 0)
        savedAt = Math.max(savedAt, clock.monotonicMs() - settings.checkpointMs / 2);
      unsaved += records;
      isAnySent ||= records > 0;
    },
    dueIn,
    isDue: (): boolean => unsaved >= settings.checkpointRecords || dueIn() === 0 || isFar(),
    save,
    finish: async (): Promise<void> => {
      if (unsaved > 0) await save();
    },
  };
};
