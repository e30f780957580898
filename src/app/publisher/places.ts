import { TopicIsNew } from './topic-is-new.ts';
import type { Ends, Stored } from './ports.ts';

/**
 * Where the records of a topic went, as far as is known: of each partition the offset at which the newest records begin that
 * the brokers have confirmed together.
 */
export type Places = ReadonlyMap<number, bigint>;

/** Of a topic of which nothing is told. */
export const NO_ENDS: Ends = new Map();

/** Nothing was ever written to it. */
export const isEmpty = (ends: Ends): boolean => ends.values().every((end) => end === 0n);

/**
 * Whether it is not the topic that records went to before, but another one of its name: it holds nothing, or ends in front of
 * where they went.
 */
export const isAnother = (ends: Ends, places: Places): boolean =>
  isEmpty(ends) || places.entries().some(([partition, at]) => (ends.get(partition) ?? 0n) <= at);

/**
 * Where the records of a topic went. When they lie further in front than earlier ones the topic is another one of the same
 * name, made while a send was tried again: what was sent before is not there. They are stored with the position, since
 * whoever sees that may die before it is known to anybody else.
 */
export const createPlaces = (topic: string) => {
  let last = new Map<number, bigint>();
  return {
    /** What an earlier session, or somebody else, has stored. */
    start: (places: Places): void => {
      last = new Map(places);
    },
    all: (): Places => new Map(last),
    /** `wasMissing`: the topic was not there for a while. Throws TopicIsNew. */
    add: (stored: readonly Stored[], wasMissing: boolean): void => {
      for (const { partition, offset } of stored) {
        const at = BigInt(offset);
        // What the brokers do not tell.
        if (at < 0n) continue;
        if (at <= (last.get(partition) ?? -1n) || (wasMissing && at === 0n)) {
          last.clear();
          throw new TopicIsNew(topic);
        }
        last.set(partition, at);
      }
    },
    forget: (): void => last.clear(),
  };
};
