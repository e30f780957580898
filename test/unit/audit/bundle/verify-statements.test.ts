import { expect } from 'chai';
import type { BundleLine } from '../../../../src/app/audit/bundle/format.ts';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import { checkpointText } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { signRotation, type Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { signNote } from '../../../../src/app/audit/merkle/note.ts';
import { leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import {
  bundleOf,
  contentOf,
  editJson,
  eventsOf,
  fitManifest,
  historyOf,
  keyOf,
  memorySink,
  memorySource,
  ORIGIN,
  signManifest,
  vkey,
  type Ask,
  type MemoryBundle,
  writeBundle,
  lineHash,
} from '../../../support/audit/signed-history.ts';

const SIZE = 8;
const history = historyOf(eventsOf(SIZE));
const first = keyOf('first');

const verify = (files: MemoryBundle, trust: Trust = history.trust): Promise<BundleReport> =>
  verifyBundle(memorySource(files), { trust });
const listed = ({ findings }: BundleReport): string[] => findings.map(findingText);

/** What a bundle states beside its hashes, made by somebody who fits everything else. */
describe('verifying a bundle: what it states', () => {
  it('is of the size that was signed, also where the proof for another size has the same form', async () => {
    for (const [to, size, stated] of [
      [4, 8, 7],
      [4, 8, 5],
      [2, 4, 3],
    ] as const) {
      const files = await bundleOf(history, { at: size, to });
      expect(listed(await verify(files))).to.deep.equal([]);
      editJson(files, 'proofs.json', (proofs) => ({
        ...proofs,
        tree: { ...(proofs['tree'] as object), size: stated },
      }));
      fitManifest(files);
      const report = await verify(files);
      expect(listed(report), `${to} ${size} ${stated}`).to.deep.equal([
        `proofs.json: it is about size ${stated}, the checkpoint is of ${size}`,
      ]);
    }
  });

  it('is the time of each event that its metadata has, whatever was signed', async () => {
    const place = 5;
    const content = contentOf(history, { from: 1 });
    const lines = (content.lines as readonly BundleLine[]).map((line) =>
      line.index === place && line.leaf !== null
        ? { ...line, leaf: { ...line.leaf, occurredAt: '2020-01-01T00:00:00.000Z' } }
        : line,
    );
    const before = history.events.slice(0, 1).map((event) => leafOf(event));
    const tree = createMemoryTree([
      ...before.map((leaf) => lineHash({ leaf } as BundleLine)),
      ...lines.map(lineHash),
    ]);
    const checkpoint = { ...content.checkpoint, root: tree.rootAt(SIZE) };
    const note = signNote(checkpointText(checkpoint), first);
    const { sink, files } = memorySink();
    await writeBundle({ ...content, hashAt: tree.hashAt, checkpoint, note, lines }, sink);
    const report = await verify(files);
    expect(report.findings).to.have.length(1);
    expect(report.findings[0]).to.deep.include({ code: 'content', place });
    expect(listed(report).join()).to.include('its time is not that of its metadata');
  });

  it('is that who reads the whole log is kept from something, which is said to be the word of the service', async () => {
    const said = async (ask: Ask): Promise<string> =>
      (await verify(await bundleOf(history, ask))).notProven.join('\n');
    const some = await said({ show: (_, place) => (place < 3 ? 'withheld' : 'full') });
    expect(some).to.include('that 3 of the events had to be withheld from a reader of the whole log');
    expect(await said({})).to.not.include('a reader of the whole log');
    expect(await said({ tenant: 'acme', show: () => 'withheld' })).to.not.include(
      'a reader of the whole log',
    );
  });

  it('was signed by a key that was in force: one that had been replaced signs no manifest any more', async () => {
    const next = keyOf('second');
    const rotated = (size: number, since: string): Trust => {
      const stated = { vkey: vkey(next), since, size };
      const rotation = signRotation(ORIGIN, stated, first);
      return { ...history.trust, keys: [...history.trust.keys, { vkey: stated.vkey, since, rotation }] };
    };
    for (const [size, since, says] of [
      [SIZE - 1, '2026-11-21T14:00:00.000Z', `replaced at size ${SIZE - 1}`],
      [SIZE, '2026-11-21T13:00:00.000Z', 'replaced at 2026-11-21T13:00:00.000Z'],
      [SIZE, '2026-11-21T14:00:00.000Z', undefined],
    ] as const) {
      const trust = rotated(size, since);
      const files = await bundleOf({ ...history, trust }, { signer: next });
      expect(listed(await verify(files, trust))).to.deep.equal([]);
      signManifest(files, first);
      expect(listed(await verify(files, trust))).to.deep.equal(
        says === undefined ? [] : [`manifest.note: it was signed with a key that was ${says}`],
      );
    }
  });
});
