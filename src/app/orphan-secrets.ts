import type { JsonValue } from '../domain/json.ts';
import type { SecretRef } from '../domain/secret-ref.ts';
import type { EventStore, Position } from './event-store.ts';
import type { SecretStore } from './ports.ts';

/** How many values were looked at, and how many of them had no event. */
export type OrphanSweep = { readonly examined: number; readonly removed: number };

export type OrphanSweeper = {
  /** `now` is ISO time. Throws what the stores throw; the next sweep then does the work of this one too. */
  sweep(now: string, signal?: AbortSignal): Promise<OrphanSweep>;
};

/** Events read at a time, between which other work gets its turn. */
const PAGE = 500;
/** Milliseconds by which clocks of two instances and the store may differ; more costs a second look at the log. */
const CLOCKS_DIFFER_MS = 600_000;

/**
 * Removes stored secrets that no event refers to: a value is stored before its event, so a crash in between leaves it
 * behind (design §4, Secrets). Only values older than `olderThanMs` (at least the longest time a request may take) are
 * looked at, and each of them once: a sweep begins with the values, and in the log, where the last one ended. Only the
 * first sweep of a process reads the whole log, and one that is about to remove something: the repeat of an old
 * request stores its value anew, beside an event that is as old as ever.
 */
export const createOrphanSweeper = ({
  secrets,
  store,
  olderThanMs,
}: {
  secrets: SecretStore;
  store: EventStore;
  /** Milliseconds; an hour is plenty. */
  olderThanMs: number;
}): OrphanSweeper => {
  /** Values stored before this time (epoch milliseconds) have been looked at. */
  let sweptBefore = -Infinity;
  /** Where the log ended at earlier sweeps, oldest first: what came later lies behind. */
  let ends: readonly { readonly at: number; readonly position: Position | undefined }[] = [];

  return {
    sweep: async (now, signal) => {
      const at = Date.parse(now);
      const before = at - olderThanMs;
      const candidates = new Map<string, Pick<SecretRef, 'id' | 'version'>>();
      let examined = 0;
      for await (const { id, version, storedAt } of secrets.list()) {
        const stored = Date.parse(storedAt);
        if (stored < sweptBefore || stored >= before) continue;
        examined += 1;
        candidates.set(keyOf(id, version), { id, version });
      }
      const position = await store.lastPosition(signal);
      const since = ends.findLast((end) => end.at <= sweptBefore - CLOCKS_DIFFER_MS);
      await forgetReferenced(store, candidates, since?.position, signal);
      if (since?.position !== undefined) await forgetReferenced(store, candidates, undefined, signal);
      signal?.throwIfAborted();
      for (const orphan of candidates.values()) await secrets.remove(orphan);
      sweptBefore = before;
      ends = [...ends.filter((end) => since === undefined || end.at >= since.at), { at, position }];
      return { examined, removed: candidates.size };
    },
  };
};

const forgetReferenced = async (
  store: EventStore,
  candidates: Map<string, unknown>,
  from: Position | undefined,
  signal: AbortSignal | undefined,
): Promise<void> => {
  let after = from;
  for (let more = true; more && candidates.size > 0; ) {
    more = false;
    const page = { limit: PAGE, ...(after && { after }), ...(signal && { signal }) };
    for await (const event of store.readAll(page)) {
      more = true;
      after = event.position;
      for (const ref of secretRefsIn(event.data)) candidates.delete(keyOf(ref.id, ref.version));
    }
  }
};

/** Every SecretRef anywhere in an event's data. */
export function* secretRefsIn(value: JsonValue): Generator<Pick<SecretRef, 'id' | 'version'>> {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) yield* secretRefsIn(item);
    return;
  }
  const { id, version, fingerprint, kind } = value;
  if (
    typeof id === 'string' &&
    typeof version === 'string' &&
    typeof fingerprint === 'string' &&
    typeof kind === 'string'
  ) {
    yield { id, version };
    return;
  }
  for (const item of Object.values(value)) yield* secretRefsIn(item);
}

const keyOf = (id: string, version: string): string => JSON.stringify([id, version]);
