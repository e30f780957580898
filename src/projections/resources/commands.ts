import type { DatabaseSync } from 'node:sqlite';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { commandIdOf, textIn } from './fold.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** A command id as the index holds it: 16 bytes of a UUID; any other text behind a zero byte, so that none collide. */
export const commandBytes = (id: string): Buffer =>
  UUID.test(id) ? Buffer.from(id.replaceAll('-', ''), 'hex') : Buffer.from(`\0text:${id}`, 'utf8');

/** The table `commands`, written in batches. */
export type CommandLog = {
  readonly add: (event: RecordedEvent) => void;
  readonly flush: () => void;
  readonly reset: () => void;
};

type Append = { readonly first: RecordedEvent; last: RecordedEvent };

export const openCommandLog = (db: DatabaseSync): CommandLog => {
  const upsert = db.prepare(
    `INSERT INTO commands VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (command_id, stream) DO UPDATE SET revision = excluded.revision, position = excluded.position`,
  );
  // By command, then by stream: nearly every command touches one.
  const pending = new Map<string, Append[]>();
  return {
    add: (event) => {
      const commandId = commandIdOf(event);
      if (commandId === '') return;
      const appends = pending.get(commandId);
      const known = appends?.find(({ first }) => first.stream === event.stream);
      if (known !== undefined) known.last = event;
      else if (appends !== undefined) appends.push({ first: event, last: event });
      else pending.set(commandId, [{ first: event, last: event }]);
    },
    flush: () => {
      // In the order of the index, so that neighbours share its pages.
      const sorted = [...pending].map(([id, appends]) => ({ bytes: commandBytes(id), appends }));
      sorted.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
      for (const { bytes, appends } of sorted) {
        for (const { first, last } of appends)
          upsert.run(
            bytes,
            first.stream,
            first.revision,
            last.revision,
            last.position,
            textIn(first.metadata, 'requestHash'),
          );
      }
      pending.clear();
    },
    reset: () => pending.clear(),
  };
};
