import type { Clock, Timers } from '../ports.ts';
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
 * cannot be told of before it is over is not made up for (metering-events.md §7): consumers bill by the lifecycle topic.
 */
export type HeartbeatPublisher = {
  run(signal: AbortSignal): Promise<void>;
  status(): TopicStatus;
};

/** Milliseconds that what is billed may be unknown before that is trouble: at a start the read model is behind for a moment. */
const PATIENCE_MS = 5_000;

class Unknown extends Error {}

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
  readonly clock: Clock;
  readonly timers: Timers;
  readonly trouble: Trouble;
  readonly settings: PublisherSettings;
  readonly hooks?: { readonly published?: (topic: string, records: number) => void } | undefined;
}): HeartbeatPublisher => {
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

  /** Tries again until the window is over or the signal aborted; then throws. `isTrouble`: whether a failure is told. */
  const untilEnd = async <Result>(
    endMs: number,
    signal: AbortSignal,
    work: () => Promise<Result> | Result,
    isTrouble: () => boolean = () => true,
  ): Promise<Result> => {
    for (let failures = 0; ; failures += 1) {
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof KafkaFault || error instanceof Unknown)) throw error;
        if (isTrouble()) failed(error);
        const wait = waitAfter(failures, settings);
        if (nowMs() + wait >= endMs) throw error;
        await pause(timers, wait, signal);
        signal.throwIfAborted();
      }
    }
  };

  const send = async (records: readonly KafkaRecord[], signal: AbortSignal): Promise<void> => {
    try {
      await check.ready(topic);
      producer ??= await producers.open(signal);
      await producer.send(records);
    } catch (error) {
      // What was rejected may be stored: another producer repeats it (real-servers.md §1.4).
      await close();
      if (error instanceof KafkaFault && error.reason === 'topic-missing') check.forget(topic);
      throw error;
    }
    sent += records.length;
    confirmedAt = clock.now();
    hooks?.published?.(topic, records.length);
  };

  const tell = async (startMs: number, signal: AbortSignal): Promise<void> => {
    const endMs = startMs + intervalMs;
    const pages = await untilEnd(
      endMs,
      signal,
      () => recordsAt(startMs) ?? Promise.reject(new Unknown('it is not known at present what is billed')),
      () => nowMs() - startMs >= PATIENCE_MS,
    );
    for (const page of pages) if (page.length > 0) await untilEnd(endMs, signal, () => send(page, signal));
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
