import type { HubObjectEvent } from '../../../domain/hubs/hub-object.ts';

/** Events told at once: few enough that taking them over does not hold the thread that answers HTTP. */
const MAX_BATCH = 50;
const MAX_BATCH_BYTES = 262_144;

const SYNCED = ' synced';

export type PendingEvents = {
  /** Of one object only its newest state waits; a new object of the same name is another one. */
  push(event: HubObjectEvent, bytes: number): void;
  /** Events that wait, oldest first; waits for the first. Undefined: the watch is over. Throws what it ended by. */
  take(): Promise<readonly HubObjectEvent[] | undefined>;
  /** Resolves when there is room for more: what waits is bounded by number and size. */
  room(): Promise<void>;
  end(error?: Error): void;
};

/** Between the stream of a hub and whoever reads it: bounded, in order per object, changes coalesced. */
export const createPendingEvents = (limits: {
  readonly events: number;
  readonly bytes: number;
}): PendingEvents => {
  const waiting = new Map<string, { readonly event: HubObjectEvent; readonly bytes: number }>();
  let bytes = 0;
  let ended = false;
  let failure: Error | undefined;
  let changed = Promise.withResolvers<void>();
  const signal = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const drop = (key: string): void => {
    bytes -= waiting.get(key)?.bytes ?? 0;
    waiting.delete(key);
  };
  const batch = (): readonly HubObjectEvent[] => {
    const taken: HubObjectEvent[] = [];
    let size = 0;
    for (const [key, one] of waiting) {
      if (taken.length >= MAX_BATCH || (taken.length > 0 && size + one.bytes > MAX_BATCH_BYTES)) break;
      taken.push(one.event);
      size += one.bytes;
      drop(key);
    }
    return taken;
  };

  return {
    push: (event, size) => {
      const key = event.type === 'synced' ? SYNCED : event.object.uid;
      // A later list replaces an earlier one and stands behind everything that it holds.
      if (event.type === 'synced') drop(key);
      else bytes -= waiting.get(key)?.bytes ?? 0;
      waiting.set(key, { event, bytes: size });
      bytes += size;
      signal();
    },
    take: async () => {
      while (waiting.size === 0 && !ended) await changed.promise;
      if (waiting.size === 0 && failure !== undefined) throw failure;
      if (waiting.size === 0) return undefined;
      const taken = batch();
      signal();
      return taken;
    },
    room: async () => {
      while ((waiting.size >= limits.events || bytes >= limits.bytes) && !ended) await changed.promise;
    },
    end: (error) => {
      ended = true;
      failure = error;
      waiting.clear();
      bytes = 0;
      signal();
    },
  };
};
