import type { ParkedStream } from '../../domain/bookkeeping/events.ts';
import type { Position } from '../event-store.ts';
import { KafkaFault, type KafkaFaultReason } from './ports.ts';

/**
 * `standby`: another instance publishes, or nobody yet; `catching-up`: behind the end of the log; `live`; `waiting`: the
 * brokers do not take what is next, it is tried again; `failed`: it cannot go on by itself and tries again all the same.
 */
export type TopicState = 'standby' | 'catching-up' | 'live' | 'waiting' | 'failed';

export type TopicError = {
  readonly reason: KafkaFaultReason | 'internal';
  readonly message: string;
  readonly at: string;
};

export type TopicStatus = {
  readonly topic: string;
  readonly state: TopicState;
  /** Everything up to here is with the brokers; undefined: nothing yet, or standby. */
  readonly position: Position | undefined;
  /** Events of the log that are read and not confirmed yet: at most what the outbox holds. */
  readonly waitingEvents: number;
  /** Seconds since the oldest event that is not confirmed was recorded; 0 when there is none. */
  readonly lagSeconds: number;
  /** Records that the brokers have confirmed since the start of this instance. */
  readonly sent: number;
  /** The last failure, also after it was overcome. */
  readonly lastError: TopicError | undefined;
  readonly parked: readonly ParkedStream[];
};

export const topicErrorOf = (error: unknown, at: string): TopicError => ({
  reason: error instanceof KafkaFault ? error.reason : 'internal',
  message: error instanceof Error ? error.message : String(error),
  at,
});
