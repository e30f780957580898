import { expect } from 'chai';
import { join as joinPath } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { FilterNode } from '../../../src/projections/filter/ast.ts';
import { bound, join, raw } from '../../../src/projections/filter/to-sql.ts';
import { ListRefused, type ListPage } from '../../../src/projections/read-models.ts';
import { scanList, type ScanRequest } from '../../../src/projections/resources/scan.ts';
import { inlineScans, workerScans, type Scans } from '../../../src/projections/resources/scans.ts';
import { SCAN_LIMITS } from '../../../src/projections/resources/scan-slots.ts';
import { RESOURCES_SCHEMA } from '../../../src/projections/resources/schema.ts';
import { openReadModels } from '../../../src/projections/open-read-models.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { createTestLog, written } from '../../support/projections/log.ts';
import { createViews } from '../../support/projections/note-views.ts';
import { settle, temporaryFolders } from '../../support/projections/open-notes.ts';

const ROWS = 4000;

/** A file with so many documents of two tenants; `size` is a number from 0 to 9. */
const makeFile = (path: string): void => {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL');
  db.exec(RESOURCES_SCHEMA);
  const insert = db.prepare('INSERT INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)');
  db.exec('BEGIN');
  for (let n = 0; n < ROWS; n += 1) {
    const document = JSON.stringify({ id: `c${n}`, spec: { size: n % 10 } });
    const at = String(n).padStart(16, '0');
    insert.run(
      'cluster',
      `c${n}`,
      `t${n % 2}`,
      '',
      `n${n}`,
      0,
      0,
      at,
      0,
      at,
      '',
      n % 4 === 0 ? 1 : 0,
      document,
      document,
    );
  }
  db.exec('COMMIT');
  db.close();
};

const size = raw(`json_extract(r.private_json, '$.spec.size')`);
const request: ScanRequest = {
  kind: 'cluster',
  tenants: undefined,
  condition: join`${size} > ${bound(6n)}`,
  order: [],
  backwards: false,
  offset: 2,
  limit: 3,
  surface: 'private',
};
const idsOf = ({ documents }: ListPage): string[] =>
  documents.map((text) => (JSON.parse(text) as { id: string }).id);
const never = (): AbortSignal => new AbortController().signal;

const refusalOf = async (page: Promise<ListPage>): Promise<string> => {
  try {
    await page;
  } catch (error) {
    if (error instanceof ListRefused) return error.reason;
    throw error;
  }
  return 'answered';
};

describe('scans of lists', function () {
  this.timeout(60_000);
  const folders = temporaryFolders();
  let path: string;
  const opened: Scans[] = [];
  const keep = (scans: Scans): Scans => {
    opened.push(scans);
    return scans;
  };

  before(() => {
    path = joinPath(folders.make(), 'resources.sqlite');
    makeFile(path);
  });
  after(async () => {
    for (const scans of opened) await scans.close();
    folders.clean();
  });

  for (const [where, open] of [
    ['a worker thread', workerScans],
    ['this thread', inlineScans],
  ] as const) {
    it(`on ${where} count all matches and give one page`, async () => {
      const scans = keep(open(() => path));
      const page = await scans.run(request, never());
      expect(page.total).to.equal((3 * ROWS) / 10);
      expect(idsOf(page)).to.deep.equal(['c9', 'c17', 'c18']);
      const sorted = await scans.run(
        {
          ...request,
          tenants: ['t1', 't0'],
          order: [{ key: size, descending: true }],
          backwards: true,
          offset: 0,
        },
        never(),
      );
      expect(sorted.total).to.equal((3 * ROWS) / 10);
      expect(idsOf(sorted)).to.deep.equal([`c${ROWS - 1}`, `c${ROWS - 11}`, `c${ROWS - 21}`]);
      const own = await scans.run({ ...request, tenants: ['t1'], offset: 0 }, never());
      expect(idsOf(own)).to.deep.equal(['c7', 'c9', 'c17']);
    });

    it(`on ${where} are refused beyond their number, and not any more afterwards`, async () => {
      const scans = keep(open(() => path));
      // A filter chooses the tenants that are looked at; it chooses nobody's share.
      const of = (caller: string, tenants?: readonly string[]): Promise<ListPage> =>
        scans.run({ ...request, tenants }, never(), caller);
      const { held, heldOfOne } = SCAN_LIMITS;
      const own = Array.from({ length: heldOfOne }, (_, i) => of('a', i % 2 === 0 ? undefined : ['t0']));
      expect(await refusalOf(of('a', ['t1']))).to.equal('busy');
      const others = Array.from({ length: held - heldOfOne }, () => of('b'));
      expect(await refusalOf(of('b'))).to.equal('busy');
      const newcomer = of('c');
      expect(await refusalOf(of('c')), 'one is let in, no more').to.equal('busy');
      expect((await newcomer).total).to.equal((3 * ROWS) / 10);
      for (const page of await Promise.all([...own, ...others])) expect(page.documents).to.have.length(3);
      expect(await refusalOf(of('a'))).to.equal('answered');
    });

    it(`on ${where} end when nobody waits any more`, async () => {
      const scans = keep(open(() => path));
      const leaving = new AbortController();
      const left = scans.run(request, leaving.signal);
      leaving.abort();
      expect(await refusalOf(left)).to.equal('cancelled');
      expect(await refusalOf(scans.run(request, leaving.signal))).to.equal('cancelled');
      expect(await refusalOf(scans.run(request, never()))).to.equal('answered');
    });

    it(`on ${where} go on with the file that a rebuild has put in its place`, async () => {
      const paths = [joinPath(path, 'gone.sqlite')];
      const scans = keep(open(() => paths.shift() ?? path));
      const page = await scans.run(request, never());
      expect(page.total).to.equal((3 * ROWS) / 10);
    });
  }

  it('say what went wrong with the file', async () => {
    const scans = keep(workerScans(() => joinPath(path, 'nowhere.sqlite')));
    let message = '';
    await scans.run(request, never()).catch((error: unknown) => {
      message = (error as Error).message;
    });
    expect(message).to.contain('unable to open database file');
  });

  it('end after their time', async () => {
    const db = new DatabaseSync(path, { readOnly: true });
    let now = 0;
    const scanned = scanList(db, request, {
      isCancelled: () => false,
      pause: async () => void (now += 6),
      nowMs: () => now,
      timeLimitMs: 20,
    });
    expect(await refusalOf(scanned)).to.equal('too-long');
    db.close();
  });

  it('end with the read models', async () => {
    const scans = workerScans(() => path);
    const refusal = refusalOf(scans.run(request, never()));
    await scans.close();
    expect(await refusal).to.equal('cancelled');
  });

  it('serve the read models in worker threads', async () => {
    const dataDir = folders.make();
    const store = await openSqliteEventStore({ dataDir });
    const log = createTestLog(store);
    const models = await openReadModels({
      dir: `${dataDir}/read-models`,
      views: createViews({}),
      source: {
        kind: 'worker',
        storeId: store.storeId,
        readerModule: new URL('../../../src/composition/log-reader-module.ts', import.meta.url).href,
        readerConfig: { kind: 'sqlite', dataDir },
        viewsModule: new URL('../../support/projections/note-views.ts', import.meta.url).href,
        viewsConfig: {},
      },
      listBounds: { rows: 0, steps: 0 },
    });
    try {
      for (const id of ['a', 'b', 'c']) await log.append(`note-${id}`, written(id, { text: `text ${id}` }));
      await settle(models, log);
      const filter: FilterNode = {
        op: '>=',
        left: { kind: 'field', field: { path: ['spec', 'text'], type: 'string' } },
        right: { kind: 'literal', value: 'text b' },
      };
      const query = () =>
        models.resources.query({
          kind: 'note',
          visibility: { all: true },
          surface: 'public',
          offset: 1,
          limit: 10,
          filter,
          indexed: new Set(),
          nowMs: 0,
          signal: never(),
        });
      const page = await query();
      expect(page.total).to.equal(2);
      expect(idsOf(page)).to.deep.equal(['c']);
      await models.rebuild('resources');
      expect(await query()).to.deep.equal(page);
    } finally {
      await models.close();
      await store.close();
    }
  });
});
