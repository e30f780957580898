import { TopicIsNew } from './recreated-topic.ts';
import type { Ends, Stored } from './ports.ts';

/** Where the records of a topic went, as far as is known. */
export type Places = {
  /** Of each partition the offset at which the newest records begin that the brokers have confirmed together. */
  readonly offsets: ReadonlyMap<number, bigint>;
  /** Of the topic that they went to, as it was before the first of them; undefined: not known. */
  readonly topicId: string | undefined;
};

/** Of a topic of which nothing is told. */
export const NO_ENDS: Ends = { offsets: new Map(), topicId: undefined };

/** Nothing was ever written to it. */
export const isEmpty = ({ offsets }: Ends): boolean => offsets.values().every((end) => end === 0n);

/**
 * Whether it is not the topic that records went to before, but another one of its name. Its id tells that; where brokers have no
 * ids, or none was stored yet, that it holds nothing or ends in front of where they went.
 */
export const isAnother = (ends: Ends, { topicId, offsets }: Places): boolean =>
  isEmpty(ends) ||
  (topicId !== undefined && ends.topicId !== undefined && topicId !== ends.topicId) ||
  offsets.entries().some(([partition, at]) => (ends.offsets.get(partition) ?? 0n) <= at);

/**
 * Where the records of a topic went. When they lie further in front than earlier ones the topic is another one of the same
 * name, made while a send was tried again: what was sent before is not there. They are stored with the position, since
 * whoever sees that may die before it is known to anybody else.
 */
export const createPlaces = (topic: string) => {
  let last = new Map<number, bigint>();
  let topicId: string | undefined;
  const forget = (): void => {
    last.clear();
    topicId = undefined;
  };
  return {
    /** What an earlier session, or somebody else, has stored. */
    start: (places: Places): void => {
      last = new Map(places.offsets);
      topicId = places.topicId;
    },
    all: (): Places => ({ offsets: new Map(last), topicId }),
    /** What is sent from now on goes to this one. One that is known already stays, until another look has told it to be another. */
    goTo: (ends: Ends): void => {
      topicId ??= ends.topicId;
    },
    /** `wasMissing`: the topic was not there for a while. Throws TopicIsNew. */
    add: (stored: readonly Stored[], wasMissing: boolean): void => {
      for (const { partition, offset } of stored) {
        const at = BigInt(offset);
        // What the brokers do not tell.
        if (at < 0n) continue;
        if (at <= (last.get(partition) ?? -1n) || (wasMissing && at === 0n)) {
          forget();
          throw new TopicIsNew(topic);
        }
        last.set(partition, at);
      }
    },
    forget,
  };
};
