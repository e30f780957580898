import type { Logger } from '../../../app/ports.ts';
import { hubNumbers, valueOf, type HubChannel } from './channel.ts';
import type { Ask, Told } from './protocol.ts';
import { createRoom, type RoomOptions } from './room.ts';

/** In the caller's thread: for tests with virtual time. */
export const createInlineChannel = (
  options: Omit<RoomOptions, 'note'> & { readonly logger: Logger },
): HubChannel => {
  const { nextHub, log } = hubNumbers(options.logger);
  const room = createRoom({ ...options, note: log });
  return {
    nextHub,
    ask: async <A extends Ask>(hub: number, question: A) =>
      valueOf(await room.answer(hub, question)) as Told<A>,
    close: () => Promise.resolve(),
  };
};
