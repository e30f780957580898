import { expect } from 'chai';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import {
  bundleOf,
  contentOf,
  editJson,
  editLines,
  eventsOf,
  fitManifest,
  historyOf,
  keyOf,
  memorySink,
  signManifest,
  tenantOf,
  textOf,
  writeBundle,
} from '../../../support/audit/signed-history.ts';
import { changed, codes, history, nameOf, other, SIZE, texts, verify } from './changed-bundles.ts';

describe('verifying a bundle: what was changed is named', () => {
  it('proofs, whichever of their hashes', async () => {
    for (const ask of [
      { from: 13, to: 37 },
      { tenant: 'acme', from: 3, to: 9 },
    ]) {
      const files = await bundleOf(history, ask);
      const text = textOf(files, 'proofs.json');
      const hashes = text.match(/"[A-Za-z0-9+/]{43}="/g) ?? [];
      expect(hashes.length).to.be.greaterThan(4);
      for (const hash of hashes) {
        const wrong = `"${Buffer.alloc(32, 7).toString('base64')}"`;
        files.set('proofs.json', Buffer.from(text.replace(hash, wrong)));
        fitManifest(files);
        const report = await verify(files);
        expect(report.ok, hash).to.equal(false);
        expect(['root', 'proof', 'tenant', 'pin']).to.include(report.findings[0]?.code);
      }
    }
  });

  it('proofs of another tenant', async () => {
    const report = await changed({ tenant: 'acme' }, (files) => {
      editJson(files, 'proofs.json', (proofs) => ({
        ...proofs,
        scope: { kind: 'tenant', tenant: 'globex' },
      }));
      fitManifest(files);
    });
    expect(codes(report)).to.include('tenant');
  });

  it('checkpoints that another key signed, or of another log', async () => {
    const resigned = await verify(await bundleOf(history, { signer: keyOf('second') }));
    expect(resigned.findings[0]).to.include({ code: 'checkpoint' });
    expect(texts(resigned)).to.include('none of the keys');
    const theirs = historyOf(eventsOf(SIZE), keyOf('second'));
    const foreign = await verify(await bundleOf(theirs));
    expect(codes(foreign)).to.include('key').and.to.include('checkpoint');
    const elsewhere = await verify(await bundleOf(history), {
      ...history.trust,
      origin: 'fulfillment-ledger/other',
    });
    expect(codes(elsewhere)).to.include('origin');
  });

  it('trees of tenants that do not hold their events', async () => {
    // The signer left an event out of the tree of its tenant: exports of the tenant would not be complete.
    const content = contentOf(history);
    const { count, root } = other.tenantsAt(SIZE);
    const checkpoint = { ...content.checkpoint, tenants: { count, root } };
    const { sink, files } = memorySink();
    await writeBundle(
      { ...content, checkpoint, note: signNote(checkpointText(checkpoint), keyOf('first')) },
      sink,
    );
    const report = await verify(files);
    expect(codes(report)).to.deep.equal(['tenants']);
  });

  it("events of another tenant in a tenant's tree, though they were signed there", async () => {
    const [place = 0] = history.placesOf('acme').slice(4);
    const moved = history.events.map((event, n) =>
      n === place ? { ...event, metadata: { ...event.metadata, tenant: 'globex' } } : event,
    );
    const lying = historyOf(moved, keyOf('first'), (_event, n) => tenantOf(history.events[n]));
    const report = await verify(await bundleOf(lying, { tenant: 'acme' }), lying.trust);
    expect(codes(report), texts(report)).to.deep.equal(['tenant']);
    expect(report.findings[0]).to.include({ event: nameOf(place), place: 4 });
  });

  it('counts, ranges and digests of the manifest', async () => {
    for (const [edit, code] of [
      [
        (manifest: JsonObject) => ({
          ...manifest,
          counts: { events: 61, full: 61, redacted: 0, withheld: 0 },
        }),
        'count',
      ],
      [(manifest: JsonObject) => ({ ...manifest, range: { from: 0, to: 59 } }), 'count'],
      [(manifest: JsonObject) => ({ ...manifest, scope: { kind: 'tenant', tenant: 'acme' } }), 'origin'],
      [(manifest: JsonObject) => ({ ...manifest, origin: 'elsewhere' }), 'origin'],
      [
        (manifest: JsonObject) => ({ ...manifest, files: (manifest['files'] as JsonObject[]).slice(1) }),
        'digest',
      ],
      [(manifest: JsonObject) => ({ ...manifest, surplus: true }), 'malformed'],
      [(manifest: JsonObject) => ({ ...manifest, format: 'v2' }), 'malformed'],
    ] as const) {
      const report = await changed({}, (files) => {
        editJson(files, 'manifest.json', edit);
        signManifest(files);
      });
      expect(codes(report), texts(report)).to.deep.equal([code]);
      expect(report.findings[0]?.file).to.equal(code === 'digest' ? 'trust.json' : 'manifest.json');
    }
  });

  it('what no tree holds, when somebody on the way changed it and fitted the digests', async () => {
    const old = history.events.findIndex(({ metadata }) => !Object.hasOwn(metadata, 'hidden'));
    const show = (_: unknown, place: number) => (place === old ? ('redacted' as const) : ('full' as const));
    for (const part of [{ data: { note: 'forged' } }, { recordedAt: '2020-01-01T00:00:00.000Z' }]) {
      const report = await changed({ show }, (files) => {
        editLines(files, (lines) => {
          const line = lines[old] as JsonObject;
          return lines.with(old, { ...line, event: { ...(line['event'] as JsonObject), ...part } });
        });
        fitManifest(files, keyOf('foreign'));
      });
      expect(texts(report)).to.include('manifest.note: none of the keys');
    }
    const filter = await changed({}, (files) => {
      editJson(files, 'manifest.json', (manifest) => ({ ...manifest, filter: {} }));
    });
    expect(texts(filter)).to.equal(
      'manifest.note: it was signed for another manifest: manifest.json was changed, or belongs to another export',
    );
  });

  for (const name of [
    'manifest.note',
    'manifest.json',
    'trust.json',
    'checkpoint',
    'proofs.json',
    'leaves.bin',
    'events.ndjson',
  ])
    it(`a missing ${name}`, async () => {
      const report = await changed({}, (files) => files.delete(name));
      expect(report.findings[0]).to.include({ code: 'missing-file', file: name });
    });

  it('files that are too many, missing in a list, or nothing at all', async () => {
    expect(codes(await changed({}, (files) => files.set('virus.exe', Buffer.of(1))))).to.include(
      'unknown-file',
    );
    expect(codes(await changed({}, (files) => files.delete('schemas/ClusterOrdered.json')))).to.include(
      'missing-file',
    );
    const empty = await verify(new Map());
    expect([empty.ok, codes(empty), empty.count]).to.deep.equal([false, ['not-a-bundle'], 1]);
    const photos = await verify(
      new Map([
        ['beach.jpg', Buffer.of(1)],
        ['trust.json', Buffer.of(2)],
      ]),
    );
    expect([photos.ok, codes(photos), photos.count]).to.deep.equal([false, ['not-a-bundle'], 1]);
    // One of its own files, and it is a bundle of which the others are missing.
    const rest = await verify(new Map([['leaves.bin', Buffer.alloc(32)]]));
    expect([rest.count, codes(rest)]).to.deep.equal([6, ['missing-file']]);
    const broken = await verifyBundle({
      names: () => Promise.reject(new Error('no such directory')),
      read: () => empty as never,
    });
    expect(texts(broken)).to.equal('the bundle cannot be read: no such directory');
  });

  for (const [name, content] of [
    ['proofs.json', '{'],
    ['proofs.json', '[]'],
    ['proofs.json', '\ufeff{}'],
    ['trust.json', '{"origin":1,"keys":[]}'],
    ['checkpoint', 'nothing'],
    ['manifest.json', 'null'],
    ['leaves.bin', 'x'],
    ['events.ndjson', '\n\n'],
    ['events.ndjson', '\xff\n'],
  ] as const)
    it(`${name} that is ${JSON.stringify(content)}`, async () => {
      const report = await changed({}, (files) => files.set(name, Buffer.from(content, 'latin1')));
      expect(report.ok).to.equal(false);
      expect(report.findings.some(({ file }) => file === name)).to.equal(true);
    });
});
