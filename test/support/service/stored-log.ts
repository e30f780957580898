import { createEventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { Stack } from './stack.ts';

/** The whole log with its metadata, read beside the service: also while that is dead. */
export const readLog = async (stack: Stack): Promise<readonly RecordedEvent[]> => {
  const reader =
    stack.store === 'sqlite'
      ? openSqliteLogReader({ dataDir: stack.dataDir })
      : await createEventStoreDbStore({
          connectionString: stack.peer.connectionString,
          instance: 'test',
        });
  try {
    const events: RecordedEvent[] = [];
    for await (const event of reader.readAll({ limit: Infinity })) events.push(event);
    return events;
  } finally {
    await reader.close();
  }
};

export const metadataText = (event: RecordedEvent, name: string): string => textOf(event.metadata, name);
export const dataText = (event: RecordedEvent, name: string): string => textOf(event.data, name);

const textOf = (object: JsonObject, name: string): string => {
  const value = object[name];
  return typeof value === 'string' ? value : '';
};
