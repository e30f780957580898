import { randomUUID } from 'node:crypto';
import { StoreUnavailable } from '../../../../src/app/log/event-store.ts';
import { openSqliteEventStore } from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';

/**
 * A process that appends: `node appender.child.ts <data dir> <run> <clients> <appends per client>`.
 * Prints `open`, then `ack <stream> <revision> <id>` for each acknowledged event, `full` when the store is full,
 * `closed` in the end. After `full` it waits for a line on its input, then appends one more event and closes.
 */
const [dataDir = '', run = '', clients = '1', appends = '1'] = process.argv.slice(2);
const say = (...words: (string | number)[]): void => void process.stdout.write(`${words.join(' ')}\n`);

const store = await openSqliteEventStore({ dataDir });
say('open', process.pid);

const appendOne = async (stream: string, revision: number): Promise<void> => {
  const id = randomUUID();
  const event = { id, type: 'Appended', data: JSON.stringify({ text: 'x'.repeat(300) }), metadata: '{}' };
  await store.append(stream, revision === 0 ? 'no_stream' : revision - 1, [event]);
  say('ack', stream, revision, id);
};

const client = async (c: number): Promise<boolean> => {
  for (let revision = 0; revision < Number(appends); revision += 1) {
    try {
      await appendOne(`run-${run}-${c}`, revision);
    } catch (error) {
      if (error instanceof StoreUnavailable && error.reason === 'full') return true;
      throw error;
    }
  }
  return false;
};

const full = await Promise.all(Array.from({ length: Number(clients) }, (_, c) => client(c)));
if (full.includes(true)) {
  say('full');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  process.stdin.destroy();
  await appendOne(`run-${run}-afterwards`, 0).catch((error: unknown) => say('refused', String(error)));
}
await store.close();
say('closed');
