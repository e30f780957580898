import {
  reachedBy,
  LogDamaged,
  StoreUnavailable,
  type EventStore,
  type Position,
  type ReadForward,
  type RecordedEvent,
  type UnreadableEvent,
} from '../log/event-store.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { KafkaRecord, TopicStream } from '../streams/stream.ts';
import { filterFor } from './filter.ts';
import { isEmpty, NO_ENDS } from './written-ends.ts';
import { KafkaFault, ReplayTargetInUse, sizeOf, type KafkaCluster, type KafkaProducer } from './ports.ts';
import { createTurns } from '../fairness/slicer.ts';
import { PUBLISHER_SETTINGS, waitAfter } from './types.ts';

/** A part of the log, once more, to a topic of its own: consumers of the topic itself notice nothing. */
export type ReplayRequest = {
  readonly topic: string;
  /** The records go to `<topic>.replay.<name>`, which is made when it is not there. */
  readonly name: string;
  /** Exclusive; absent: from the beginning of the log. */
  readonly after?: Position;
  /** Inclusive; absent: to the end of the log as it is when the replay begins. */
  readonly until?: Position;
};

export type ReplayProgress = {
  /** Everything up to here is with the brokers: a replay that broke off goes on from here. */
  readonly position: Position | undefined;
  readonly events: number;
  readonly records: number;
};

export type ReplayReport = ReplayProgress & {
  readonly target: string;
  /** Events that cannot become a record, at most the first hundred. */
  readonly skipped: readonly { readonly stream: string; readonly revision: number; readonly error: string }[];
  readonly skippedEvents: number;
};

export type ReplayStep = { readonly progress: ReplayProgress } | { readonly report: ReplayReport };

const SKIPPED_SHOWN = 100;
/** Sends of one batch that are rejected before the replay gives up: whoever asked is waiting. */
const ATTEMPTS = 5;
/** Milliseconds between two steps of progress. */
const TELL_EVERY_MS = 500;

export const replayTarget = (topic: string, name: string): string => `${topic}.replay.${name}`;

/** What records are made of: throws LogDamaged in place of an event that is not the one that was recorded. */
export type ReplayedLog = Pick<EventStore, 'subscribe' | 'lastPosition' | 'storeId'> & {
  readonly readStream: ReadForward;
};

export type ReplayOptions = {
  readonly stream: TopicStream;
  readonly cluster: KafkaCluster;
  readonly store: Pick<ReplayedLog, 'subscribe' | 'lastPosition'>;
} & Pick<Runtime, 'clock' | 'timers'>;

/**
 * Yields progress and, last, the report. Throws ReplayTargetInUse, KafkaFault when the brokers do not take it, and
 * what the store
 * throws: it ends in front of an event that is not the one that was recorded.
 */
export async function* replay(
  options: ReplayOptions,
  request: ReplayRequest,
  signal: AbortSignal,
): AsyncGenerator<ReplayStep> {
  const { stream, cluster, store, clock } = options;
  const target = replayTarget(stream.topic.name, request.name);
  const made = await cluster.admin.create([{ ...stream.topic, name: target }], signal);
  if (
    made.length === 0 &&
    request.after === undefined &&
    !isEmpty((await cluster.admin.endsOf([target], signal)).get(target) ?? NO_ENDS)
  )
    throw new ReplayTargetInUse(target);
  const until = request.until ?? (await store.lastPosition(signal));
  const turn = createTurns(clock);
  const sender = createReplaySender(options, signal);
  const skipped: ReplayReport['skipped'][number][] = [];
  let skippedEvents = 0;
  let events = 0;
  let position = request.after;
  let toldAt = clock.monotonicMs();
  const progress = (): ReplayProgress => ({ position, events, records: sender.sent() });
  try {
    for await (const { event, at } of eventsIn(options, request.after, until, signal)) {
      if (event !== undefined) {
        events += 1;
        const outcome = await recordsOf(stream, event);
        if ('error' in outcome) {
          skippedEvents += 1;
          const { stream: name, revision } = event;
          if (skipped.length < SKIPPED_SHOWN) skipped.push({ stream: name, revision, error: outcome.error });
        } else await sender.add(outcome.records.map((record) => ({ ...record, topic: target })));
        await turn();
      }
      if (clock.monotonicMs() - toldAt >= TELL_EVERY_MS) {
        await sender.flush();
        position = at;
        toldAt = clock.monotonicMs();
        yield { progress: progress() };
      }
    }
    await sender.flush();
    position = until ?? position;
    yield { report: { ...progress(), target, skipped, skippedEvents } };
  } finally {
    await sender.close();
  }
}

/** Everything between the two positions that the topic is made from; items without an event only move on. */
async function* eventsIn(
  { stream, store }: ReplayOptions,
  after: Position | undefined,
  until: Position | undefined,
  signal: AbortSignal,
): AsyncGenerator<{ readonly event?: RecordedEvent | UnreadableEvent; readonly at: Position }> {
  if (until === undefined || stream.topic.filter === undefined || (after !== undefined && after >= until))
    return;
  const over = new AbortController();
  const subscription = store.subscribe({
    ...(after === undefined ? {} : { after }),
    ...filterFor(stream.topic.filter),
    signal: AbortSignal.any([signal, over.signal]),
  });
  try {
    for await (const item of subscription) {
      const at = reachedBy(item);
      if (at !== undefined && at > until) return;
      if ('event' in item) yield { event: item.event, at: item.event.position };
      else if (at !== undefined) yield { at };
      if (at === until || item.kind === 'caught-up') return;
    }
    signal.throwIfAborted();
  } finally {
    over.abort();
  }
}

const recordsOf = async (
  { map }: TopicStream,
  event: RecordedEvent | UnreadableEvent,
): Promise<{ readonly records: readonly KafkaRecord[] } | { readonly error: string }> => {
  if ('reason' in event) return { error: event.reason };
  try {
    return { records: await map(event) };
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof LogDamaged) throw error;
    return { error: error instanceof Error ? error.message : String(error) };
  }
};

/** Batches, one send at a time; a producer whose send was rejected is given up. */
const createReplaySender = (
  { cluster, timers }: Pick<ReplayOptions, 'cluster' | 'timers'>,
  signal: AbortSignal,
) => {
  const { records: mostRecords, bytes: mostBytes } = PUBLISHER_SETTINGS.batch;
  let producer: KafkaProducer | undefined;
  let batch: KafkaRecord[] = [];
  let bytes = 0;
  let sent = 0;

  const close = async (): Promise<void> => {
    const closing = producer;
    producer = undefined;
    await closing?.close();
  };
  const send = async (records: readonly KafkaRecord[]): Promise<void> => {
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        producer ??= await cluster.producers.open(signal);
        await producer.send(records);
        return;
      } catch (error) {
        await close();
        const isLasting = !(error instanceof KafkaFault) || LASTING.has(error.reason);
        if (isLasting || attempt === ATTEMPTS) throw error;
        await pause(timers, waitAfter(attempt - 1, PUBLISHER_SETTINGS), signal);
      }
    }
  };
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    await send(batch);
    sent += batch.length;
    batch = [];
    bytes = 0;
  };
  return {
    sent: () => sent,
    flush,
    close,
    /** In order; sends what there was before when these do not fit with it. */
    add: async (records: readonly KafkaRecord[]): Promise<void> => {
      const size = records.reduce((sum, record) => sum + sizeOf(record), 0);
      if (batch.length + records.length > mostRecords || bytes + size > mostBytes) await flush();
      batch.push(...records);
      bytes += size;
    },
  };
};

/** What no repetition changes. */
const LASTING: ReadonlySet<string> = new Set(['unauthorized', 'too-large', 'invalid', 'closed']);
