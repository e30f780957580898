import { expect } from 'chai';
import type { BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import type { BundleLine } from '../../../../src/app/audit/bundle/format.ts';
import { ocsfOf } from '../../../../src/app/audit/bundle/ocsf.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import {
  bundleOf,
  contentOf,
  editJson,
  editLines,
  fitManifest,
  historyOf,
  lineOf,
  memorySink,
  textOf,
  writeBundle,
} from '../../../support/audit/signed-history.ts';
import { changed, codes, history, nameOf, other, SIZE, texts, verify } from './changed-bundles.ts';

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
      [records.with(3, `${records[3]} `), 4, 'not a JSON object on a line'],
      [records.with(3, '{}'), 4, 'not a JSON object on a line'],
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
});
