import type {
  EventStore,
  RecordedEvent,
  SubscriptionItem,
  UnreadableEvent,
} from '../../../src/app/log/event-store.ts';

export const REASON = 'its data is not a JSON object';

export const unreadableOf = ({
  data: _data,
  metadata: _metadata,
  ...event
}: RecordedEvent): UnreadableEvent => ({ ...event, reason: REASON });

/** A store in which some events are none of ours, as a foreign writer leaves them in one of our streams. */
export const withUnreadable = (store: EventStore, isOne: (event: RecordedEvent) => boolean): EventStore => {
  async function* readable(events: AsyncIterable<RecordedEvent>): AsyncGenerator<RecordedEvent> {
    for await (const event of events) {
      if (isOne(event))
        throw new Error(`event ${event.revision} of ${event.stream} cannot be read: ${REASON}`);
      yield event;
    }
  }
  return {
    ...store,
    readStream: (stream, options) => readable(store.readStream(stream, options)),
    readAll: (options) => readable(store.readAll(options)),
    subscribe: async function* (options): AsyncGenerator<SubscriptionItem> {
      for await (const item of store.subscribe(options))
        if (item.kind === 'event' && isOne(item.event))
          yield { kind: 'unreadable', event: unreadableOf(item.event) };
        else yield item;
    },
  };
};
