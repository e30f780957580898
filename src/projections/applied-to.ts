import type { Position } from '../app/log/event-store.ts';
import type { ReadModels } from './read-models.ts';

/**
 * Up to where a view holds everything of one stream. Undefined: nothing is known of it, since the view is not there or
 * the stream is parked: its events are passed over, though the view's position moves on.
 */
export const appliedTo = (
  readModels: Pick<ReadModels, 'status'>,
  view: string,
  stream: string,
): Position | undefined => {
  const status = readModels.status().find(({ name }) => name === view);
  return status?.parkedStreams.some((parked) => parked.stream === stream) ? undefined : status?.position;
};
