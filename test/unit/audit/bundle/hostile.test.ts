import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { expect } from 'chai';
import { pack, type Headers } from 'tar-stream';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import {
  checkpointText,
  InvalidCheckpoint,
  parseCheckpoint,
} from '../../../../src/app/audit/merkle/checkpoint.ts';
import { sha256 } from '../../../../src/app/audit/merkle/hashing.ts';
import { inclusionPath } from '../../../../src/app/audit/merkle/proofs.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { tenantKey, tenantLeafHash, type TenantHead } from '../../../../src/app/audit/merkle/tenants.ts';
import { openBundle } from '../../../../src/cli/audit/bundle-source.ts';
import {
  bundleOf,
  editJson,
  editLines,
  eventsOf,
  fitManifest,
  historyOf,
  keyOf,
  memorySource,
  signManifest,
  tenantOf,
  textOf,
  type MemoryBundle,
} from '../../../support/audit/signed-history.ts';

/**
 * Whoever runs the service holds the audit key and may sign anything; the auditor has a pin, and the files. Each of these is a
 * way to show less, or something else, than happened.
 */
const SIZE = 40;
const history = historyOf(eventsOf(SIZE));
const signer = keyOf('first');
const trust = { ...history.trust, pin: history.noteAt(20) };

const check = async (files: MemoryBundle, of: Trust = trust) => {
  const report = await verifyBundle(memorySource(files), { trust: of });
  return { ...report, said: report.findings.map(findingText).join('\n') };
};
const pinned = { pins: [20] };

describe('a provider who holds the key', () => {
  it('cannot leave out the newest events without a word: the range is short of the tree', async () => {
    const short = await check(await bundleOf(history, { ...pinned, tenant: 'acme', to: 5 }));
    expect(short.ok, short.said).to.equal(true);
    expect(short.range?.to).to.equal(5);
    expect(short.treeSize).to.equal(history.placesOf('acme').length);
    const claimed = await bundleOf(history, { ...pinned, tenant: 'acme', to: 5 });
    editJson(claimed, 'proofs.json', (proofs) => ({ ...proofs, tree: { size: 5, path: [] } }));
    fitManifest(claimed);
    expect((await check(claimed)).said).to.include('does not vouch for a tree of tenant acme with 5 events');
  });

  it('cannot show one tenant for another', async () => {
    const files = await bundleOf(history, { ...pinned, tenant: 'globex' });
    for (const name of ['proofs.json', 'manifest.json'])
      editJson(files, name, (json) => ({ ...json, scope: { kind: 'tenant', tenant: 'acme' } }));
    fitManifest(files);
    const { ok, said } = await check(files);
    expect(ok).to.equal(false);
    expect(said).to.include('does not vouch for a tree of tenant acme');
  });

  it('cannot keep two trees of one tenant beside an export of the whole log', async () => {
    const [events, acme] = [history.events, history.placesOf('acme')];
    // The second tree of acme lacks its last event.
    const censored = acme.slice(0, -1);
    const treeOf = (places: readonly number[]) =>
      createMemoryTree(places.map((place) => history.tree.hashAt(0, place)));
    const headOf = (tenant: string, places: readonly number[]): TenantHead => {
      const tree = treeOf(places);
      return { key: tenantKey(tenant), size: tree.size(), root: tree.rootAt(tree.size()) };
    };
    const tenants = [...new Set(events.map(tenantOf))];
    const heads = [
      ...tenants.map((tenant) => headOf(tenant, history.placesOf(tenant))),
      headOf('acme', censored),
    ].toSorted((left, right) => left.key.compare(right.key));
    const tree = createMemoryTree(heads.map(tenantLeafHash));
    const twice = { count: heads.length, root: tree.rootAt(heads.length) };
    const note = signNote(checkpointText({ ...history.checkpointAt(SIZE), tenants: twice }), signer);
    const whole = await bundleOf(history);
    whole.set('checkpoint', Buffer.from(note));
    fitManifest(whole);
    expect((await check(whole, history.trust)).said).to.include(
      'the trees of the tenants are not those of their events',
    );
    expect(inclusionPath(0, heads.length, tree.hashAt).length).to.be.greaterThan(0);
  });

  it('cannot give two events one position, nor turn their order round', async () => {
    for (const position of [history.events[3]?.position ?? '', history.events[1]?.position ?? '']) {
      const files = await bundleOf(history, pinned);
      editLines(files, (lines) =>
        lines.map((line, n) =>
          n === 4 ? { ...line, event: { ...(line['event'] as object), position } } : line,
        ),
      );
      fitManifest(files);
      expect((await check(files)).said).to.include('its position is not behind that of the event before');
    }
  });

  it('cannot show an old head, nor one of another log', async () => {
    const old = await check(await bundleOf(history, { at: 10 }));
    expect([old.ok, old.pin]).to.deep.equal([false, 'ends before']);
    const files = await bundleOf(history, pinned);
    const other = checkpointText({ ...history.checkpointAt(SIZE), origin: 'fulfillment-ledger/another' });
    files.set('checkpoint', Buffer.from(signNote(other, signer)));
    fitManifest(files);
    expect((await check(files)).said).to.include('it is of fulfillment-ledger/another, not of');
  });

  it('changes nothing by more, doubled or turned signatures, and is found by a wrong one', async () => {
    const [text, line] = history.noteAt(SIZE).split('\n\n') as [string, string];
    const [, foreign] = history.noteAt(SIZE, keyOf('foreign')).split('\n\n') as [string, string];
    const wrong = history.noteAt(SIZE - 1).split('\n\n')[1] ?? '';
    const asked = async (lines: string) => {
      const files = await bundleOf(history, pinned);
      files.set('checkpoint', Buffer.from(`${text}\n\n${lines}`));
      fitManifest(files);
      return check(files);
    };
    for (const lines of [`${line}${line}`, `${foreign}${line}`, `${line}${foreign}`])
      expect((await asked(lines)).said).to.equal('');
    for (const lines of [`${line}${wrong}`, `${wrong}${line}`])
      expect((await asked(lines)).said).to.include('the signature of');
    expect((await asked(foreign)).said).to.include('none of the keys that are trusted has signed');
    expect((await asked(line.replace('— ', '- '))).said).to.include('cannot be read');
  });

  it('cannot say of another moment that the export is as of then', async () => {
    for (const asOf of [
      { position: history.events[0]?.position ?? '' },
      { position: history.events[SIZE - 1]?.position ?? '', time: '2027-01-01T00:00:00.000Z' },
    ]) {
      const files = await bundleOf(history, pinned);
      editJson(files, 'manifest.json', (manifest) => ({ ...manifest, asOf }));
      fitManifest(files);
      const { ok, said } = await check(files);
      expect(ok, JSON.stringify(asOf)).to.equal(false);
      expect(said).to.include('manifest.json: it is as of');
    }
  });

  it('cannot show two readers two manifests: a name stands once', async () => {
    for (const [name, from, to] of [
      ['manifest.json', '"filter": {', '"filter": {"tenant": "globex"}, "filter": {'],
      ['proofs.json', '"v": 1', '"v": 2, "v": 1'],
      ['manifest.json', '"counts": {', '"counts": {"ev\\u0065nts": 1, '],
      ['trust.json', '"keys": [', '"keys": [], "keys": ['],
    ] as const) {
      const files = await bundleOf(history, pinned);
      const text = textOf(files, name);
      expect(text).to.include(from);
      files.set(name, Buffer.from(text.replace(from, to)));
      if (name === 'manifest.json') signManifest(files);
      else fitManifest(files);
      const { ok, said } = await check(files);
      expect(ok, `${name}: ${to}`).to.equal(false);
      expect(said).to.match(/names? .* twice/);
    }
  });

  it('cannot write lines and heads in two ways', async () => {
    for (const [name, change] of [
      ['events.ndjson', (text: string) => text.replaceAll('\n', '\r\n')],
      ['events.ndjson', (text: string) => `\u{feff}${text}`],
      ['checkpoint', (text: string) => text.replaceAll('\n', '\r\n')],
      ['checkpoint', (text: string) => `\u{feff}${text}`],
      ['proofs.json', (text: string) => `\u{feff}${text}`],
    ] as const) {
      const files = await bundleOf(history, pinned);
      const changed = Buffer.from(change(textOf(files, name)));
      // Digests as they are for the changed file, and counts as they were.
      editJson(files, 'manifest.json', (manifest) => ({
        ...manifest,
        files: (manifest['files'] as { name: string }[]).map((file) =>
          file.name === name
            ? { name, bytes: changed.length, sha256: sha256(changed).toString('hex') }
            : file,
        ),
      }));
      files.set(name, changed);
      signManifest(files);
      expect((await check(files)).ok, name).to.equal(false);
    }
  });

  it('has its times taken for times only', () => {
    for (const time of ['2026-13-01T00:00:00Z', '2026-11-21T25:00:00Z', '2026-02-30T99:99:99.999Z'])
      expect(() => parseCheckpoint(checkpointText({ ...history.checkpointAt(SIZE), time })), time).to.throw(
        InvalidCheckpoint,
      );
  });

  it('names a tenant so that no other one reads like it', async () => {
    for (const [tenant, shown] of [
      ['\u0430cme', 'tenant "\\u0430cme"'],
      ['acme ', 'tenant "acme "'],
      ['u\u0308ml', 'tenant "u\\u0308ml"'],
      ['acme', 'tenant acme'],
    ] as const) {
      const events = eventsOf(SIZE).map((event) => ({ ...event, metadata: { ...event.metadata, tenant } }));
      const like = historyOf(events);
      const { said, scope } = await check(await bundleOf(like, { tenant }), like.trust);
      expect([said, scope]).to.deep.equal(['', shown]);
    }
  });

  it('holds nobody up with nesting or with numbers of files', async () => {
    const nested = await bundleOf(history, pinned);
    const deep = `${'['.repeat(60_000)}${']'.repeat(60_000)}`;
    nested.set(
      'manifest.json',
      Buffer.from(textOf(nested, 'manifest.json').replace('"filter": {', `"filter": {"x": ${deep}, `)),
    );
    signManifest(nested);
    expect((await check(nested)).ok).to.equal(false);
    const many = await bundleOf(history, pinned);
    for (let n = 0; n < 100_000; n += 1) many.set(`schemas/${n}`, Buffer.alloc(0));
    const began = performance.now();
    expect((await check(many)).ok).to.equal(false);
    expect(performance.now() - began).to.be.lessThan(40_000);
  }).timeout(60_000);
});

describe('files of an export that are none', () => {
  let folder: string;
  let files: MemoryBundle;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-hostile-'));
    files = await bundleOf(history, pinned);
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const written = async (): Promise<string> => {
    const directory = join(folder, 'bundle');
    for (const [name, bytes] of files) {
      await mkdir(dirname(join(directory, name)), { recursive: true });
      await writeFile(join(directory, name), bytes);
    }
    return directory;
  };
  const said = async (path: string): Promise<string> => {
    const { ok, findings } = await verifyBundle(await openBundle(path), { trust });
    expect(ok).to.equal(false);
    return findings.map(findingText).join('\n');
  };

  it('are refused in a directory: a pipe, a device, a link that leads out of it', async () => {
    for (const name of ['events.ndjson', 'schemas/More.json']) {
      const directory = await written();
      for (const put of [
        (path: string) => execFileSync('mkfifo', [path]),
        (path: string) => symlink('/dev/zero', path),
        (path: string) => symlink('/etc/hostname', path),
      ]) {
        const path = join(directory, name);
        await rm(path, { force: true });
        await put(path);
        expect(await said(directory)).to.include(`${name} is not a file`);
      }
      await rm(directory, { recursive: true });
    }
  });

  it('are refused in a tar: links, devices, names that lead out of it', async () => {
    const tarWith = async (header: Headers, content = ''): Promise<string> => {
      const path = join(folder, 'bundle.tar');
      const archive = pack();
      for (const [name, bytes] of files) archive.entry({ name }, bytes);
      archive.entry(header, content);
      archive.finalize();
      await pipeline(archive, createWriteStream(path));
      return path;
    };
    for (const type of ['symlink', 'link', 'fifo', 'character-device'] as const)
      expect(
        await said(await tarWith({ name: 'schemas/More.json', type, linkname: '../../etc/passwd' })),
        type,
      ).to.include('schemas/More.json is not a file');
    for (const name of ['../outside', '/etc/passwd', 'schemas/../../x', 'schemas\\x', './x/../manifest.json'])
      expect(await said(await tarWith({ name }, 'x')), name).to.match(/no bundle holds a file of this name/);
    expect(await said(await tarWith({ name: './proofs.json' }, '{}'))).to.include('two files of this name');
  });
});
