import type { JsonValue } from '../domain/json.ts';
import type { SecretRef } from '../domain/secret-ref.ts';
import type { EventStore, Position } from './event-store.ts';
import type { SecretStore } from './ports.ts';

export type OrphanSweep = { readonly examined: number; readonly removed: number };

/** Events read at a time, between which other work gets its turn. */
const PAGE = 500;

/**
 * Removes stored secrets that no event refers to: a value is stored before its event, so a crash in between leaves it
 * behind (design §4, Secrets). Only values older than `olderThanMs` (at least the longest time a request may take) are
 * looked at. Reads the log once, and only when there is something to look for.
 */
export const sweepOrphanSecrets = async ({
  secrets,
  store,
  now,
  olderThanMs,
  signal,
}: {
  secrets: SecretStore;
  store: EventStore;
  /** ISO time. */
  now: string;
  /** Milliseconds; an hour is plenty. */
  olderThanMs: number;
  signal?: AbortSignal;
}): Promise<OrphanSweep> => {
  const before = Date.parse(now) - olderThanMs;
  const candidates = new Map<string, Pick<SecretRef, 'id' | 'version'>>();
  let examined = 0;
  for await (const { id, version, storedAt } of secrets.list()) {
    examined += 1;
    if (Date.parse(storedAt) < before) candidates.set(keyOf(id, version), { id, version });
  }
  await forgetReferenced(store, candidates, signal);
  signal?.throwIfAborted();
  for (const orphan of candidates.values()) await secrets.remove(orphan);
  return { examined, removed: candidates.size };
};

const forgetReferenced = async (
  store: EventStore,
  candidates: Map<string, unknown>,
  signal: AbortSignal | undefined,
): Promise<void> => {
  let after: Position | undefined;
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
