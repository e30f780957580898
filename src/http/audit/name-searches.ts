import { createStreamQueue } from '../../app/commands/stream-queue.ts';
import { tooMuch } from '../errors.ts';

/**
 * Looks for people by name, one after another on an instance: each takes some seconds of the thread where there are
 * thousands of people, in small steps; many at once would leave little between two steps of one of them.
 */
export type NameSearches = {
  /** Throws ApiError 429 when too many wait, and what the task throws. */
  run<T>(task: () => Promise<T>, signal: AbortSignal): Promise<T>;
};

const MOST_WAITING = 16;

export const createNameSearches = (most: number = MOST_WAITING): NameSearches => {
  const queue = createStreamQueue();
  let inHand = 0;
  return {
    run: async (task, signal) => {
      if (inHand > most)
        throw tooMuch(
          'others are looking for people by name already; try again, or give the id',
          'SEARCHES_BUSY',
          5,
        );
      inHand += 1;
      let counts = true;
      // Who has gone while waiting keeps nobody out; what has begun ends by itself.
      const leave = (): void => {
        if (counts) inHand -= 1;
        counts = false;
      };
      signal.addEventListener('abort', leave, { once: true });
      try {
        return await queue.run('', async () => {
          signal.throwIfAborted();
          signal.removeEventListener('abort', leave);
          return task();
        });
      } finally {
        signal.removeEventListener('abort', leave);
        leave();
      }
    },
  };
};
