import { expect } from 'chai';
import type { BundleProofs } from '../../../../src/app/audit/bundle/format.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import type { LaterProof } from '../../../../src/app/audit/bundle/pin-check.ts';
import { consistencyPath } from '../../../../src/app/audit/merkle/proofs.ts';
import { signRotation } from '../../../../src/app/audit/merkle/key-chain.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
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
  tenantOf,
  textOf,
  vkey,
  type Ask,
  type MemoryBundle,
  writeBundle,
} from '../../../support/audit/signed-history.ts';
import { codes, history, SIZE, texts, verify } from './changed-bundles.ts';

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

  it('that a bundle says nothing of are continued by a proof beside it, where it is of the whole log', async () => {
    const path = (of = history): string[] =>
      consistencyPath(30, SIZE, of.tree.hashAt).map((hash) => hash.toString('base64'));
    const later: LaterProof = { from: 30, to: SIZE, path: path() };
    const beside = async (proof: LaterProof | undefined, ask = {}): Promise<BundleReport> =>
      verifyBundle(memorySource(await bundleOf(history, { from: 40, ...ask })), {
        trust: pinned(30),
        ...(proof === undefined ? {} : { later: proof }),
      });
    const right = await beside(later);
    expect([right.pin, right.ok], texts(right)).to.deep.equal(['continued', true]);
    for (const [proof, ask, text] of [
      [undefined, {}, `or for the proof (ledgerctl audit consistency --from 30 --to ${SIZE} -o proof.json)`],
      [{ ...later, path: path(forked) }, {}, 'does not lead from there to it'],
      [{ ...later, path: [] }, {}, 'does not lead from there to it'],
      [{ ...later, from: 20 }, {}, `the proof that was given is from size 20 to size ${SIZE}`],
      [later, { tenant: 'acme', from: 1 }, 'ask for an export with "pins": [30] (audit export --trust)'],
    ] as const) {
      const report = await beside(proof, ask);
      expect([report.pin, report.ok], text).to.deep.equal(['not shown', false]);
      expect(texts(report)).to.include(text);
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

  it('tell an export that ends before them from another history: nothing in it contradicts them', async () => {
    const report = await verify(await bundleOf(history, { at: 30 }), pinned(50));
    expect([report.pin, report.pinSize, report.ok, report.count]).to.deep.equal([
      'ends before',
      50,
      false,
      1,
    ]);
    expect(texts(report))
      .to.include(
        'the export ends at size 30, before your pin of size 50, and holds no proof from there to it',
      )
      .and.to.include('history was taken back')
      .and.to.include('audit consistency --from 30 --to 50 -o proof.json')
      .and.to.include('with the trust.json that you kept when you got it');
    expect(report.trust).to.equal(undefined);
  });

  it('are reached by an export that is older, where a proof leads from it to them', async () => {
    const path = (of = history): string[] =>
      consistencyPath(30, 50, of.tree.hashAt).map((hash) => hash.toString('base64'));
    const later = { from: 30, to: 50, path: path() };
    const older = async (of = history, proof: LaterProof = later): Promise<BundleReport> =>
      verifyBundle(memorySource(await bundleOf(of, { at: 30 })), { trust: pinned(50), later: proof });
    const report = await older();
    expect([report.pin, report.ok], texts(report)).to.deep.equal(['leads to', true]);
    expect(report.trust, 'a pin does not move back').to.equal(undefined);
    expect(report.notProven.join('\n')).to.include('behind your pin of size 50');
    const other = historyOf(eventsOf(SIZE, 1));
    for (const [of, proof, says] of [
      [other, later, 'does not lead from there to it'],
      [other, { ...later, path: path(other) }, 'does not lead from there to it'],
      [history, { ...later, path: later.path.slice(1) }, 'does not lead from there to it'],
      [history, { ...later, path: [] }, 'does not lead from there to it'],
      [history, { ...later, path: ['AAAA', 'no base64'] }, 'does not lead from there to it'],
      [history, { ...later, to: 60 }, 'the proof that was given is from size 30 to size 60'],
    ] as const) {
      const refused = await older(of, proof);
      expect([refused.pin, refused.ok], says).to.deep.equal(['ends before', false]);
      expect(texts(refused)).to.include(says);
    }
  });

  type Damage = readonly [what: string, how: (files: MemoryBundle) => void];
  const damagesOf = (name: string): readonly Damage[] => [
    [`a missing ${name}`, (files) => void files.delete(name)],
    [`a cut off ${name}`, (files) => void files.set(name, Buffer.from(textOf(files, name).slice(0, 40)))],
  ];
  const damages: readonly Damage[] = [
    ...damagesOf('proofs.json'),
    ...damagesOf('checkpoint'),
    ...damagesOf('events.ndjson'),
    ...damagesOf('leaves.bin'),
    ...damagesOf('manifest.json'),
    ...damagesOf('manifest.note'),
    [
      'a proof with another byte',
      (files) =>
        editJson(files, 'proofs.json', (proofs): JsonObject => {
          const pins = (proofs['pins'] as JsonObject[]).map((pin): JsonObject => {
            const path = (pin['path'] as string[]).map((hash) => `A${hash.slice(1)}`);
            return { ...pin, path };
          });
          return { ...proofs, pins };
        }),
    ],
    [
      'an event with another type',
      (files) => {
        const text = textOf(files, 'events.ndjson');
        files.set('events.ndjson', Buffer.from(text.replace('"type":"', '"type":"X')));
      },
    ],
  ];
  for (const [what, damage] of damages)
    for (const ask of [{ pins: [30] }, { from: 40, pins: [30] }, { tenant: 'acme', pins: [30] }])
      it(`say nothing of the history where there is ${what} (${JSON.stringify(ask)})`, async () => {
        const files = await bundleOf(history, ask);
        damage(files);
        const report = await verify(files, pinned(30));
        expect(report.ok).to.equal(false);
        expect(report.pin, texts(report)).to.be.oneOf(['not checked', 'continued']);
        expect(codes(report), texts(report)).to.not.include('pin');
      });

  it('are broken by a signed head that contradicts them, whatever else is damaged', async () => {
    const files = await bundleOf(forked);
    files.delete('proofs.json');
    const report = await verify(files, pinned(SIZE));
    expect(report.pin, texts(report)).to.equal('broken');
    expect(texts(report)).to.include(`two histories of size ${SIZE}`);
  });

  it('follow from the report: what is proven of them is not called unproven, nor what is not there proven', async () => {
    const whole = await verify(await bundleOf(history));
    expect(whole.proven.join('\n')).to.include('shown in full').and.to.not.include('redacted');
    const none = await verify(await bundleOf(history, { show: () => 'withheld' }));
    expect(none.proven.join('\n')).to.include('withheld').and.to.not.include('shown in full');
    const without = (await verify(await bundleOf(history))).notProven.join('\n');
    expect(without).to.include('unless a checkpoint is pinned');
    const report = await verify(await bundleOf(history), pinned(30));
    expect(report.notProven.join('\n'))
      .to.include('behind your pin of size 30')
      .and.to.not.include('unless a checkpoint is pinned');
  });

  it('are asked for when the bundle holds no proof for them', async () => {
    const report = await verify(await bundleOf(history, { tenant: 'acme' }), pinned(30));
    expect([report.pin, report.ok]).to.deep.equal(['not shown', false]);
    expect(texts(report)).to.include('"pins": [30]');
  });

  it('that nobody trusted signed are refused', async () => {
    const pin = history.noteAt(30, keyOf('second'));
    const report = await verify(await bundleOf(history), { ...history.trust, pin });
    expect([report.pin, report.ok]).to.deep.equal(['not checked', false]);
    expect(texts(report)).to.include('the pin cannot be used');
  });
});

describe('pins of a tenant', () => {
  const pinned = (of: typeof history, size: number) => ({ ...of.trust, pin: of.noteAt(size) });
  /** The same log, in which the signer files one event of acme under another tenant. */
  const filed = (place: number) =>
    historyOf(history.events, keyOf('first'), (event, n) => (n === place ? 'elsewhere' : tenantOf(event)));
  const [early = 0] = history.placesOf('acme').slice(2);
  const shows = async (of: typeof history, ask: Ask, size: number): Promise<BundleReport> =>
    verify(await bundleOf(of, ask), pinned(history, size));

  it('show that an event from before them was taken from the tree of the tenant', async () => {
    for (const size of [early + 1, 30, SIZE - 1]) {
      const report = await shows(filed(early), { tenant: 'acme', pins: [size] }, size);
      expect([report.pin, report.ok], String(size)).to.deep.equal(['broken', false]);
      expect(texts(report)).to.include('does not vouch for a tree of tenant acme');
    }
  });

  it('show it, too, when the bundle brings the proof of the pin from before', async () => {
    const forged = await bundleOf(filed(early), { tenant: 'acme', pins: [30] });
    const right = JSON.parse(
      textOf(await bundleOf(history, { tenant: 'acme', pins: [30] }), 'proofs.json'),
    ) as {
      pins: JsonObject[];
    };
    editJson(forged, 'proofs.json', (proofs) => ({ ...proofs, pins: right.pins }));
    fitManifest(forged);
    const report = await verify(forged, pinned(history, 30));
    expect(texts(report)).to.include('from before your pin of size 30 are missing or changed');
  });

  it('are not held to be continued when the bundle says nothing of the tenant there', async () => {
    const content = contentOf(history, { tenant: 'acme', pins: [30] });
    const proofs = content.proofs as BundleProofs;
    const pins = proofs.pins.map(({ tenant: _left, ...pin }) => pin);
    const { sink, files } = memorySink();
    await writeBundle({ ...content, proofs: { ...proofs, pins } }, sink);
    const report = await verify(files, pinned(history, 30));
    expect([report.pin, report.ok]).to.deep.equal(['not shown', false]);
    expect(texts(report)).to.include(
      'does not show that the tree of tenant acme continues the one at your pin',
    );
  });

  it('of which it had no events yet are continued when its neighbours show that', async () => {
    for (const tenant of ['acme', 'globex', '']) {
      const own = eventsOf(20).filter((event) => tenantOf(event) !== tenant);
      const late = historyOf([...own, ...eventsOf(SIZE, 3).slice(20)]);
      expect(late.placesOf(tenant).length).to.be.greaterThan(0);
      const trust = pinned(late, own.length);
      const files = await bundleOf(late, { tenant, pins: [own.length] });
      const report = await verify(files, trust);
      expect([report.pin, report.ok], texts(report)).to.deep.equal(['continued', true]);
      // One neighbour alone, or none, shows nothing.
      for (const keep of [0, 1]) {
        const cut = new Map(files);
        editJson(cut, 'proofs.json', (proofs) => ({
          ...proofs,
          pins: (proofs['pins'] as JsonObject[]).map((pin) => ({
            ...pin,
            between: (pin['between'] as JsonObject[]).slice(0, keep),
          })),
        }));
        if (textOf(cut, 'proofs.json') === textOf(files, 'proofs.json')) continue;
        fitManifest(cut);
        const refused = await verify(cut, trust);
        expect(texts(refused)).to.include('does not prove that');
      }
    }
  });

  it('cannot be called older than the tenant', async () => {
    const hiding = historyOf(history.events, keyOf('first'), (event, n) =>
      n < 30 && tenantOf(event) === 'acme' ? 'elsewhere' : tenantOf(event),
    );
    const report = await shows(hiding, { tenant: 'acme', pins: [30] }, 30);
    expect(texts(report)).to.include('does not prove that tenant acme had no events at your pin of size 30');
  });

  it('of the same size show other trees of tenants, and another position', async () => {
    for (const ask of [{}, { tenant: 'acme' }]) {
      const report = await shows(filed(early), ask, SIZE);
      expect([report.pin, report.ok]).to.deep.equal(['broken', false]);
      expect(texts(report)).to.include(`two histories of size ${SIZE}: the root over its tenants`);
    }
    const moved = historyOf(
      history.events.map((event, n) => (n === SIZE - 1 ? { ...event, position: '0000000000009999' } : event)),
    );
    const report = await shows(moved, {}, SIZE);
    expect(texts(report)).to.include('the position of its last event');
  });

  it('that were signed over wrong trees of tenants are found by an export of the whole log', async () => {
    const report = await verify(await bundleOf(history), pinned(filed(early), 30));
    expect(texts(report)).to.include('the trees of the tenants at your pin of size 30');
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

  const rotated = (size: number, next = keyOf('second')) => {
    const stated = { vkey: vkey(next), since: '2026-11-21T14:00:00.000Z', size };
    const key = {
      vkey: stated.vkey,
      since: stated.since,
      rotation: signRotation(ORIGIN, stated, keyOf('first')),
    };
    return { ...history.trust, keys: [...history.trust.keys, key] };
  };
  const first = keyOf('first');

  it('vouch for what they signed before, and for nothing beyond it', async () => {
    const trust = rotated(30);
    expect((await verify(await bundleOf(history, { at: 30 }), trust)).ok).to.equal(true);
    const late = await verify(await bundleOf(history, { at: 31, signer: first }), trust);
    expect(codes(late), texts(late)).to.deep.equal(['checkpoint']);
    expect(texts(late)).to.include('signed with a key that was replaced at size 30');
    // The thief of the key may leave the successor out, or bring another one.
    const usurper = { ...history, trust: rotated(60, keyOf('third')) };
    const found = await verify(await bundleOf(usurper, { at: 31, signer: keyOf('third') }), trust);
    expect(texts(found)).to.include('another one than the key before it announced already');
    expect(codes(found)).to.include('checkpoint');
  });

  it('stay with the auditor, to whom the bundle brings those that they announced', async () => {
    const trust = rotated(30);
    const old = await verify(await bundleOf(history, { at: 30 }), trust);
    expect(old.trust).to.deep.equal({ ...trust, pin: history.noteAt(30) });
    const next = keyOf('second');
    const renewed = await verify(await bundleOf({ ...history, trust }, { signer: next }));
    expect(renewed.trust).to.deep.equal({ ...trust, pin: history.noteAt(SIZE, next) });
  });

  it('are taken without announcement where the auditor was told to trust them, and not where they come with a bundle', async () => {
    const [start] = history.trust.keys;
    const next = keyOf('second');
    const lost = { vkey: vkey(next), since: '2026-11-21T14:00:00.000Z' };
    const trust = { ...history.trust, keys: [start as NonNullable<typeof start>, lost] };
    const files = await bundleOf({ ...history, trust }, { signer: next });
    for (const keys of [trust.keys, [lost]]) {
      const report = await verify(files, { ...history.trust, keys });
      expect(texts(report)).to.equal('');
      expect(report.trust?.keys).to.deep.equal(keys);
    }
    const untold = await verify(files);
    expect(codes(untold)).to.deep.equal(['key', 'checkpoint', 'digest']);
    expect(texts(untold)).to.include('came without a note of the key before it');
    const bare = await verifyBundle(memorySource(files));
    expect(codes(bare), 'as shipped').to.include('key');
  });
});
