import { expect } from 'chai';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import {
  BEFORE_ALL_CHANGES,
  compareKeys,
  type ChangeKey,
} from '../../../src/projections/resources/change-reader.ts';
import { changed, createTestLog, removed, written, type TestLog } from '../../support/projections/log.ts';
import { openNotes, settle } from '../../support/projections/open-notes.ts';

const PAGE = { rows: 100, characters: 1_000_000 };

describe('change reader', () => {
  let log: TestLog;
  let models: ReadModels;
  const open = async (retentionDays = 90): Promise<void> => {
    models = await openNotes(log, { retentionDays });
    await settle(models, log);
  };
  beforeEach(() => {
    log = createTestLog();
  });
  afterEach(() => models.close());

  const texts = (after: ChangeKey, page = PAGE): string[] =>
    models.changes
      .after(after, page)
      .map(
        ({ id, type, tenant, document }) => `${id} ${type} ${tenant} ${JSON.parse(document).metadata.name}`,
      );

  it('gives what follows a key, oldest first, with tenant and document', async () => {
    const first = await log.append('note-a', written('a', { tenant: 't2' }));
    await log.append('note-b', written('b'));
    await log.append('note-a', changed('2'));
    await log.append('note-b', removed);
    await open();
    expect(texts(BEFORE_ALL_CHANGES)).to.deep.equal([
      'a created t2 name-a',
      'b created t1 name-b',
      'a updated t2 name-a',
      'b deleted t1 name-b',
    ]);
    expect(texts({ position: first, n: 0 })).to.have.length(3);
    expect(texts(models.changes.newest())).to.deep.equal([]);
  });

  it('pages by rows and by characters, and gives at least one', async () => {
    for (let i = 0; i < 5; i += 1) await log.append(`note-${i}`, written(String(i)));
    await open();
    expect(texts(BEFORE_ALL_CHANGES, { rows: 2, characters: 1_000_000 })).to.have.length(2);
    expect(texts(BEFORE_ALL_CHANGES, { rows: 100, characters: 1 })).to.have.length(1);
    const size = models.changes.after(BEFORE_ALL_CHANGES, { rows: 1, characters: 1 })[0]?.document.length;
    expect(texts(BEFORE_ALL_CHANGES, { rows: 100, characters: 2 * (size ?? 0) })).to.have.length(2);
    const seen: string[] = [];
    for (let key = BEFORE_ALL_CHANGES; ; ) {
      const page = models.changes.after(key, { rows: 2, characters: 1_000_000 });
      const last = page.at(-1);
      if (last === undefined) break;
      seen.push(...page.map(({ id }) => id));
      key = last;
    }
    expect(seen).to.deep.equal(['0', '1', '2', '3', '4']);
  });

  it('gives those of some tenants, in the order of all', async () => {
    const tenants = ['t1', 't2', 't3'];
    for (let i = 0; i < 12; i += 1)
      await log.append(`note-${i}`, written(String(i), { tenant: tenants[(i * i) % 3] ?? '' }));
    await open();
    const all = models.changes.after(BEFORE_ALL_CHANGES, PAGE);
    for (const some of [['t1'], ['t2', 't1'], tenants, ['t3'], ['nobody'], []]) {
      const own = all.filter(({ tenant }) => some.includes(tenant));
      for (const key of [BEFORE_ALL_CHANGES, ...all])
        expect(models.changes.after(key, { ...PAGE, rows: 3, tenants: some })).to.deep.equal(
          own.filter((change) => compareKeys(change, key) > 0).slice(0, 3),
        );
    }
  });

  it('knows its end, and how far back it reaches', async () => {
    await open(10);
    expect(models.changes.newest()).to.deep.equal(BEFORE_ALL_CHANGES);
    expect(models.changes.prunedTo()).to.equal(undefined);
    const first = await log.append('note-a', written('a'));
    await settle(models, log);
    expect(models.changes.newest()).to.deep.equal({ position: first, n: 0 });
    log.passDays(11);
    const second = await log.append('note-b', written('b'));
    await settle(models, log);
    expect(models.changes.prunedTo()).to.deep.equal({ position: first, n: 0 });
    expect(models.changes.newest()).to.deep.equal({ position: second, n: 0 });
  });

  it('tells when there is more, until nobody asks', async () => {
    await open();
    let told = 0;
    const stop = models.changes.onAdvance(() => {
      told += 1;
    });
    await log.append('note-a', written('a'));
    await settle(models, log);
    expect(told).to.be.greaterThan(0);
    stop();
    const before = told;
    await log.append('note-a', changed('2'));
    await settle(models, log);
    expect(told).to.equal(before);
  });

  it('goes on after a rebuild from the same key', async () => {
    await log.append('note-a', written('a'));
    await open();
    const key = models.changes.newest();
    await models.rebuild('resources');
    await log.append('note-a', changed('2'));
    await settle(models, log);
    expect(texts(key)).to.deep.equal(['a updated t1 name-a']);
  });

  it('orders keys by position, then by number', () => {
    const keys: ChangeKey[] = [
      { position: '02', n: 0 },
      { position: '01', n: 10 },
      BEFORE_ALL_CHANGES,
      { position: '01', n: 9 },
    ];
    expect(keys.toSorted(compareKeys).map(({ position, n }) => `${position}.${n}`)).to.deep.equal([
      '.0',
      '01.9',
      '01.10',
      '02.0',
    ]);
  });
});
