import { DatabaseSync } from 'node:sqlite';
import { expect } from 'chai';
import fc from 'fast-check';
import { checkSqliteStore } from '../../../src/adapters/event-store/sqlite/check-store.ts';
import { StoreDamaged } from '../../../src/adapters/event-store/sqlite/errors.ts';
import { createWriterFaults } from '../../../src/adapters/event-store/sqlite/faults.ts';
import { logFile } from '../../../src/adapters/event-store/sqlite/files.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import { readStoredEvent } from '../../../src/adapters/event-store/sqlite/stored-event.ts';
import type { EventToAppend } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { all, errorOf, event } from './contract/fixture.ts';
import { resources } from './support/files.ts';
import { checkAsync } from '../../support/property.ts';

const CALLER = { tenant: 'acme', actor: { subjectId: 'ann' }, correlationId: 'r-1' };
const told = (command: string, more: JsonObject = {}): EventToAppend =>
  event('Told', {}, { ...CALLER, command, commandId: `id of ${command}`, ...more });

describe('sqlite event store: what the metadata of events has in common', function () {
  this.timeout(60_000);
  const made = resources();
  afterEach(made.endAll);

  const rowsOf = (dataDir: string, sql: string): readonly object[] => {
    const db = new DatabaseSync(logFile(dataDir));
    try {
      return db
        .prepare(sql)
        .all()
        .map((row) => ({ ...row }));
    } finally {
      db.close();
    }
  };
  const metadataIn = async (dataDir: string): Promise<JsonObject[]> => {
    const reader = openSqliteLogReader({ dataDir });
    try {
      return (await all(reader.readAll({ limit: Infinity }))).map(({ metadata }) => metadata);
    } finally {
      await reader.close();
    }
  };

  it('can be changed by no reader, since it is one object for all events that have it', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    await store.append('a', 'no_stream', [told('one')]);
    await store.append('b', 'no_stream', [told('two')]);
    const [first] = await metadataIn(dataDir);
    expect(() => Object.assign(first?.['actor'] as object, { subjectId: 'eve' })).to.throw(TypeError);
  });

  it('is stored once: of a caller, of a request, and of the events of one append', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    await store.append('a', 'no_stream', [told('one')]);
    await store.append('b', 'no_stream', [told('two')]);
    const hidden = { paths: ['/data/x'], salt: '0'.repeat(32) };
    await store.append('c', 'no_stream', [told('three', { hidden }), told('three')]);
    expect(rowsOf(dataDir, 'SELECT parent, text FROM contexts ORDER BY id')).to.deep.equal([
      { parent: null, text: '{"tenant":"acme","actor":{"subjectId":"ann"}' },
      { parent: 1, text: ',"correlationId":"r-1"' },
      { parent: 2, text: ',"command":"three","commandId":"id of three"' },
    ]);
    expect(rowsOf(dataDir, 'SELECT context, metadata FROM events ORDER BY position')).to.deep.equal([
      { context: 2, metadata: ',"command":"one","commandId":"id of one"}' },
      { context: 2, metadata: ',"command":"two","commandId":"id of two"}' },
      { context: 3, metadata: `,"hidden":${JSON.stringify(hidden)}}` },
      { context: 3, metadata: '}' },
    ]);
  });

  it('is told with each event as it was, whatever it was', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    const text = fc.constantFrom(',"command":', ',"hidden":', ',"correlationId":', '{', 'x', '\u{1f600}');
    const key = fc.constantFrom('tenant', 'correlationId', 'command', 'hidden', 'n', ',"command":');
    const anyMetadata = fc.dictionary(
      key,
      fc.oneof(text, fc.nat(20), fc.dictionary(key, text)),
    ) as fc.Arbitrary<JsonObject>;
    let streams = 0;
    const given: JsonObject[] = [];
    await checkAsync(
      fc.asyncProperty(fc.array(anyMetadata, { minLength: 1, maxLength: 4 }), async (append) => {
        streams += 1;
        given.push(...append);
        await store.append(
          `any-${streams}`,
          'no_stream',
          append.map((metadata) => event('Any', {}, metadata)),
        );
        const read = await all(store.readStream(`any-${streams}`));
        expect(read.map(({ metadata }) => metadata)).to.deep.equal(append);
      }),
      { numRuns: 100 },
    );
    expect(await metadataIn(dataDir)).to.deep.equal(given);
  });

  it('is stored again when the batch that held it was not stored', async () => {
    const dataDir = await made.dataDir();
    const faults = createWriterFaults();
    const store = await made.openStore(dataDir, { faults });
    faults.failNextCommit('fails-unstored');
    await errorOf(store.append('a', 'no_stream', [told('one')]));
    await store.append('b', 'no_stream', [told('two')]);
    expect(await metadataIn(dataDir)).to.deep.equal([{ ...CALLER, command: 'two', commandId: 'id of two' }]);
  });

  it('leaves nothing of a bounded stream behind', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    await store.setMaxCount('sys-bounded', 1);
    await store.append('sys-bounded', 'no_stream', [told('one'), told('one')]);
    expect(rowsOf(dataDir, 'SELECT * FROM contexts')).to.deep.equal([]);
  });

  for (const [what, sql] of [
    ['changed', `UPDATE contexts SET text = replace(text, 'ann', 'bob') WHERE id = 1`],
    ['missing', 'DELETE FROM contexts WHERE id = 2'],
    ['its own parent', 'UPDATE contexts SET parent = 2 WHERE id = 2'],
  ] as const)
    it(`is never taken from a context that is ${what}`, async () => {
      const dataDir = await made.dataDir();
      const store = await made.openStore(dataDir);
      await store.append('a', 'no_stream', [told('one')]);
      await store.close();
      const db = new DatabaseSync(logFile(dataDir), { enableForeignKeyConstraints: false });
      db.exec(sql);
      db.close();
      const error = await errorOf(metadataIn(dataDir));
      expect(error).to.be.instanceOf(StoreDamaged);
      expect(String(error)).to.include('context 2 of event a@0');
      const { findings } = await checkSqliteStore(dataDir);
      expect(findings.map(({ check }) => check)).to.deep.equal(['reference']);
      const found = readStoredEvent(logFile(dataDir), 'a', 0);
      expect(found.outcome === 'found' && found.event.faults.map(({ at }) => at)).to.deep.equal(['context']);
      expect(await errorOf(made.openStore(dataDir))).to.be.instanceOf(StoreDamaged);
    });

  it('is not taken from another context than the one it was stored with', async () => {
    const dataDir = await made.dataDir();
    const store = await made.openStore(dataDir);
    await store.append('a', 'no_stream', [told('one')]);
    await store.append('b', 'no_stream', [told('two', { correlationId: 'r-2' })]);
    await store.close();
    rowsOf(dataDir, `UPDATE events SET context = 3 WHERE position = 1`);
    expect(await errorOf(metadataIn(dataDir))).to.be.instanceOf(StoreDamaged);
  });
});
