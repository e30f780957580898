import { expect } from 'chai';
import type { ReadModels, ResourceRow } from '../../../src/projections/read-models.ts';
import {
  announced,
  changed,
  createTestLog,
  deletionRequested,
  lent,
  linked,
  marked,
  removed,
  touched,
  written,
  type TestLog,
} from '../../support/projections/log.ts';
import { openNotes, settle } from '../../support/projections/open-notes.ts';

const EVERYONE = { all: true } as const;

describe('view resources', () => {
  let log: TestLog;
  let models: ReadModels;
  const get = (id: string): ResourceRow | undefined => models.resources.get('note', id, EVERYONE);
  const documentOf = (id: string, side: 'publicJson' | 'privateJson' = 'privateJson') =>
    JSON.parse(get(id)?.[side] ?? 'null') as Record<string, Record<string, unknown>> | null;

  beforeEach(async () => {
    log = createTestLog();
    models = await openNotes(log);
  });
  afterEach(() => models.close());

  it('shows nothing of a stream without a document', async () => {
    await log.append('note-a', changed('too early'));
    await settle(models, log);
    expect(get('a')).to.equal(undefined);
    expect(models.resources.list('note', EVERYONE, { offset: 0, limit: 10 }).total).to.equal(0);
  });

  it('renders both documents, the public one without what is private', async () => {
    await log.append('note-a', written('a', { text: 'hello' }));
    await settle(models, log);
    expect(documentOf('a', 'publicJson')).to.deep.equal({
      id: 'a',
      metadata: { name: 'name-a', tenant: 't1' },
      spec: { text: 'hello', marks: [], links: [] },
      status: {},
    });
    expect(documentOf('a')?.['status']).to.deep.equal({ hub: 'secret-hub' });
    expect(documentOf('a')?.['metadata']).to.deep.include({ finalizers: ['f'] });
  });

  it('counts the version by appends that changed the document, and leaves out a zero', async () => {
    await log.append('note-a', written('a'));
    await settle(models, log);
    expect(get('a')?.version).to.equal(0);
    expect(documentOf('a')?.['metadata']).not.to.have.property('version');

    await log.append('note-a', changed('2'), marked('m'), changed('3')); // one append
    await log.append('note-a', touched); // not a change of the document
    await settle(models, log);
    expect(get('a')).to.include({ version: 1, revision: 4 });
    expect(documentOf('a')?.['metadata']).to.include({ version: 1 });

    const position = await log.append('note-a', touched, changed('4'));
    await settle(models, log);
    expect(get('a')).to.include({ version: 2, revision: 6, position });
    expect(documentOf('a')?.['spec']).to.include({ text: '4' });
  });

  it('shows a document while its deletion is pending and forgets it when it is archived', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', deletionRequested);
    await settle(models, log);
    expect(get('a')).to.include({ deleting: true });
    expect(models.resources.findByName('note', 'name-a', EVERYONE)).to.have.length(1);

    await log.append('note-a', removed);
    await settle(models, log);
    expect(get('a')).to.equal(undefined);
    expect(models.resources.findByName('note', 'name-a', EVERYONE)).to.deep.equal([]);
    expect(models.resources.list('note', EVERYONE, { offset: 0, limit: 10 })).to.deep.equal({
      rows: [],
      total: 0,
    });

    await log.append('note-a', changed('after the end'));
    await settle(models, log);
    expect(get('a')).to.equal(undefined);
  });

  it('knows announced references while nothing follows them, and changes no document by them', async () => {
    const of = (id: string, before = '9'.repeat(40)) =>
      models.resources.announcedTo('note', id, { before, limit: 10 });
    const first = await log.append('note-a', announced('x', 'y'));
    await settle(models, log);
    expect(of('x')).to.deep.equal([{ kind: 'note', id: 'a', revision: 0 }]);
    expect(of('x', first), 'before its own position').to.deep.equal([]);
    expect(get('a')).to.equal(undefined);

    await log.append('note-a', written('a'));
    await settle(models, log);
    expect([of('x'), of('y')]).to.deep.equal([[], []]);
    expect(get('a')).to.include({ version: 0, revision: 1 });

    await log.append('note-a', announced('y'));
    await log.append('note-a', announced('y', 'z'));
    await log.append('note-b', announced('z'));
    await settle(models, log);
    expect(get('a')).to.include({ version: 0, revision: 3 });
    expect([of('x'), of('y'), of('z')]).to.deep.equal([
      [],
      [{ kind: 'note', id: 'a', revision: 3 }],
      [
        { kind: 'note', id: 'a', revision: 3 },
        { kind: 'note', id: 'b', revision: 0 },
      ],
    ]);
    await log.append('note-a', touched);
    await settle(models, log);
    expect(of('z')).to.deep.equal([{ kind: 'note', id: 'b', revision: 0 }]);
  });

  it('is read in pages that go on behind the last row, whatever is written or goes between two of them', async () => {
    for (const id of ['e', 'd', 'c', 'b', 'a']) await log.append(`note-${id}`, written(id));
    await log.append('memo-x', written('x'));
    await settle(models, log);
    const idsBy = (limit: number) =>
      [...models.resources.pages('note', limit)].map((rows) => rows.map(({ id }) => id));
    expect(idsBy(2)).to.deep.equal([['e', 'd'], ['c', 'b'], ['a']]);
    expect(idsBy(5)).to.deep.equal([['e', 'd', 'c', 'b', 'a']]);

    const rest = models.resources.pages('note', 2)[Symbol.iterator]();
    rest.next();
    await log.append('note-e', removed);
    await log.append('note-f', written('f'));
    await settle(models, log);
    const seen = [rest.next(), rest.next()].map(({ value }) => (value as ResourceRow[]).map(({ id }) => id));
    expect(seen).to.deep.equal([
      ['c', 'b'],
      ['a', 'f'],
    ]);
  });

  it('is found where others hold a part of it, whatever its document shows', async () => {
    const found = (limit: number) =>
      [...models.resources.lent('note', limit)].map((rows) =>
        rows.map(({ id, tenant }) => `${tenant} ${id}`),
      );
    for (const id of ['a', 'b', 'c', 'd', 'free'])
      await log.append(`note-${id}`, written(id, { tenant: id === 'd' ? 't0' : 't1' }), marked('m'));
    for (const id of ['a', 'b', 'c', 'd']) await log.append(`note-${id}`, lent('x'));
    await log.append('memo-e', written('e'), lent('x'));
    await settle(models, log);
    expect(found(3)).to.deep.equal([['t0 d', 't1 a', 't1 b'], ['t1 c']]);
    expect(get('a')).to.include({ version: 0 });
    expect(models.resources.countMarked('note', 'm'), 'other marks').to.equal(5);
    await log.append('note-a', changed('still'), marked());
    await log.append('note-b', lent());
    await log.append('note-c', removed);
    await log.append('note-free', lent('x'), lent());
    await settle(models, log);
    expect(found(3)).to.deep.equal([['t0 d', 't1 a']]);
    expect(models.resources.countMarked('note', 'm'), 'other marks').to.equal(3);
  });

  it('is read from the newest on, each page before the last row of the one before', async () => {
    for (const id of ['e', 'd', 'c', 'b', 'a']) await log.append(`note-${id}`, written(id));
    await log.append('memo-x', written('x'));
    await settle(models, log);
    const { newest } = models.resources;
    const idsOf = (rows: readonly ResourceRow[]) => rows.map(({ id }) => id);
    const first = newest('note', { limit: 2 });
    expect(idsOf(first)).to.deep.equal(['a', 'b']);
    await log.append('note-f', written('f'));
    await log.append('note-d', removed);
    await settle(models, log);
    const { created = '', tenant = '' } = first.at(-1) ?? {};
    expect(idsOf(newest('note', { before: created, limit: 9 }))).to.deep.equal(['c', 'e']);
    expect(idsOf(newest('note', { tenant, before: created, limit: 9 }))).to.deep.equal(['c', 'e']);
    expect(newest('note', { tenant: 'nobody', limit: 9 })).to.deep.equal([]);
    expect(idsOf(newest('note', { limit: 1 }))).to.deep.equal(['f']);
  });

  it('hides a foreign document like an absent one', async () => {
    await log.append('note-a', written('a', { tenant: 't1' }));
    await settle(models, log);
    expect(models.resources.get('note', 'a', { tenants: ['t1', 'shared'] })?.id).to.equal('a');
    expect(models.resources.get('note', 'a', { tenants: ['t2'] })).to.equal(undefined);
    expect(models.resources.get('note', 'a', { tenants: [] })).to.equal(undefined);
    expect(models.resources.get('memo', 'a', EVERYONE)).to.equal(undefined);
    expect(models.resources.get('note', 'b', EVERYONE)).to.equal(undefined);
  });

  it('keeps kinds with the same id apart', async () => {
    await log.append('note-a', written('a', { text: 'note' }));
    await log.append('memo-a', written('a', { text: 'memo' }));
    await settle(models, log);
    expect(documentOf('a')?.['spec']).to.include({ text: 'note' });
    expect(models.resources.get('memo', 'a', EVERYONE)?.privateJson).to.contain('"memo"');
  });

  it('finds by name over the tenants that the caller sees, lowest id first', async () => {
    await log.append('note-b', written('b', { name: 'same', tenant: 't1' }));
    await log.append('note-a', written('a', { name: 'same', tenant: 'shared' }));
    await log.append('note-c', written('c', { name: 'same', tenant: 't2' }));
    await settle(models, log);
    const ids = (visibility: Parameters<typeof models.resources.findByName>[2]) =>
      models.resources.findByName('note', 'same', visibility).map(({ id }) => id);
    expect(ids(EVERYONE)).to.deep.equal(['a', 'b', 'c']);
    expect(ids({ tenants: ['t1', 'shared'] })).to.deep.equal(['a', 'b']);
    expect(ids({ tenants: ['t3'] })).to.deep.equal([]);
  });

  it('looks up marks, also after they moved', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', marked('default', 'new'));
    await log.append('note-b', written('b', { tenant: 'shared' }));
    await log.append('note-b', marked('default'));
    await settle(models, log);
    const marks = (mark: string, tenants: string[]) =>
      models.resources.marked('note', mark, { tenants }).map(({ id }) => id);
    expect(marks('default', ['t1', 'shared'])).to.deep.equal(['a', 'b']);
    expect(marks('default', ['shared'])).to.deep.equal(['b']);
    expect(models.resources.marked('note', 'default', EVERYONE)).to.have.length(2);

    await log.append('note-a', marked('new'));
    await log.append('note-b', removed);
    await settle(models, log);
    expect(marks('default', ['t1', 'shared'])).to.deep.equal([]);
    expect(marks('new', ['t1'])).to.deep.equal(['a']);
  });

  it('knows what is pointed at by a live document', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', linked('x', 'y'));
    await log.append('memo-m', written('m'));
    await log.append('memo-m', linked('y'));
    await settle(models, log);
    expect(models.resources.isReferenced('note', 'x', { all: true })).to.equal(true);
    expect(models.resources.referencedBy('note', 'x', { limit: 1 })).to.have.length(1);
    expect(models.resources.referencedBy('note', 'z', { limit: 1 })).to.deep.equal([]);
    expect(models.resources.isReferenced('note', 'z', { all: true })).to.equal(false);
    expect(models.resources.isReferenced('memo', 'x', { all: true })).to.equal(false);

    for (const [tenants, there] of [
      [['t1'], true],
      [['t2'], false],
      [[], false],
    ] as const)
      expect(models.resources.isReferenced('note', 'x', { tenants })).to.equal(there);

    await log.append('note-a', linked('z'));
    await settle(models, log);
    expect(models.resources.isReferenced('note', 'x', { all: true })).to.equal(false);
    expect(models.resources.isReferenced('note', 'y', { all: true })).to.equal(true);

    await log.append('memo-m', removed);
    await settle(models, log);
    expect(models.resources.isReferenced('note', 'y', { all: true })).to.equal(false);
    expect(models.resources.isReferenced('note', 'z', { all: true })).to.equal(true);
  });

  it('finds appends by command id, of documents and of the other streams it was told to index', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', changed('2'), changed('3'));
    const position = await log.append('counter-c', { type: 'Counted', data: {} });
    await settle(models, log);
    const [, second = '', third = ''] = log.commandIds;
    expect(models.resources.findCommand(second)).to.deep.equal({
      stream: 'note-a',
      revision: 2,
      requestHash: 'hash-2',
    });
    expect(models.resources.findAppend('note-a', second)).to.deep.include({
      commandId: second,
      first: 1,
      last: 2,
    });
    expect(models.resources.findAppend('counter-c', third)).to.deep.equal({
      commandId: third,
      requestHash: 'hash-3',
      first: 0,
      last: 0,
      position,
    });
    expect(models.resources.findAppend('note-a', third)).to.equal(undefined);
    expect(models.resources.findCommand('not a uuid')).to.equal(undefined);
  });

  it('passes over a redelivered event', async () => {
    await log.append('note-a', written('a'));
    await log.append('note-a', changed('2'));
    await settle(models, log);
    const before = await models.digest('resources');

    const again = await openNotes(log, { reader: { ...log.store, subscribe: twice(log.store) } });
    await settle(again, log);
    expect(await again.digest('resources')).to.deep.equal(before);
    await again.close();
  });

  it('answers what is written right after the wait for its position', async () => {
    const position = await log.append('note-a', written('a'));
    expect(await models.waitFor('resources', position, { timeoutMs: 1000 })).to.equal(true);
    expect(get('a')?.position).to.equal(position);
  });
});

const twice = (store: TestLog['store']): TestLog['store']['subscribe'] =>
  async function* (options) {
    for await (const item of store.subscribe(options)) {
      yield item;
      yield item;
    }
  };
