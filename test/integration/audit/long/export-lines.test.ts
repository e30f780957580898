import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import { createLineThreads } from '../../../../src/adapters/audit/line-threads.ts';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openSubjectKeyReader } from '../../../../src/adapters/keys/subject-key-reader.ts';
import { proofsSchema } from '../../../../src/app/audit/bundle/format.ts';
import { writeBundle } from '../../../../src/app/audit/bundle/writer.ts';
import { contentOf, type ExportSource } from '../../../../src/app/audit/exports/content.ts';
import type { TreeHead } from '../../../../src/app/audit/tree-heads.ts';
import { createEventCodec } from '../../../../src/app/log/event-codec.ts';
import { LogDamaged } from '../../../../src/app/log/event-store.ts';
import type { ExportLinesConfig } from '../../../../src/composition/export-lines-module.ts';
import type { ExportRequest } from '../../../../src/domain/audit/events.ts';
import { eventTypes, registry } from '../../../../src/domain/registry.ts';
import type { ReadModels } from '../../../../src/projections/read-models.ts';
import { audit, followed, openAuditView, openSigning } from '../../../support/audit/open-audit.ts';
import { createHistoryWriter, type Step } from '../../../support/audit/random-history.ts';
import { memorySink } from '../../../support/audit/signed-history.ts';
import { manualTime } from '../../../support/manual-time.ts';
import { eventually } from '../../../support/eventually.ts';

/** Of the second one a tenant had no events. */
const PINS = [250, 1, 100, 299, 100];
const AT = '2026-11-22T12:00:00.000Z';
const REQUESTS: { readonly [name: string]: ExportRequest } = {
  'the whole log for the provider': { format: 'native', audience: 'provider', filter: {} },
  'a tenant': { format: 'native', audience: 'tenant', filter: {}, tenant: 'acme' },
  'a tenant, filtered, as OCSF': {
    format: 'ocsf',
    audience: 'provider',
    filter: { kind: 'cluster', resource_id: 'c3' },
    tenant: 'acme',
  },
};

describe('exports whose lines and proofs are made on another thread', () => {
  let folder: string;
  let dataDir: string;
  let store: SqliteEventStore;
  let models: ReadModels;
  let head: TreeHead;
  let source: ExportSource;

  before(async function () {
    this.timeout(60_000);
    folder = mkdtempSync(join(tmpdir(), 'export-lines-'));
    dataDir = join(folder, 'data');
    store = await openSqliteEventStore({ dataDir });
    models = await openAuditView(store, join(dataDir, 'read-models'));
    const time = manualTime();
    const signing = openSigning({ store, tree: audit(models), ...time });
    const stop = new AbortController();
    const running = signing.signer.run(stop.signal);
    const step = (n: number): Step => ({
      stream: `cluster-c${n % 7}`,
      tenant: n % 3 === 0 ? 'acme' : 'globex',
      subject: 'alice',
      types: ['ClusterLabelled'],
      data: { n, labels: { 'é"\n': String(n) } },
    });
    await createHistoryWriter(store, 'x')(Array.from({ length: 300 }, (_, n) => step(n)));
    await followed(models, store);
    await eventually('the whole log is signed', async () => {
      await time.pass(10_000);
      return (await signing.heads.latest())?.size === 300;
    });
    stop.abort();
    await time.pass(0);
    await running;
    head = (await signing.heads.latest()) as TreeHead;
    source = {
      store,
      tree: audit(models),
      proofs: signing.proofs,
      words: {
        codec: createEventCodec(eventTypes),
        registry,
        open: openSubjectKeyReader({ directory: join(folder, 'subjects'), kek: Buffer.alloc(32) }),
      },
      schemas: async () => ({}),
      productVersion: '1',
      keys: signing.keys,
    };
  });
  after(async () => {
    await models.close();
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const notHere = (): never => {
    throw new Error('this is not for the thread that answers');
  };
  const elsewhere = (): ExportSource => {
    const config: ExportLinesConfig = {
      log: { kind: 'sqlite', dataDir },
      subjectKeys: { directory: join(folder, 'subjects'), kek: Buffer.alloc(32).toString('base64') },
    };
    return {
      ...source,
      store: { readStream: () => notHere() },
      // Ranges are found, and leaves held against the root, here; proofs are not.
      tree: { ...source.tree, tenants: notHere, tenantsBetween: notHere },
      makePages: createLineThreads({
        module: new URL('../../../../src/composition/export-lines-module.ts', import.meta.url).href,
        config,
        tree: audit(models).source,
      }),
    };
  };
  const exported = async (request: ExportRequest, from: ExportSource) => {
    let lines = 0;
    const content = await contentOf(request, { head, pins: PINS, at: AT }, from, {
      line: async (many = 1) => {
        lines += many;
      },
      signal: new AbortController().signal,
    });
    const { sink, files } = memorySink();
    const manifest = await writeBundle(content, sink);
    return { manifest, files: Object.fromEntries(files), lines };
  };

  for (const [name, request] of Object.entries(REQUESTS))
    it(`are the same to the byte as those made in slices: ${name}`, async () => {
      const here = await exported(request, source);
      const there = await exported(request, elsewhere());
      expect(there).to.deep.equal(here);
      const { pins } = proofsSchema.parse(JSON.parse(String(here.files['proofs.json'])));
      expect(pins.map(({ size }) => size)).to.have.members([250, 1, 100, 299]);
      expect(here.manifest.counts.events).to.equal(request.tenant === undefined ? 300 : 100);
      expect(here.lines, 'each event once').to.equal(here.manifest.counts.events);
    });

  it('are not made when the log was changed since, and say so', async () => {
    const db = new DatabaseSync(join(dataDir, 'events.db'));
    const row = db
      .prepare(
        `SELECT e.position, s.name, e.revision, e.recorded_at, e.id, e.type, e.data, e.metadata
         FROM events e JOIN streams s ON s.id = e.stream WHERE s.name = 'cluster-c2' AND e.revision = 5`,
      )
      .get() as { [column: string]: string | number };
    const { position, name, revision, recorded_at: recordedAt, id, type, metadata } = row;
    const change = (data: string): void => {
      const sum = crc32(
        String(metadata),
        crc32(data, crc32(`${position}\n${name}\n${revision}\n${recordedAt}\n${id}\n${type}\n`)),
      );
      db.prepare('UPDATE events SET data = ?, checksum = ? WHERE position = ?').run(
        data,
        sum,
        Number(position),
      );
    };
    change('{"n":4711}');
    try {
      const error = await exported(
        REQUESTS['the whole log for the provider'] as ExportRequest,
        elsewhere(),
      ).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(LogDamaged);
      expect((error as LogDamaged).at).to.deep.equal({
        event: 'cluster-c2@5',
        position: String(position).padStart(16, '0'),
      });
    } finally {
      change(String(row['data']));
      db.close();
    }
  });

  it('say which event is damaged, although threads keep no classes of errors', async () => {
    const db = new DatabaseSync(join(dataDir, 'events.db'));
    const found = db
      .prepare(
        `SELECT e.position, e.data FROM events e JOIN streams s ON s.id = e.stream
         WHERE s.name = 'cluster-c2' AND e.revision = 5`,
      )
      .get() as { position: number; data: string };
    const change = (data: string): void => {
      db.prepare('UPDATE events SET data = ? WHERE position = ?').run(data, found.position);
    };
    change('{"n":4711}');
    try {
      const error: unknown = await exported(
        REQUESTS['the whole log for the provider'] as ExportRequest,
        elsewhere(),
      ).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(LogDamaged);
      expect((error as LogDamaged).at).to.deep.equal({
        event: 'cluster-c2@5',
        position: String(found.position).padStart(16, '0'),
      });
    } finally {
      change(found.data);
      db.close();
    }
  });
});
