import { expect } from 'chai';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import type { BundleLine } from '../../../../src/app/audit/bundle/format.ts';
import { ocsfOf } from '../../../../src/app/audit/bundle/ocsf.ts';
import { writeBundle } from '../../../../src/app/audit/bundle/writer.ts';
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
  lineOf,
  memorySink,
  memorySource,
  signManifest,
  tenantOf,
  textOf,
  type Ask,
  type MemoryBundle,
} from '../../../support/audit/signed-history.ts';

const SIZE = 60;
const history = historyOf(eventsOf(SIZE));
const other = historyOf(eventsOf(SIZE, 1));

const verify = (files: MemoryBundle, trust = history.trust): Promise<BundleReport> =>
  verifyBundle(memorySource(files), { trust });

const changed = async (ask: Ask, change: (files: MemoryBundle) => void): Promise<BundleReport> => {
  const files = await bundleOf(history, ask);
  change(files);
  return verify(files);
};

const nameOf = (place: number): string => {
  const event = history.events[place];
  return `${event?.stream}@${event?.revision}`;
};

const codes = ({ findings }: BundleReport): string[] => [...new Set(findings.map(({ code }) => code))];
const texts = ({ findings }: BundleReport): string => findings.map(findingText).join('\n');

describe('verifying a bundle: what was changed is named', () => {
  it('a byte of the data of an event', async () => {
    const report = await changed({}, (files) => {
      const text = textOf(files, 'events.ndjson').replace('"note":"n 17"', '"note":"n 18"');
      files.set('events.ndjson', Buffer.from(text));
    });
    expect(report.ok).to.equal(false);
    expect(report.findings[0]).to.include({ code: 'content', event: nameOf(17), place: 17, line: 18 });
    expect(codes(report)).to.deep.equal(['content', 'digest']);
    expect(texts(report)).to.include('its data is not what was stored');
  });

  const forgedAt = (place: number) =>
    historyOf(
      history.events.map((event, n) =>
        n === place ? { ...event, data: { ...event.data, note: 'forged' } } : event,
      ),
    );

  it('an event together with its leaf and all digests', async () => {
    for (const [ask, main, place] of [
      [{}, 17, 17],
      [{ tenant: 'acme' }, history.placesOf('acme')[4] ?? 0, 4],
    ] as const) {
      const forged = lineOf(forgedAt(main), main) as unknown as JsonObject;
      const report = await changed(ask, (files) => {
        editLines(files, (lines) => lines.with(place, forged));
        fitManifest(files);
      });
      expect(codes(report), texts(report)).to.deep.equal(['changed-event']);
      expect(report.findings[0]).to.include({ event: nameOf(main), place, line: place + 1 });
    }
  });

  for (const [what, edit, expected] of [
    [
      'an event that is missing',
      (lines: JsonObject[]) => lines.toSpliced(20, 1),
      { code: 'missing-event', place: 20 },
    ],
    [
      'events that are missing at the end',
      (lines: JsonObject[]) => lines.slice(0, 55),
      { code: 'missing-event', place: 55 },
    ],
    [
      'an event that comes twice',
      (lines: JsonObject[]) => lines.toSpliced(20, 0, lines[5] as JsonObject),
      { code: 'added-event', place: 20, event: nameOf(5) },
    ],
    [
      'an event of another history',
      (lines: JsonObject[]) => lines.toSpliced(20, 0, lineOf(other, 20) as unknown as JsonObject),
      { code: 'added-event', place: 20, line: 21 },
    ],
    [
      'two events that were swapped',
      (lines: JsonObject[]) => lines.toSpliced(20, 2, lines[21] as JsonObject, lines[20] as JsonObject),
      { code: 'missing-event', place: 20 },
    ],
    [
      'the rest of another history',
      (lines: JsonObject[]) => [
        ...lines.slice(0, 40),
        ...Array.from({ length: 20 }, (_, n) => lineOf(other, 40 + n) as unknown as JsonObject),
      ],
      { code: 'changed-event', place: 40 },
    ],
    [
      'a number that was changed',
      (lines: JsonObject[]) => lines.with(20, { ...(lines[20] as JsonObject), index: 30 }),
      { code: 'order', place: 20, event: nameOf(20) },
    ],
    [
      'a revelation of what is not encrypted',
      (lines: JsonObject[]) =>
        lines.with(20, { ...(lines[20] as JsonObject), revealed: { '/data/note': 'x' } }),
      { code: 'content', event: nameOf(20) },
    ],
    [
      'a full event passed off as redacted with other types',
      (lines: JsonObject[]) =>
        lines.with(20, {
          ...(lines[20] as JsonObject),
          shown: 'redacted',
          leaf: { ...((lines[20] as JsonObject)['leaf'] as JsonObject), type: 'Other' },
        }),
      { code: 'changed-event', place: 20, event: nameOf(20) },
    ],
  ] as const)
    it(what, async () => {
      const report = await changed({}, (files) => {
        editLines(files, edit);
        fitManifest(files);
      });
      expect(report.ok).to.equal(false);
      expect(report.findings[0], texts(report)).to.include(expected);
    });

  it('a line in another spelling, which two readers could read in two ways', async () => {
    for (const [from, to] of [
      ['"note":"n 17"', '"note":"n 17" '],
      ['"note":"n 17"', '"note":"forged","note":"n 17"'],
      ['"note":"n 17"', '"note":"\\u006e 17"'],
    ] as const) {
      const report = await changed({}, (files) => {
        files.set('events.ndjson', Buffer.from(textOf(files, 'events.ndjson').replace(from, to)));
        fitManifest(files);
      });
      expect(report.findings[0], to).to.include({ code: 'malformed', line: 18, event: nameOf(17) });
    }
  });

  it('why an event is withheld, which the filter must allow', async () => {
    const show = () => 'withheld' as const;
    for (const [why, filter, expected] of [
      ['filter', {}, 'manifest.json: it has no filter, 60 events are withheld for one'],
      ['filter', { kind: 'clusters' }, ''],
      ['audience', {}, ''],
    ] as const) {
      const report = await changed({ show }, (files) => {
        editLines(files, (lines) => lines.map((line) => ({ ...line, why })));
        editJson(files, 'manifest.json', (manifest) => ({ ...manifest, filter }));
        fitManifest(files);
      });
      expect(texts(report)).to.equal(expected);
      expect(report.withheldBy[why]).to.equal(SIZE);
    }
    for (const change of [{ why: 'because' }, { shown: 'full', why: 'filter' }]) {
      const report = await changed(change.shown === 'full' ? {} : { show }, (files) => {
        editLines(files, (lines) => lines.with(5, { ...(lines[5] as JsonObject), ...change }));
        fitManifest(files);
      });
      expect(report.findings[0], texts(report)).to.include({ code: 'malformed', line: 6 });
    }
  });

  it('OCSF records that are not what their events give', async () => {
    const show = (_: unknown, place: number) => (place % 3 === 0 ? ('withheld' as const) : ('full' as const));
    const content = contentOf(history, { show });
    const records = (content.lines as BundleLine[]).flatMap(({ leaf, event, revealed }) =>
      leaf === null || event === null
        ? []
        : [JSON.stringify(ocsfOf({ leaf, event, productVersion: '1', ...(revealed && { revealed }) }))],
    );
    const withRecords = async (lines: readonly string[]): Promise<BundleReport> => {
      const { sink, files } = memorySink();
      await writeBundle({ ...content, more: [{ name: 'ocsf.ndjson', lines }] }, sink);
      return verify(files);
    };
    expect((await withRecords(records)).findings).to.deep.equal([]);
    const forged = (records[3] ?? '').replace('"activity_id"', '"forged":1,"activity_id"');
    for (const [lines, line, message] of [
      [records.with(3, forged), 4, 'not the record that the event gives'],
      [records.with(3, (records[3] ?? '').replace('"version":"1"', '"version":"2"')), 4, 'not the record'],
      [records.with(3, `${records[3]} `), 4, 'no JSON object on a line'],
      [records.with(3, '{}'), 4, 'no JSON object on a line'],
      [records.toSpliced(3, 1), 4, 'not the record that the event gives'],
      [records.slice(0, -1), records.length, 'all behind it, are missing'],
      [[...records, records[0] ?? ''], records.length + 1, 'more records than events'],
    ] as const) {
      const { findings } = await withRecords(lines);
      expect(findings[0]).to.include({ code: 'content', file: 'ocsf.ndjson', line });
      expect(findings[0]?.message).to.include(message);
    }
  });

  it('a line that is nested without end', async () => {
    const report = await changed({}, (files) => {
      const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
      const text = textOf(files, 'events.ndjson').replace('"note":"n 17"', `"note":${deep}`);
      files.set('events.ndjson', Buffer.from(text));
    });
    expect(report.findings[0]).to.include({ code: 'malformed', line: 18 });
    expect(report.counts.events).to.equal(SIZE);
  });

  it('a line that cannot be read, the others are still checked', async () => {
    const report = await changed({}, (files) => {
      const lines = textOf(files, 'events.ndjson').split('\n');
      lines[17] = (lines[17] ?? '').slice(0, -1);
      lines[30] = (lines[30] ?? '').replace('"note":"n 30"', '"note":"n 31"');
      files.set('events.ndjson', Buffer.from(lines.join('\n')));
    });
    const named = report.findings.map(({ event }) => event);
    expect(named).to.include(nameOf(17)).and.to.include(nameOf(30));
    expect(report.findings.some(({ code }) => code === 'missing-event')).to.equal(false);
  });

  it('a file that is cut off in the middle of a line', async () => {
    const report = await changed({}, (files) => {
      const bytes = files.get('events.ndjson') as Buffer;
      files.set('events.ndjson', bytes.subarray(0, bytes.length - 1));
    });
    expect(texts(report)).to.include('the file ends in the middle of a line');
  });

  it('hashes in leaves.bin: the events themselves are right', async () => {
    const report = await changed({}, (files) => {
      const bytes = Buffer.from(files.get('leaves.bin') as Buffer);
      bytes.writeUInt8(bytes.readUInt8(17 * 32) ^ 1, 17 * 32);
      files.set('leaves.bin', bytes);
      fitManifest(files);
    });
    expect(report.findings).to.have.length(1);
    expect(report.findings[0]).to.include({ code: 'leaves', place: 17 });
  });

  it('an event, its leaf and leaves.bin: then the range is all that can be told', async () => {
    const forged = forgedAt(17);
    const [files, theirs] = [await bundleOf(history), await bundleOf(forged)];
    for (const name of ['events.ndjson', 'leaves.bin']) files.set(name, theirs.get(name) as Buffer);
    fitManifest(files);
    const report = await verify(files);
    expect(codes(report)).to.deep.equal(['root']);
    expect(report.findings[0]?.place).to.deep.equal([0, SIZE]);
  });

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
