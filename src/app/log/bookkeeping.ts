import { bookkeepingEventTypes } from '../../domain/bookkeeping/event-types.ts';
import type { BookkeepingEvent } from '../../domain/bookkeeping/events.ts';
import { createEventCodec } from './event-codec.ts';
import type { EventToAppend } from './event-store.ts';
import { eventId } from './identifiers.ts';
import { systemMetadata } from './metadata.ts';

/**
 * Makes an event of a `sys-` stream: checked by its schema, with complete metadata and an id that is the same for
 * every retry under one command id. `command` names what was done, for example `TakeLease`.
 */
export const createBookkeeping = (instance: string) => {
  const codec = createEventCodec(bookkeepingEventTypes);
  return (stream: string, event: BookkeepingEvent, command: string, commandId: string): EventToAppend =>
    codec.encode(
      event,
      eventId(commandId, stream, 0),
      systemMetadata(commandId, command, event.data.at, instance),
    );
};
