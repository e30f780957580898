import { expect } from 'chai';
import { canonicalHash } from '../../../../src/app/audit/merkle/leaf.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { asTenant, editLines, fitManifest, type Ask } from '../../../support/audit/signed-history.ts';
import { changed, codes, history, nameOf, texts } from './changed-bundles.ts';

describe('verifying what a tenant is shown of an event that hides something', () => {
  const place = history.events.findIndex(({ metadata }) => Object.hasOwn(metadata, 'hidden'));
  const ask = { show: asTenant };
  type Line = {
    readonly event: { data: JsonObject; metadata: JsonObject };
    readonly leaf: JsonObject;
  } & JsonObject;
  const edited = (edit: (line: Line) => JsonObject, more: Ask = ask) =>
    changed(more, (files) => {
      editLines(files, (lines) => lines.with(place, edit(lines[place] as unknown as Line)));
      // Whoever has the key of the audit can make everything fit but the tree.
      fitManifest(files);
    });
  const inEvent = (part: object) => (line: Line) => ({ ...line, event: { ...line.event, ...part } });

  it('nothing is wrong as it is, and how much of it is proven is said', async () => {
    const report = await changed(ask, () => undefined);
    expect(report.findings, texts(report)).to.deep.equal([]);
    expect(report.counts.redacted).to.be.greaterThan(5);
    expect(report.redactedProven).to.equal(report.counts.redacted);
    expect(report.proven).to.include('redacted events: the same for every part that is shown');
    const old = await changed({ show: () => 'redacted' }, () => undefined);
    expect(old.findings, texts(old)).to.deep.equal([]);
    expect(old.redactedProven).to.equal(report.redactedProven);
    expect(old.proven.join()).to.include('where the leaf has `hidden`; where it has not');
  });

  for (const [what, edit, message] of [
    ['a value', (line: Line) => inEvent({ data: { ...line.event.data, note: 'forged' } })(line), 'its data'],
    ['one more field', (line: Line) => inEvent({ data: { ...line.event.data, hub: 'x' } })(line), 'its data'],
    [
      'who did it',
      (line: Line) => inEvent({ metadata: { ...line.event.metadata, actor: {} } })(line),
      'its metadata',
    ],
    [
      'a salt that should not be there',
      (line: Line) =>
        inEvent({
          metadata: { ...line.event.metadata, hidden: { paths: ['/data/x'], salt: '0'.repeat(32) } },
        })(line),
      'its metadata',
    ],
    [
      'an event that is said to be whole',
      (line: Line) => ({ ...line, shown: 'full' }),
      'its metadata does not say',
    ],
  ] as const)
    it(what, async () => {
      const report = await edited(edit);
      expect(report.findings[0], texts(report)).to.include({
        code: 'content',
        event: nameOf(place),
        place,
        line: place + 1,
      });
      expect(texts(report)).to.include(message);
    });

  it('its leaf, made to fit', async () => {
    const report = await edited((line) => {
      const data = { ...line.event.data, note: 'forged' };
      return { ...line, event: { ...line.event, data }, leaf: { ...line.leaf, data: canonicalHash(data) } };
    });
    expect(codes(report), texts(report)).to.deep.equal(['changed-event']);
    expect(report.findings[0]).to.include({ event: nameOf(place), place });
  });

  for (const [what, leaf] of [
    ['of another version', { v: 3 }],
    ['with a hash that is no text', { hidden: 1 }],
  ] as const)
    it(`a leaf ${what}`, async () => {
      const report = await edited((line) => ({ ...line, leaf: { ...line.leaf, ...leaf } }));
      expect(report.findings[0], texts(report)).to.include({ code: 'malformed', place });
    });

  it('and in full, what was hidden, its salt, and the cut', async () => {
    const whole = ({ metadata }: Line['event']) => metadata['hidden'] as { paths: string[]; salt: string };
    for (const edit of [
      (line: Line) => inEvent({ data: { ...line.event.data, hub: 'hub-2' } })(line),
      (line: Line) =>
        inEvent({
          metadata: { ...line.event.metadata, hidden: { ...whole(line.event), salt: '0'.repeat(32) } },
        })(line),
      (line: Line) =>
        inEvent({
          metadata: {
            ...line.event.metadata,
            hidden: { ...whole(line.event), paths: ['/data/hub', '/metadata/hub'] },
          },
        })(line),
      (line: Line) => {
        const { hidden: _hidden, ...metadata } = line.event.metadata;
        return inEvent({ metadata })(line);
      },
    ]) {
      const report = await edited(edit, {});
      expect(report.findings[0], texts(report)).to.include({
        code: 'content',
        event: nameOf(place),
        place,
      });
    }
  });
});
