import type { EventFilter, RecordedEvent } from '../event-store.ts';

/** Whether a subscription with this filter would yield the event. */
export const matchesFilter = (
  filter: EventFilter | undefined,
  { stream, type }: Pick<RecordedEvent, 'stream' | 'type'>,
): boolean => {
  if (filter === undefined) return true;
  return 'streamPrefixes' in filter
    ? filter.streamPrefixes.some((prefix) => stream.startsWith(prefix))
    : filter.typePrefixes.some((prefix) => type.startsWith(prefix));
};
