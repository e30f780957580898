import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { expect } from 'chai';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { createLogReader } from '../../../src/adapters/event-store/sqlite/log-reader.ts';
import { createGrowth } from '../../../src/adapters/event-store/shared/paged-subscription.ts';
import { all, numbered } from './contract/fixture.ts';
import { resources } from './support/files.ts';

/** A connection that remembers what was prepared on it. */
class RecordingDatabase extends DatabaseSync {
  readonly prepared: string[] = [];
  override prepare(sql: string): StatementSync {
    this.prepared?.push(sql);
    return super.prepare(sql);
  }
}

describe('sqlite event store: reads on the HTTP thread', () => {
  const made = resources();
  afterEach(made.endAll);

  it('never scan: every statement of the reader goes through a key', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    await store.append('a', 'no_stream', numbered('A', 3));
    await store.close();
    const db = new RecordingDatabase(logFile(dataDir), { readOnly: true });
    const reader = createLogReader(db, logFile(dataDir), createGrowth());
    for (const filter of [undefined, { streamPrefixes: ['a', 'b'] }, { typePrefixes: ['A'] }]) {
      const controller = new AbortController();
      for await (const item of reader.subscribe({ ...(filter && { filter }), signal: controller.signal }))
        if (item.kind === 'caught-up') controller.abort();
    }
    await all(reader.readStream('a'));
    await all(reader.readStream('a', { direction: 'backward' }));
    await all(reader.readAll({ limit: 1 }));
    await reader.currentRevision('a');
    await reader.lastPosition();
    const statements = new Set(db.prepared);
    expect(statements.size).to.be.at.least(8);
    for (const sql of statements) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
      for (const step of plan)
        expect(String(step['detail']), sql).to.not.match(/^SCAN (?!CONSTANT)|TEMP B-TREE/);
    }
    await reader.close();
  });
});
