import type { EventStore } from '../app/log/event-store.ts';
import { kindOf } from '../domain/kinds.ts';
import { parseStreamName } from '../domain/stream-name.ts';
import type { ReadModels } from '../projections/read-models.ts';

/** Milliseconds that a deletion waits for the read model before it is to be repeated. */
const WAIT_MS = 2_000;
/** Events that the read model may be behind for it to be worth waiting. */
const MOST_BEHIND = 2_000;
const VIEW = 'resources';

/**
 * Resolves true once the read model shows every resource that the log held at the call. The end of the log alone does
 * not say that: the position of a view moves on at the events it shows, and only now and then at others.
 */
export const caughtUpWith =
  (store: Pick<EventStore, 'readAll'>, readModels: Pick<ReadModels, 'status' | 'waitFor'>) =>
  async (signal?: AbortSignal): Promise<boolean> => {
    const after = readModels.status().find(({ name }) => name === VIEW)?.position;
    const range = { limit: MOST_BEHIND, ...(after && { after }), ...(signal && { signal }) };
    let last: string | undefined;
    let behind = 0;
    for await (const { stream, position } of store.readAll(range)) {
      behind += 1;
      if (kindOf(parseStreamName(stream).category) !== undefined) last = position;
    }
    if (behind === MOST_BEHIND) return false;
    return (
      last === undefined || readModels.waitFor(VIEW, last, { timeoutMs: WAIT_MS, ...(signal && { signal }) })
    );
  };
