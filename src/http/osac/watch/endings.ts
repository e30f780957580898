import { ApiError } from '../../errors.ts';

/**
 * Why a watch ends by itself, and where to resume: `last_id` is the id of the last event that was sent on this answer,
 * or what it began after when there was none.
 */
export type Ending = (lastId: string | undefined) => ApiError;

const ending =
  (
    error: 'RESOURCE_EXHAUSTED' | 'UNAVAILABLE' | 'ABORTED' | 'OUT_OF_RANGE',
    reason: string,
    text: string,
  ): Ending =>
  (lastId) =>
    new ApiError(error, text, { reason, facts: lastId === undefined ? {} : { last_id: lastId } });

export const tooSlow = ending(
  'RESOURCE_EXHAUSTED',
  'WATCH_TOO_SLOW',
  'the watcher stopped reading, so its watch was closed; watch again from last_id to miss nothing',
);
export const stopping = ending(
  'UNAVAILABLE',
  'SHUTTING_DOWN',
  'this instance stops; watch again from last_id to miss nothing',
);
export const rightsChanged = ending(
  'ABORTED',
  'RIGHTS_CHANGED',
  'the rights of the caller have changed; list again, then watch again',
);
export const logReplaced = ending(
  'ABORTED',
  'LOG_REPLACED',
  'the event store went back to an earlier state; list again, then watch without an id to begin at',
);
export const fellOutOfRetention = ending(
  'OUT_OF_RANGE',
  'FROM_TOO_OLD',
  'changes that were not read yet are no longer kept; watch again without an id to begin at, then list to see what is there now',
);
export const readFailed = ending(
  'UNAVAILABLE',
  'READ_FAILED',
  'the changes cannot be read now; watch again from last_id to miss nothing',
);
/** The token's time is over, or it is not accepted any more. */
export const notAccepted =
  (cause: ApiError): Ending =>
  (lastId) =>
    new ApiError(cause.error, cause.message, {
      reason: cause.reason,
      facts: lastId === undefined ? {} : { last_id: lastId },
      cause,
    });
