import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { mirrorLog } from '../../../src/app/audit/bundle/mirror.ts';
import { keysIn, verifyTileLog } from '../../../src/app/audit/bundle/tile-log.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { createApiClient } from '../../../src/cli/api-client.ts';
import { tileDirectory } from '../../../src/cli/audit/tile-directory.ts';
import { tilesOfService } from '../../../src/cli/audit/tile-service.ts';
import { AUDIT, reasonOf, startAuditStage, until, type AuditStage } from '../../support/audit/stage.ts';

const HASH = 32;

describe('the tiles of a service', () => {
  let stage: AuditStage;
  let folder: string;
  let token: string;
  const raw = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${stage.service.url}${AUDIT}/${path}`, {
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
  const signedSize = async (): Promise<number> =>
    (await stage.service.audit?.auditing.heads.latest())?.size ?? 0;

  before(async () => {
    stage = await startAuditStage({ audit: {} });
    token = await stage.service.token({ user: 'root', admin: true });
    folder = await mkdtemp(join(tmpdir(), 'ledger-tiles-'));
    // Every look is an event: more than one tile of them.
    while ((stage.service.models.audit?.size() ?? 0) < 300)
      await Promise.all(Array.from({ length: 20 }, () => stage.admin('GET', `${AUDIT}/checkpoints`)));
    await until(async () => (await signedSize()) >= 300);
  });
  after(async () => {
    await stage.service.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('lie where C2SP tlog-tiles says, as it says, and may be kept; the signed head may not', async () => {
    const head = await raw('checkpoint');
    expect(head.headers.get('content-type')).to.equal('text/plain; charset=utf-8');
    expect(head.headers.get('cache-control')).to.equal('no-store');
    const size = Number((await head.text()).split('\n')[1]);
    const width = size % 256;
    for (const [path, bytes] of [
      ['tile/0/000', 256 * HASH],
      [`tile/0/001.p/${width}`, width * HASH],
      ['tile/1/000.p/1', HASH],
      ['tile/entries/000', undefined],
    ] as const) {
      const reply = await raw(path);
      expect(reply.status, path).to.equal(200);
      expect(reply.headers.get('content-type'), path).to.equal('application/octet-stream');
      expect(reply.headers.get('cache-control'), path).to.equal('private, max-age=31536000, immutable');
      const body = await reply.arrayBuffer();
      if (bytes !== undefined) expect(body.byteLength, path).to.equal(bytes);
    }
  });

  it('come packed where that is taken: entries are text, hashes are none', async () => {
    const packed = await raw('tile/entries/000', { 'accept-encoding': 'gzip' });
    expect(packed.headers.get('content-encoding')).to.equal('gzip');
    expect(packed.headers.get('vary')).to.equal('accept-encoding');
    const plain = await raw('tile/entries/000', { 'accept-encoding': 'identity' });
    expect(plain.headers.get('content-encoding')).to.equal(null);
    expect(Number(packed.headers.get('content-length'))).to.be.lessThan(
      Number(plain.headers.get('content-length')) / 2,
    );
    expect(Buffer.from(await packed.arrayBuffer()).equals(Buffer.from(await plain.arrayBuffer()))).to.equal(
      true,
    );
    const refused = await raw('tile/entries/000', { 'accept-encoding': 'gzip;q=0' });
    expect(refused.headers.get('content-encoding')).to.equal(null);
    const hashes = await raw('tile/0/000', { 'accept-encoding': 'gzip' });
    expect(hashes.headers.get('content-encoding')).to.equal(null);
  });

  it('are there under one spelling', async () => {
    for (const path of [
      'tile/0/x000/000',
      'tile/0/000.p/256',
      'tile/00/000',
      'tile/0/000.p/0',
      'tile/64/000',
      'tile/0/999',
      'tile/2/000.p/1',
      'tile/data/000',
    ]) {
      const reply = await stage.admin('GET', `${AUDIT}/${path}`);
      expect(reasonOf(reply), path).to.equal('404 NOT_FOUND');
      expect(String(reply.headers.get('cache-control')), path).not.to.include('immutable');
    }
  });

  it('are not there before a head was signed over them: what can be kept for ever was signed', async () => {
    const unsigned = await startAuditStage({ audit: { signs: false } });
    try {
      await unsigned.settled(false);
      expect(unsigned.service.models.audit?.size()).to.be.greaterThan(1);
      expect(reasonOf(await unsigned.admin('GET', `${AUDIT}/tile/0/000.p/1`))).to.equal('404 NOT_FOUND');
      expect(reasonOf(await unsigned.admin('GET', `${AUDIT}/checkpoint`))).to.equal('503 NOT_SIGNED_YET');
    } finally {
      await unsigned.service.close();
    }
  });

  it('are mirrored into a directory and checked there; a byte of it that is changed is named', async () => {
    const directory = join(folder, 'mirror');
    const api = createApiClient(stage.service.url, token, { attempts: 3 });
    const trust = (await api.get<Trust>(`${AUDIT}/trust.json?newest=true`)) satisfies Trust;
    const store = tileDirectory(directory);
    const report = await mirrorLog(await tilesOfService(api, AUDIT), store, { trust });
    expect(report.findings).to.deep.equal([]);
    expect([report.pin, report.heldSize]).to.deep.equal(['continued', undefined]);
    expect(report.fetched).to.be.at.least(5);
    expect((await readdir(directory)).toSorted()).to.deep.equal(['checkpoint', 'keys.json', 'tile']);
    const asked: string[] = [];
    const service = await tilesOfService(api, AUDIT);
    const read: typeof service.read = (path, fits) => {
      asked.push(path);
      return service.read(path, fits);
    };
    const again = await mirrorLog({ ...service, read }, store, { trust });
    expect(again.findings).to.deep.equal([]);
    // What is partial may have grown by the fetching itself, which is recorded.
    expect(asked.filter((path) => !path.includes('.p/'))).to.deep.equal([]);

    const file = join(directory, 'tile', 'entries', '000');
    const bytes = await readFile(file);
    bytes.writeUInt8(bytes.readUInt8(1000) ^ 1, 1000);
    await writeFile(file, bytes);
    const log = {
      note: await readFile(join(directory, 'checkpoint'), 'utf8'),
      keys: keysIn(await readFile(join(directory, 'keys.json'), 'utf8')),
      read: store.read,
    };
    const { findings } = await verifyTileLog(log, { trust });
    expect(findings.map(({ code, file: named }) => [code, named])).to.deep.equal([
      ['changed-event', 'tile/entries/000'],
    ]);
    expect(findings[0]?.event).to.match(/^\S+@\d+$/);
  });
});
