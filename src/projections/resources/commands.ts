import type { DatabaseSync } from 'node:sqlite';
import type { Position, RecordedEvent } from '../../app/log/event-store.ts';
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

/** No event is held here: what was parsed dies young. */
type Append = {
  readonly stream: string;
  readonly first: number;
  readonly requestHash: string;
  revision: number;
  position: Position;
};

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
      const { stream, revision, position, metadata } = event;
      const appends = pending.get(commandId);
      const known = appends?.find((append) => append.stream === stream);
      if (known !== undefined) {
        Object.assign(known, { revision, position });
        return;
      }
      const requestHash = textIn(metadata, 'requestHash');
      const append = { stream, first: revision, requestHash, revision, position };
      if (appends !== undefined) appends.push(append);
      else pending.set(commandId, [append]);
    },
    flush: () => {
      // In the order of the index, so that neighbours share its pages.
      const sorted = [...pending].map(([id, appends]) => ({ bytes: commandBytes(id), appends }));
      sorted.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
      for (const { bytes, appends } of sorted) {
        for (const { stream, first, revision, position, requestHash } of appends)
          upsert.run(bytes, stream, first, revision, position, requestHash);
      }
      pending.clear();
    },
    reset: () => pending.clear(),
  };
};
