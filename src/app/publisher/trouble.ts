import type { Logger } from '../ports.ts';
import type { TopicError } from './topic-status.ts';

/**
 * Says once what is wrong with many topics: when the brokers are away all of them are held up for one reason, and each
 * tries again every few seconds.
 */
export type Trouble = {
  has(topic: string, error: TopicError): void;
  over(topic: string): void;
};

export const createTrouble = (logger: Logger): Trouble => {
  /** Topics that are held up, by reason. */
  const held = new Map<TopicError['reason'], Set<string>>();

  const leave = (topic: string): void => {
    for (const [reason, topics] of held) {
      if (!topics.delete(topic) || topics.size > 0) continue;
      held.delete(reason);
      logger.info({ reason }, 'what held up topics is over');
    }
  };
  return {
    has: (topic, error) => {
      const { reason, message } = error;
      if (held.get(reason)?.has(topic) === true) return;
      leave(topic);
      const known = held.get(reason);
      if (known !== undefined) {
        known.add(topic);
        logger.debug({ topic, reason, problem: message }, 'another topic is held up');
        return;
      }
      held.set(reason, new Set([topic]));
      logger.warn(
        { topic, reason, problem: message },
        'topics are held up: ledgerctl kafka status lists them',
      );
    },
    over: leave,
  };
};
