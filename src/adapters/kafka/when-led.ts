import { setTimeout as pause } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { KafkaFault } from '../../app/publisher/ports.ts';
import { faultOf } from './faults.ts';

const LOOK_MS = 100;

/**
 * Resolves when somebody leads every partition of these topics, which were just made. kafkajs waits for leaders as well, but
 * fails where the broker that is asked has not heard of a topic yet, which a busy one hears some moments after the
 * controller has made it. Throws KafkaFault `unreachable` after `withinMs`, and at once what is no such moment.
 */
export const whenLed = async (
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly string[],
  { withinMs, lookMs = LOOK_MS }: { readonly withinMs: number; readonly lookMs?: number },
): Promise<void> => {
  const deadline = performance.now() + withinMs;
  for (;;) {
    if (await areLed(admin, topics)) return;
    if (performance.now() > deadline)
      throw new KafkaFault(
        'unreachable',
        `the topics were made, but nobody leads all of them after ${withinMs / 1000} s: ${topics.join(', ')}`,
      );
    await pause(lookMs);
  }
};

const areLed = async (
  admin: Pick<Admin, 'fetchTopicMetadata'>,
  topics: readonly string[],
): Promise<boolean> => {
  try {
    const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] });
    const led = found.filter(({ partitions }) => partitions.every(({ leader }) => leader >= 0));
    return led.length === topics.length;
  } catch (error) {
    const { reason, isAnswer } = faultOf(error);
    // Not heard of yet, or led by nobody yet.
    if (reason === 'topic-missing' || (reason === 'unreachable' && isAnswer === true)) return false;
    throw error;
  }
};
