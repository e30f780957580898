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

const OFFSET_LOOKS = 40;
const OFFSET_LOOK_MS = 250;

/**
 * Where the partitions of a topic begin and end. Asked again for ten seconds of one that was just made: who leads it may not
 * know that yet, or have a broker in front of it that has not heard of it. Throws what kafkajs throws.
 */
export const offsetsSoon = async (
  admin: Pick<Admin, 'fetchTopicOffsets'>,
  topic: string,
  lookMs = OFFSET_LOOK_MS,
): Promise<readonly { readonly partition: number; readonly low: string; readonly high: string }[]> => {
  for (let looks = 1; ; looks += 1) {
    try {
      return await admin.fetchTopicOffsets(topic);
    } catch (error) {
      if ((error as { readonly retriable?: unknown }).retriable !== true || looks === OFFSET_LOOKS)
        throw error;
      await pause(lookMs);
    }
  }
};
