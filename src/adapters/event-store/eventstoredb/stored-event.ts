import { FORWARDS } from '@eventstore/db-client';
import { StoreUnavailable } from '../../../app/log/event-store.ts';
import type { StoredEvent } from '../../../app/log/stored-event.ts';
import { checkConnectionString, connect } from './client.ts';
import { knownPosition } from './convert.ts';
import { isDeletedStream, isMissingStream } from './errors.ts';

/**
 * One event as an EventStoreDB keeps it, whoever wrote it; undefined: there is none. Of JSON that can be parsed the client
 * hands on the value, so that its text is shown without the spaces that were stored. Only reads.
 */
export const readStoredEvent = async (
  connectionString: string,
  stream: string,
  revision: number,
): Promise<StoredEvent | undefined> => {
  checkConnectionString(connectionString);
  const client = connect(connectionString, 'ledgerctl', 0);
  try {
    const events = client.api.readStream(stream, {
      fromRevision: BigInt(revision),
      direction: FORWARDS,
      maxCount: 1,
      requiresLeader: true,
    });
    for await (const { event } of events) {
      if (event === undefined || Number(event.revision) !== revision) continue;
      return {
        position: knownPosition(event.position) ?? '',
        stream: event.streamId,
        revision,
        id: event.id,
        type: event.type,
        recordedAt: event.created.toISOString(),
        data: bytesOf(event.data),
        metadata: bytesOf(event.metadata ?? {}),
        faults: event.isJson
          ? []
          : [{ at: 'content type', problem: 'not application/json: another writer stored it' }],
      };
    }
    return undefined;
  } catch (error) {
    if (isMissingStream(error) || isDeletedStream(error)) return undefined;
    throw new StoreUnavailable(`${stream} cannot be read: ${String(error)}`, 'down', { cause: error });
  } finally {
    await client.dispose();
  }
};

/** What the client could not parse it hands on as text or bytes. */
const bytesOf = (value: unknown): Uint8Array => {
  if (value instanceof Uint8Array) return value;
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value), 'utf8');
};
