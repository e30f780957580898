import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { openLogForWriting, pragma } from '../../../src/adapters/event-store/sqlite/schema.ts';
import {
  encodeAppend,
  NO_APPEND,
  type Batch,
} from '../../../src/adapters/event-store/sqlite/writer-protocol.ts';
import { createWriter } from '../../../src/adapters/event-store/sqlite/writer.ts';
import { numbered } from './contract/fixture.ts';
import { resources } from './support/files.ts';

/**
 * After a failed COMMIT a complete frame of it may stand in the write-ahead log behind the valid part, and a recovery
 * would bring it to life. Only a commit of our own overwrites it: before that, "not stored" must not be said.
 */
describe('sqlite writer: a COMMIT that failed', () => {
  const made = resources();
  afterEach(made.endAll);

  const failing = async (atFault: (db: DatabaseSync) => void = () => undefined) => {
    const file = logFile(await made.dataDir());
    const db = openLogForWriting({ file });
    const other = new DatabaseSync(file, { readOnly: true });
    made.atEnd(async () => {
      other.close();
      db.close();
    });
    let fails = true;
    const writer = createWriter(db, {
      takeCommitFault: () => {
        if (!fails) return 'none';
        fails = false;
        atFault(db);
        return 'fails-unstored';
      },
    });
    const batch: Batch = [];
    encodeAppend(batch, 'a', 'no_stream', numbered('New', 2), NO_APPEND);
    return { writer, batch, commitsSeen: () => pragma(other, 'data_version') };
  };

  it('counts as not stored only after a commit of our own has succeeded', async () => {
    const { writer, batch, commitsSeen } = await failing();
    const before = commitsSeen();
    expect(writer.write(batch)).to.include({ kind: 'refused', reason: 'down' });
    expect(commitsSeen(), 'another connection sees that something was committed').to.not.equal(before);
    expect(writer.write(batch)).to.deep.include({ kind: 'settled', last: 2 });
  });

  it('is of unknown outcome when that commit fails too', async () => {
    const full = await failing((db) => db.exec('PRAGMA max_page_count = 1'));
    const before = full.commitsSeen();
    expect(full.writer.write(full.batch)).to.include({ kind: 'unknown' });
    expect(full.commitsSeen()).to.equal(before);
  });
});
