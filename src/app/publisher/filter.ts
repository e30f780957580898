import type { RecordedEvent, SubscribeOptions } from '../event-store.ts';
import { EVERYTHING, type TopicSpec } from '../streams/stream.ts';

/** Whether a subscription with this filter would yield the event. */
export const matchesFilter = (
  filter: TopicSpec['filter'],
  { stream, type }: Pick<RecordedEvent, 'stream' | 'type'>,
): boolean => {
  if (filter === undefined || filter === EVERYTHING) return true;
  return 'streamPrefixes' in filter
    ? filter.streamPrefixes.some((prefix) => stream.startsWith(prefix))
    : filter.typePrefixes.some((prefix) => type.startsWith(prefix));
};

/** The filter of a topic as a subscription takes it. */
export const filterFor = (filter: TopicSpec['filter']): Pick<SubscribeOptions, 'filter'> =>
  filter === undefined || filter === EVERYTHING ? {} : { filter };
