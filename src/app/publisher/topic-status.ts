import type { ParkedStream } from '../../domain/bookkeeping/events.ts';
import type { Position } from '../log/event-store.ts';
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

/** A send that is under way or is tried again. */
export type Trying = {
  readonly records: number;
  /** When the first try of them began. */
  readonly since: string;
  /** Which send of them it is: each may be tried for minutes before it fails. */
  readonly attempt: number;
  /** Tries that were in vain, also those within one send. */
  readonly failed: number;
  /** What went wrong with it last. */
  readonly problem: string | undefined;
};

export type TopicStatus = {
  readonly topic: string;
  readonly state: TopicState;
  /** Everything up to here is with the brokers; undefined: nothing yet, or standby. */
  readonly position: Position | undefined;
  /** Events of the log that are read and not confirmed yet: at most what the outbox holds. */
  readonly waitingEvents: number;
  /** Records that these became. */
  readonly waitingRecords: number;
  /** The log was not read to its end: behind these there may be more. */
  readonly isMoreWaiting: boolean;
  /** When the oldest event was recorded that is not confirmed; undefined: there is none. */
  readonly waitingSince: string | undefined;
  /** Seconds since then; 0 when there is none. */
  readonly lagSeconds: number;
  /** Records that the brokers have confirmed since the start of this instance. */
  readonly sent: number;
  /** When the brokers confirmed some last. */
  readonly confirmedAt: string | undefined;
  /** Something was sent to it, by this instance or one before. */
  readonly published: boolean;
  /** Since when it is filled from the beginning of the log, because it was found empty; undefined: it is not. */
  readonly fillingSince: string | undefined;
  /** What is tried now; undefined: nothing is on its way. */
  readonly trying: Trying | undefined;
  /** The last failure, also after it was overcome. */
  readonly lastError: TopicError | undefined;
  readonly parked: readonly ParkedStream[];
};

/** Of a topic that this instance has not published to. */
export const STANDBY: Omit<TopicStatus, 'topic'> = {
  state: 'standby',
  position: undefined,
  waitingEvents: 0,
  waitingRecords: 0,
  isMoreWaiting: false,
  waitingSince: undefined,
  lagSeconds: 0,
  sent: 0,
  confirmedAt: undefined,
  published: false,
  fillingSince: undefined,
  trying: undefined,
  lastError: undefined,
  parked: [],
};

export const topicErrorOf = (error: unknown, at: string): TopicError => ({
  reason: error instanceof KafkaFault ? error.reason : 'internal',
  message: error instanceof Error ? error.message : String(error),
  at,
});
