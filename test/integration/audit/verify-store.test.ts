import { expect } from 'chai';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { directorySink } from '../../../src/adapters/audit/bundle-files.ts';
import { findingText } from '../../../src/app/audit/bundle/findings.ts';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import { writeBundle } from '../../../src/app/audit/bundle/writer.ts';
import { contentOf } from '../../../src/app/audit/exports/content.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import type { TreeHead } from '../../../src/app/audit/tree-heads.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';
import { lookIntoStore } from '../../../src/composition/stored-event.ts';
import { verifyStoppedStore } from '../../../src/composition/stopped-store.ts';
import { registry } from '../../../src/domain/registry.ts';
import { audit, followed, openAuditView, openSigning } from '../../support/audit/open-audit.ts';
import { createHistoryWriter, type Step } from '../../support/audit/random-history.ts';
import { manualTime } from '../../support/manual-time.ts';
import { eventually } from '../../support/eventually.ts';

/** A real embedded store, its tree and its signer: what they leave behind is checked by what knows none of them. */
describe('a store that was signed', () => {
  let folder: string;
  let dataDir: string;
  let trust: Trust;
  let head: TreeHead;

  before(async function () {
    this.timeout(60_000);
    folder = mkdtempSync(join(tmpdir(), 'signed-store-'));
    dataDir = join(folder, 'data');
    const store = await openSqliteEventStore({ dataDir });
    const models = await openAuditView(store, join(dataDir, 'read-models'));
    const time = manualTime();
    // Its timers pass when they are told to; what is signed says the time that the store records, too.
    const clock = { ...time.clock, now: () => new Date().toISOString() };
    const signing = openSigning({ store, tree: audit(models), clock, timers: time.timers });
    const stop = new AbortController();
    const running = signing.signer.run(stop.signal);
    const write = createHistoryWriter(store, 's');
    const step = (n: number): Step => ({
      stream: `cluster-c${n % 5}`,
      tenant: n % 3 === 0 ? 'acme' : 'globex',
      subject: 'alice',
      types: ['ClusterLabelled'],
      data: { n },
    });
    for (const round of [0, 1, 2]) {
      await write(Array.from({ length: 20 }, (_, n) => step(20 * round + n)));
      await followed(models, store);
      await signedUpTo(20 * (round + 1));
    }
    trust = await signing.proofs.trust();
    head = (await signing.heads.latest()) as TreeHead;
    await writeBundles();
    stop.abort();
    await time.pass(0);
    await running;
    await models.close();
    await store.close();

    /** The signer's timers are ours, its appends are real. */
    async function signedUpTo(size: number): Promise<void> {
      await eventually(`size ${size} is signed`, async () => {
        await time.pass(10_000);
        return (await signing.heads.latest())?.size === size;
      });
    }
    async function writeBundles(): Promise<void> {
      for (const tenant of [undefined, 'acme']) {
        const content = await contentOf(
          { format: 'native', audience: 'provider', filter: {}, ...(tenant === undefined ? {} : { tenant }) },
          { head, pins: [], at: '2026-11-21T12:00:00.000Z' },
          {
            store,
            tree: audit(models),
            proofs: signing.proofs,
            words: {
              codec: { decode: (event) => event as never },
              registry,
              open: (values) => values.map(() => undefined),
            },
            schemas: async () => ({}),
            productVersion: '1',
            keys: signing.keys,
          },
          { line: async () => undefined, signal: stop.signal },
        );
        await writeBundle(content, directorySink(join(folder, tenant ?? 'log')));
      }
    }
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is what its heads say', async () => {
    const report = await verifyStoppedStore({ dataDir }, trust);
    expect(report.findings.map(findingText)).to.deep.equal([]);
    expect(report).to.include({ ok: true, leaves: 60, signed: 60, heads: 3, keys: 'pinned' });
    // One tile and one bundle of the log, and one tile of each of two tenants.
    const { tiles, ...ofLog } = report;
    expect(tiles).to.equal(4);
    expect(await verifyStoppedStore({ file: join(dataDir, 'events.db') }, trust)).to.deep.equal(ofLog);
  });

  it('says what is wrong with the tree beside it, from which the service answers', async () => {
    for (const [change, said] of [
      [
        'UPDATE leaves SET hash = zeroblob(32) WHERE idx = 7',
        /in the tree of the log as the service keeps and serves it, .* \(places 0 to 60, tile\/0\/000\.p\/60: /,
      ],
      [
        'UPDATE leaves SET revision = revision + 1 WHERE idx = 7',
        /\(event cluster-c\d@\d+, place 7, tile\/entries\/000\.p\/60: /,
      ],
      [
        'DELETE FROM leaves WHERE idx = 59',
        /the tree of the log as the service keeps .* 59|tile\/0\/000\.p\/60/,
      ],
      [
        "UPDATE trees SET size = size - 1 WHERE tenant = 'acme'",
        /the tree of tenant acme .* has 19 leaves, not 20/,
      ],
    ] as const) {
      const copy = join(folder, 'served');
      cpSync(dataDir, copy, { recursive: true });
      const current = readFileSync(join(copy, 'read-models', 'audit.current'), 'utf8').trim();
      const db = new DatabaseSync(join(copy, 'read-models', basename(current)));
      expect(db.prepare(change).run().changes, change).to.equal(1);
      db.close();
      const report = await verifyStoppedStore({ dataDir: copy }, trust);
      rmSync(copy, { recursive: true });
      expect(report.ok, change).to.equal(false);
      expect(report.findings.map(findingText).join('\n')).to.match(said);
      expect(report.findings.every(({ code }) => code === 'served')).to.equal(true);
    }
    const copy = join(folder, 'served');
    cpSync(dataDir, copy, { recursive: true });
    rmSync(join(copy, 'read-models'), { recursive: true });
    const without = await verifyStoppedStore({ dataDir: copy }, trust);
    rmSync(copy, { recursive: true });
    expect([without.ok, without.tiles]).to.deep.equal([true, undefined]);
    expect(without.remarks.join()).to.include('no tree of this release that can be read lies beside the log');
  });

  it('gives exports that prove themselves', async () => {
    for (const [name, events] of [
      ['log', 60],
      ['acme', 20],
    ] as const) {
      const report = await verifyBundle(await openBundle(join(folder, name)), { trust });
      expect(report.findings.map(findingText)).to.deep.equal([]);
      expect(report).to.include({ ok: true, pin: 'continued' });
      expect(report.counts.full).to.equal(events);
    }
  });

  it('names what somebody changed who knows how rows are summed up', async () => {
    const copy = join(folder, 'copy');
    cpSync(dataDir, copy, { recursive: true });
    const db = new DatabaseSync(join(copy, 'events.db'));
    const row = db
      .prepare(
        `SELECT e.position, s.name, e.revision, e.recorded_at, e.id, e.type, e.data, e.metadata
         FROM events e JOIN streams s ON s.id = e.stream WHERE s.name = 'cluster-c2' AND e.revision = 5`,
      )
      .get() as { [column: string]: string | number };
    const { position, name, revision, recorded_at: recordedAt, id, type, metadata } = row;
    const data = '{"n":4711}';
    const sum = crc32(
      String(metadata),
      crc32(data, crc32(`${position}\n${name}\n${revision}\n${recordedAt}\n${id}\n${type}\n`)),
    );
    db.prepare('UPDATE events SET data = ?, checksum = ? WHERE position = ?').run(
      data,
      sum,
      Number(position),
    );
    db.close();
    const report = await verifyStoppedStore({ dataDir: copy }, trust);
    expect(report.ok).to.equal(false);
    // Event 27 of 60: between the first head and the second one.
    expect(report.findings[0]).to.deep.include({ code: 'root', place: [20, 40] });
    expect(report.signed).to.equal(20);
    // The pin, too, is not continued.
    expect(report.findings[1]).to.deep.include({ code: 'root', place: [0, 60] });
    // The read model still has the tree that was signed.
    expect(report.findings[2]).to.deep.include({ code: 'changed-event', event: 'cluster-c2@5', place: 27 });
    expect(report.count).to.equal(3);
    // A look at that one event shows it, too, and that the original is the one in the tree.
    const look = await lookIntoStore({ dataDir: copy }, 'cluster-c2', 5);
    expect('faults' in look && look.faults).to.deep.include({
      at: 'leaf',
      problem: 'the audit tree has another event as leaf 27',
    });
    expect(await lookIntoStore({ dataDir }, 'cluster-c2', 5)).to.include({ leaf: 27 });
    const unnamed = report.findings.filter(({ code }) => code === 'root');
    // Without it, or with one that is damaged, the name is all that is lost.
    writeFileSync(join(copy, 'read-models/audit.current'), 'events.db');
    expect((await verifyStoppedStore({ dataDir: copy }, trust)).findings).to.deep.equal(unnamed);
    rmSync(join(copy, 'read-models'), { recursive: true });
    expect((await verifyStoppedStore({ dataDir: copy }, trust)).findings).to.deep.equal(unnamed);
  });

  it('names the last event of a stream that was taken out, and none of those behind it', async () => {
    const copy = join(folder, 'shorter');
    cpSync(dataDir, copy, { recursive: true });
    const db = new DatabaseSync(join(copy, 'events.db'));
    db.exec(
      `DELETE FROM events WHERE revision = 11 AND stream = (SELECT id FROM streams WHERE name = 'cluster-c3')`,
    );
    db.close();
    const { findings } = await verifyStoppedStore({ dataDir: copy }, trust);
    const named = findings.filter(({ event }) => event !== undefined);
    expect(named.map(({ code, event, place }) => [code, event, place])).to.deep.equal([
      ['missing-event', 'cluster-c3@11', 58],
    ]);
  });

  it('reads as far as it can, and says how far that was', async () => {
    const copy = join(folder, 'flipped');
    cpSync(dataDir, copy, { recursive: true });
    const db = new DatabaseSync(join(copy, 'events.db'));
    db.exec(
      `UPDATE events SET checksum = checksum + 1
       WHERE revision = 5 AND stream = (SELECT id FROM streams WHERE name = 'cluster-c2')`,
    );
    db.close();
    const report = await verifyStoppedStore({ dataDir: copy }, trust);
    // It is leaf 27; heads and their signer's lease stand between the events.
    expect(report).to.include({ ok: false, ended: true, leaves: 27, signed: 20 });
    expect(report.events).to.be.at.least(27);
    expect(report.findings.map(findingText).join()).to.match(
      /reading ended before the end: .*event cluster-c2@5 .* does not match its checksum/,
    );
  });

  it('says that a store is not there', async () => {
    const missing = await verifyStoppedStore({ dataDir: join(folder, 'none') }).catch(String);
    expect(missing).to.include('no event log');
  });
});
