import { expect } from 'chai';
import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import { signRotation } from '../../../../src/app/audit/merkle/key-chain.ts';
import {
  bundleOf,
  eventsOf,
  historyOf,
  keyOf,
  memorySource,
  ORIGIN,
  vkey,
  type MemoryBundle,
} from '../../../support/audit/signed-history.ts';

const SIZE = 60;
const history = historyOf(eventsOf(SIZE));

const verify = (files: MemoryBundle, trust = history.trust): Promise<BundleReport> =>
  verifyBundle(memorySource(files), { trust });

const texts = ({ findings }: BundleReport): string => findings.map(findingText).join('\n');
const codes = ({ findings }: BundleReport): string[] => [...new Set(findings.map(({ code }) => code))];

describe('pins', () => {
  const pinned = (size: number, of = history) => ({ ...history.trust, pin: of.noteAt(size) });
  const forked = historyOf([...history.events.slice(0, 30), ...eventsOf(SIZE, 1).slice(30)]);

  it('are continued by a bundle of the whole log, and by others that hold the proof', async () => {
    for (const [ask, size] of [
      [{}, 0],
      [{}, 1],
      [{}, 30],
      [{}, SIZE],
      [{ from: 20 }, 40],
      [{ from: 20, pins: [10] }, 10],
      [{ tenant: 'acme', pins: [10, 30, 60, 90] }, 30],
      [{ tenant: 'acme' }, SIZE],
    ] as const) {
      const report = await verify(await bundleOf(history, ask), pinned(size));
      expect([report.pin, report.ok], texts(report)).to.deep.equal(['continued', true]);
    }
  });

  it('show two histories of the same size, whoever they are shown to', async () => {
    const mine = await bundleOf(history);
    const theirs = await bundleOf(forked);
    expect((await verify(mine, pinned(SIZE))).ok).to.equal(true);
    const report = await verify(theirs, pinned(SIZE));
    expect(report.pin).to.equal('broken');
    expect(texts(report)).to.include(`two histories of size ${SIZE}`);
  });

  it('show a history that was rewritten before them', async () => {
    for (const ask of [{}, { tenant: 'acme', pins: [40] }]) {
      const report = await verify(await bundleOf(forked, ask), pinned(40));
      expect(report.pin).to.equal('broken');
      expect(texts(report)).to.include('another history than your pin of size 40');
      // What was the same by then is continued.
      const before = await verify(await bundleOf(forked, { ...ask, pins: [30] }), pinned(30));
      expect(before.pin).to.equal('continued');
    }
  });

  it('show a history that was taken back', async () => {
    const report = await verify(await bundleOf(history, { at: 30 }), pinned(50));
    expect(report.pin).to.equal('broken');
    expect(texts(report)).to.include('before your pin of size 50');
  });

  it('are asked for when the bundle holds no proof for them', async () => {
    const report = await verify(await bundleOf(history, { tenant: 'acme' }), pinned(30));
    expect(report.pin).to.equal('broken');
    expect(texts(report)).to.include('"pins": [30]');
  });

  it('that nobody trusted signed are refused', async () => {
    const pin = history.noteAt(30, keyOf('second'));
    const report = await verify(await bundleOf(history), { ...history.trust, pin });
    expect(report.pin).to.equal('broken');
    expect(texts(report)).to.include('the pin cannot be used');
  });
});

describe('keys that were replaced', () => {
  it('are trusted when the pinned one announced them', async () => {
    const next = keyOf('second');
    const key = { vkey: vkey(next), since: '2026-11-21T12:30:00.000Z' };
    const rotation = signRotation(ORIGIN, key, keyOf('first'));
    const rotated = {
      ...history,
      trust: { ...history.trust, keys: [...history.trust.keys, { ...key, rotation }] },
    };
    const files = await bundleOf(rotated, { signer: next });
    expect((await verify(files)).ok).to.equal(true);
    const self = { ...history.trust.keys[0], ...key, rotation: signRotation(ORIGIN, key, next) };
    const usurped = { ...history, trust: { ...history.trust, keys: [...history.trust.keys, self] } };
    const report = await verify(await bundleOf(usurped, { signer: next }));
    expect(codes(report)).to.deep.equal(['key', 'checkpoint', 'digest']);
  });
});
