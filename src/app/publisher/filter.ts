import type { RecordedEvent, SubscribeOptions } from '../log/event-store.ts';
import { EVERYTHING, type TopicSpec } from '../streams/stream.ts';

/** Whether a subscription with this filter would yield the event. */
export const matchesFilter = (
  filter: TopicSpec['filter'],
  { stream, type }: Pick<RecordedEvent, 'stream' | 'type'>,
): boolean => {
  if (filter === undefined || filter === EVERYTHING || 'alsoStoreRecords' in filter) return true;
  return 'streamPrefixes' in filter
    ? filter.streamPrefixes.some((prefix) => stream.startsWith(prefix))
    : filter.typePrefixes.some((prefix) => type.startsWith(prefix));
};

/**
 * The one category of streams of which a filter lets anything through; undefined: it cannot be said. A category stands in
 * front of the first hyphen of a stream's name.
 */
export const categoryOf = (filter: TopicSpec['filter']): string | undefined => {
  if (filter === undefined || filter === EVERYTHING || !('streamPrefixes' in filter)) return undefined;
  const [prefix, ...others] = filter.streamPrefixes;
  const end = prefix?.indexOf('-') ?? -1;
  return others.length > 0 || end < 0 ? undefined : prefix?.slice(0, end);
};

/** The filter of a topic as a subscription takes it. */
export const filterFor = (filter: TopicSpec['filter']): Pick<SubscribeOptions, 'filter'> =>
  filter === undefined || filter === EVERYTHING ? {} : { filter };
