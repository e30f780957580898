import type { Clock, Logger, Timers } from '../ports.ts';
import type { TopicError } from './topic-status.ts';

/**
 * Says once what is wrong with many topics, and once that it is over: when the brokers are away all of them are held up for
 * one reason, and each tries again every few seconds.
 */
export type Trouble = {
  has(topic: string, error: TopicError): void;
  over(topic: string): void;
};

type Reason = TopicError['reason'];
type Held = { readonly topics: Set<string>; readonly since: number };

/** What is wrong and what to do about it; no line where the check of topics has one that names all of them. */
const WORDS: { readonly [reason in Reason]?: readonly [wrong: string, over: string] } = {
  unreachable: [
    'the Kafka brokers do not answer; nothing is lost, records wait until they do; see ledgerctl kafka status',
    'the Kafka brokers answer again',
  ],
  unauthorized: [
    'the Kafka brokers refuse our password or rights: correct LEDGER_KAFKA_SASL_*, LEDGER_KAFKA_TLS_CA or the rights; retrying, see ledgerctl kafka status',
    'the Kafka brokers take our password and rights again',
  ],
  full: [
    'the Kafka brokers have no room, or too few in-sync replicas: free their disks or start the missing ones; retrying, see ledgerctl kafka status',
    'the Kafka brokers have room and replicas again',
  ],
  'topic-missing': ['a topic is missing', 'topics that were missing are there'],
  'other-history': ['a topic holds another history', 'topics are of this log again'],
};
const OTHER = [
  'topics held up; retrying, ledgerctl kafka status lists them',
  'topics are published again',
] as const;
const TOLD_BY_THE_CHECK: ReadonlySet<Reason> = new Set(['topic-missing', 'other-history']);

export const createTrouble = (logger: Logger, clock: Pick<Clock, 'monotonicMs'>): Trouble => {
  /** Topics that are held up, by reason. */
  const held = new Map<Reason, Held>();

  const leave = (topic: string): void => {
    for (const [reason, { topics, since }] of held) {
      if (!topics.delete(topic) || topics.size > 0) continue;
      held.delete(reason);
      const seconds = Math.round((clock.monotonicMs() - since) / 1000);
      logger[levelOf(reason, 'info')]({ reason, seconds }, (WORDS[reason] ?? OTHER)[1]);
    }
  };
  return {
    has: (topic, error) => {
      const { reason, message } = error;
      if (held.get(reason)?.topics.has(topic) === true) return;
      leave(topic);
      const known = held.get(reason);
      if (known !== undefined) {
        known.topics.add(topic);
        logger.debug({ topic, reason, problem: message }, 'topic held up');
        return;
      }
      held.set(reason, { topics: new Set([topic]), since: clock.monotonicMs() });
      const fields = { ...(NO_TOPIC.has(topic) ? {} : { topic }), reason, problem: message };
      logger[levelOf(reason, 'warn')](fields, (WORDS[reason] ?? OTHER)[0]);
    },
    over: leave,
  };
};

/** Milliseconds in which topics that are filled again are told of together. */
const TOGETHER_MS = 1_000;

/** Says which topics are filled again, in one line: on new brokers it is all of them within a moment. */
export const createRefillLog = (logger: Logger, timers: Timers): ((topic: string) => void) => {
  let topics: string[] = [];
  const tell = (): void => {
    const each = topics;
    topics = [];
    logger.warn(
      { topics: each },
      'Kafka topics empty or recreated; filling them from the beginning of the log',
    );
  };
  return (topic) => {
    topics.push(topic);
    if (topics.length === 1) timers.after(TOGETHER_MS, tell);
  };
};

/** What has trouble that is no topic. */
export const THE_BROKERS = 'the brokers';
export const THE_CHECK = 'the check of topics';
const NO_TOPIC: ReadonlySet<string> = new Set([THE_BROKERS, THE_CHECK]);

const levelOf = <Level extends 'info' | 'warn'>(reason: Reason, level: Level): Level | 'debug' =>
  TOLD_BY_THE_CHECK.has(reason) ? 'debug' : level;
