import type {
  EventFilter,
  EventToAppend,
  ExpectedRevision,
  RecordedEvent,
} from '../../../app/log/event-store.ts';
import { checkTextSizes } from './sizes.ts';

/**
 * Before anything is sent: throws TypeError for an empty append or an expected revision that no stream can have,
 * and EventTooLarge for an event or an append above the limit.
 */
export const checkAppend = (
  stream: string,
  expected: ExpectedRevision,
  events: readonly EventToAppend[],
): void => {
  if (expected !== 'no_stream' && !(Number.isSafeInteger(expected) && expected >= 0))
    throw new TypeError(`${expected} is not a revision`);
  if (events.length === 0) throw new TypeError('an append needs at least one event');
  checkTextSizes(stream, events);
};

/** Throws TypeError: only `sys-*` streams are bounded, and to at least one event. */
export const checkMaxCount = (stream: string, maxCount: number): void => {
  if (!stream.startsWith('sys-')) throw new TypeError(`only sys- streams are bounded, not ${stream}`);
  if (!Number.isSafeInteger(maxCount) || maxCount < 1)
    throw new TypeError(`a bound of ${maxCount} events makes no sense`);
};

export type Matcher = (event: Pick<RecordedEvent, 'stream' | 'type'>) => boolean;

/** Whether an event passes a filter; prefixes are literal. Without one everything passes. */
export const matcher = (filter: EventFilter | undefined): Matcher => {
  if (filter === undefined || 'alsoStoreRecords' in filter) return () => true;
  if ('streamPrefixes' in filter) {
    const { streamPrefixes } = filter;
    return (event) => streamPrefixes.some((prefix) => event.stream.startsWith(prefix));
  }
  const { typePrefixes } = filter;
  return (event) => typePrefixes.some((prefix) => event.type.startsWith(prefix));
};
