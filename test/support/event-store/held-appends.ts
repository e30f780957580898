import { OutcomeUnknown, type EventStore } from '../../../src/app/log/event-store.ts';

/** Appends that are held back at a point that a test chooses. */
export type Gate = { readonly store: EventStore; readonly reached: Promise<void>; readonly open: () => void };

/** The first append of such an event waits in front of the server until the gate is opened. */
export const gateBefore = (store: EventStore, type: string): Gate => {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  let passed = false;
  return {
    reached: reached.promise,
    open: () => opened.resolve(),
    store: {
      ...store,
      append: async (stream, expected, events, options) => {
        if (!passed && events.some((event) => event.type === type)) {
          passed = true;
          reached.resolve();
          await opened.promise;
        }
        return store.append(stream, expected, events, options);
      },
    },
  };
};

/** Appends of such an event stay on the wire: their outcome is not known, and they arrive when `deliver` is called. */
export const delaying = (store: EventStore, type: string) => {
  const onTheWire: (() => Promise<unknown>)[] = [];
  return {
    deliver: () => Promise.allSettled(onTheWire.splice(0).map((append) => append())),
    store: {
      ...store,
      append: async (stream, expected, events, options) => {
        if (!events.some((event) => event.type === type))
          return store.append(stream, expected, events, options);
        onTheWire.push(() => store.append(stream, expected, events, options));
        throw new OutcomeUnknown(stream);
      },
    } satisfies EventStore as EventStore,
  };
};
