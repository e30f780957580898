import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import { windowStart } from '../streams/heartbeats.ts';
import type { KafkaRecord } from '../streams/stream.ts';
import { KafkaFault, type KafkaProducer, type KafkaProducers } from './ports.ts';
import type { TopicsReady } from './topic-check.ts';
import { STANDBY, topicErrorOf, type TopicError, type TopicStatus } from './topic-status.ts';
import type { Trouble } from './trouble.ts';
import { waitAfter, type PublisherSettings } from './types.ts';

export type Heartbeats = {
  readonly topic: string;
  /** Milliseconds of a window; each is told of once, at its beginning. */
  readonly intervalMs: number;
  /** Records of the window of a moment, a page at a time; undefined: it is not known at present what they are. */
  readonly recordsAt: (nowMs: number) => Iterable<readonly KafkaRecord[]> | undefined;
};

/**
 * Metering heartbeats: made of state and clock, never of events, so that there is nothing to go on from. A window that
 * cannot be told of before it is over is not made up for (OSAC): consumers bill by the lifecycle topic.
 */
export type HeartbeatPublisher = {
  run(signal: AbortSignal): Promise<void>;
  status(): TopicStatus;
};

/** Milliseconds that what is billed may be unknown before that is trouble: at a start the read model is behind for a moment. */
const PATIENCE_MS = 5_000;

export const createHeartbeatPublisher = ({
  heartbeats: { topic, intervalMs, recordsAt },
  producers,
  check,
  clock,
  timers,
  trouble,
  settings,
  hooks,
}: {
  readonly heartbeats: Heartbeats;
  readonly producers: KafkaProducers;
  readonly check: TopicsReady;
  readonly trouble: Trouble;
  readonly settings: PublisherSettings;
  readonly hooks?: { readonly published?: (topic: string, records: number) => void } | undefined;
} & Pick<Runtime, 'clock' | 'timers'>): HeartbeatPublisher => {
  let producer: KafkaProducer | undefined;
  let active = false;
  let isHeldUp = false;
  let lastError: TopicError | undefined;
  let sent = 0;
  let confirmedAt: string | undefined;
  const nowMs = (): number => Date.parse(clock.now());

  const close = async (): Promise<void> => {
    const closing = producer;
    producer = undefined;
    await closing?.close();
  };
  const failed = (error: unknown): void => {
    lastError = topicErrorOf(error, clock.now());
    isHeldUp = true;
    trouble.has(topic, lastError);
  };

  /** Throws once the window is over or the signal aborted. */
  const send = async (records: readonly KafkaRecord[], endMs: number, signal: AbortSignal): Promise<void> => {
    for (let failures = 0; ; failures += 1) {
      try {
        await check.ready(topic);
        producer ??= await producers.open(signal);
        await producer.send(records);
        sent += records.length;
        confirmedAt = clock.now();
        hooks?.published?.(topic, records.length);
        return;
      } catch (error) {
        // What was rejected may be stored: another producer repeats it.
        await close();
        signal.throwIfAborted();
        if (!(error instanceof KafkaFault)) throw error;
        if (error.reason === 'topic-missing') check.forget(topic);
        failed(error);
        const wait = waitAfter(failures, settings);
        if (nowMs() + wait >= endMs) throw error;
        await pause(timers, wait, signal);
        signal.throwIfAborted();
      }
    }
  };

  /** Throws once the window is over or the signal aborted. */
  const pagesOf = async (startMs: number, signal: AbortSignal): Promise<Iterable<readonly KafkaRecord[]>> => {
    for (let failures = 0; ; failures += 1) {
      const pages = recordsAt(startMs);
      if (pages !== undefined) return pages;
      const unknown = new Error('it is not known at present what is billed');
      const wait = waitAfter(failures, settings);
      if (nowMs() + wait >= startMs + intervalMs) throw unknown;
      if (nowMs() - startMs >= PATIENCE_MS) failed(unknown);
      await pause(timers, wait, signal);
      signal.throwIfAborted();
    }
  };

  const tell = async (startMs: number, signal: AbortSignal): Promise<void> => {
    for (const page of await pagesOf(startMs, signal)) {
      if (page.length > 0) await send(page, startMs + intervalMs, signal);
    }
    isHeldUp = false;
    trouble.over(topic);
  };

  return {
    run: async (signal) => {
      active = true;
      while (!signal.aborted) {
        const next = windowStart(nowMs(), intervalMs) + intervalMs;
        await pause(timers, next - nowMs(), signal);
        if (signal.aborted) break;
        try {
          // Who was held up for longer than a window tells of the one that it is now.
          await tell(Math.max(next, windowStart(nowMs(), intervalMs)), signal);
        } catch (error) {
          if (!signal.aborted) failed(error);
        }
        // Nothing is sent until the next window.
        if (intervalMs > settings.idleMs) await close();
      }
      await close();
      active = false;
    },
    status: () => ({
      topic,
      ...STANDBY,
      ...(active && { state: isHeldUp ? 'waiting' : 'live' }),
      sent,
      confirmedAt,
      lastError,
    }),
  };
};
