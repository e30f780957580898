import { readStoredEvent } from '../adapters/event-store/sqlite/stored-event.ts';
import { isLeafStream, leafHashOf, leafOf } from '../app/audit/merkle/leaf.ts';
import { lookAtEvent, type EventFault, type EventLook, type StoredEvent } from '../app/log/stored-event.ts';
import type { EventAsStored, StoreToLookInto } from '../cli/connection.ts';
import { registry } from '../domain/registry.ts';
import { auditReaderBeside, logIn } from './stopped-store.ts';

/** One event as the store keeps it, with everything that is wrong with it. Opens nothing for writing. */
export const lookIntoStore = async (
  which: StoreToLookInto,
  stream: string,
  revision: number,
): Promise<EventAsStored> => {
  const found = await readFrom(which, stream, revision);
  if (found.outcome === 'absent') return found;
  const { event } = found;
  const look = lookAtEvent(event, registry);
  const leaf = 'dataDir' in which ? compareWithTree(which.dataDir, event, look) : undefined;
  const faults = leaf === undefined || 'index' in leaf ? look.faults : [...look.faults, leaf];
  return {
    outcome: 'found',
    event,
    faults,
    ...(leaf !== undefined && 'index' in leaf ? { leaf: leaf.index } : {}),
  };
};

const readFrom = async (which: StoreToLookInto, stream: string, revision: number) => {
  if (!('store' in which)) return readStoredEvent(logIn(which), stream, revision);
  const remote = await import('../adapters/event-store/eventstoredb/stored-event.ts');
  const event = await remote.readStoredEvent(which.store, stream, revision);
  return event === undefined ? ({ outcome: 'absent' } as const) : ({ outcome: 'found', event } as const);
};

/**
 * The event beside the leaf that the service once made of it: shows that it was changed, also where its JSON and its checksum
 * are right. Undefined: there is no tree, or the event is not in it yet.
 */
const compareWithTree = (
  dataDir: string,
  event: StoredEvent,
  { read }: EventLook,
): EventFault | { readonly index: number } | undefined => {
  if (!isLeafStream(event.stream)) return undefined;
  try {
    const { reader, close } = auditReaderBeside(dataDir);
    try {
      const kept = reader.standing(event.stream, event.revision);
      if (kept === undefined) return undefined;
      const now = read === undefined ? undefined : leafHashOf(leafOf({ ...event, ...read }));
      return now?.equals(kept.hash) === true
        ? { index: kept.index }
        : { at: 'leaf', problem: `the audit tree has another event as leaf ${kept.index}` };
    } finally {
      close();
    }
  } catch {
    // No tree that can be read: what is known of the event without it still counts.
    return undefined;
  }
};
