import { expect } from 'chai';
import fc from 'fast-check';
import { findingText, type Finding } from '../../../src/app/audit/bundle/findings.ts';
import { verifyStore, type StoreOptions } from '../../../src/app/audit/bundle/verify-store.ts';
import { signRotation } from '../../../src/app/audit/merkle/key-chain.ts';
import { leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { eventsOf, historyOf, keyOf, ORIGIN, vkey } from '../../support/audit/signed-history.ts';
import { signedLog, stoppedLog } from '../../support/audit/signed-log.ts';
import { leavesOfLog, logVictim, tamperLog } from '../../support/audit/tampering/log.ts';
import { checkAsync } from '../../support/property.ts';

const MUTATIONS = Number(process.env['LEDGER_TEST_MUTATIONS'] ?? 200);
const draws = fc.record({
  kind: fc.nat(1000),
  a: fc.nat(10_000),
  b: fc.nat(10_000),
  bit: fc.nat(200_000),
  forger: fc.boolean(),
});

/** What somebody with the file of a stopped store can do to it, one thing after the other. */
const history = historyOf(eventsOf(50));
const HEADS = [10, 20, 30, 40];
const log = signedLog(history, HEADS);
const pinned = { ...history.trust, pin: history.noteAt(40) };

const verify = (events: readonly RecordedEvent[], options: StoreOptions = {}) =>
  verifyStore(stoppedLog(events), { trust: history.trust, ...options });
const texts = (findings: readonly Finding[]): string => findings.map(findingText).join('\n');
const without = (...streams: readonly string[]) => log.filter(({ stream }) => !streams.includes(stream));

describe('tampering with a stopped store', () => {
  it('by taking out everything that was signed is found, with keys at hand or without', async () => {
    const bare = without('sys-auditTree', 'sys-auditKeys');
    for (const options of [{ trust: history.trust }, {}]) {
      const { ok, findings } = await verifyStore(stoppedLog(bare), options);
      expect(ok).to.equal(false);
      expect(texts(findings)).to.include('places 0 to 50: the store has no signed head');
    }
    expect((await verifyStore(stoppedLog([]))).ok).to.equal(true);
  });

  it('by taking out a key that you trust is found', async () => {
    const { findings } = await verify(without('sys-auditKeys'));
    expect(texts(findings)).to.include(`trust.json: the store lacks the key ${vkey(keyOf('first'))}`);
    const sound = await verify(log);
    expect(sound.findings).to.deep.equal([]);
  });

  it('by taking out the oldest heads is found', async () => {
    const heads = log.filter(({ stream }) => stream === 'sys-auditTree');
    const { findings } = await verify(log.filter((event) => event !== heads[0] && event !== heads[1]));
    expect(findings.map(({ code, event }) => [code, event])).to.deep.equal([['head', 'sys-auditTree@2']]);
    expect(texts(findings)).to.include('2 before it are missing');
  });

  it('by taking out the newest heads is remarked on, when so much would have been signed', async () => {
    const remarksOf = async (count: number, sizes: readonly number[]) =>
      (await verify(signedLog(historyOf(eventsOf(count)), sizes))).remarks;
    // One event a second: the last ten are within the time that a signer has.
    expect(await remarksOf(50, [40])).to.deep.equal([]);
    const [late = ''] = await remarksOf(200, [40]);
    expect(late).to.match(/^160 events behind size 40 have no signed head/);
    expect(await remarksOf(1200, [40])).to.have.length(1);
  });

  it('is found by a pin where no head tells of it', async () => {
    const { findings } = await verify(without('sys-auditTree'), { trust: pinned });
    expect(texts(findings)).to.include('the store has no signed head');
    const cut = await verify(without('sys-auditTree').slice(0, 30), { trust: pinned });
    expect(texts(cut.findings)).to.include('your pin is of size 40');
  });

  describe('with a key that was replaced', () => {
    const SINCE = '2026-11-21T12:00:20.000Z';
    const added = (revision: number, name: string): RecordedEvent => {
      const next = { vkey: vkey(keyOf(name)), since: SINCE, size: 20 };
      const rotation = signRotation(ORIGIN, next, keyOf('first'));
      const [key] = log as [RecordedEvent];
      return { ...key, revision, id: `key-${revision}`, data: { at: SINCE, vkey: next.vkey, rotation } };
    };
    /** Heads up to size 20 of the first key, those behind it of another one. */
    const signedBy = (later: string, ...keys: readonly RecordedEvent[]): RecordedEvent[] => {
      const theirs = signedLog(history, HEADS, keyOf(later));
      const start = log.findIndex(({ id }) => id === history.events[20]?.id);
      return [...log.slice(0, start), ...keys, ...theirs.slice(start)];
    };

    it('is in order where the next key signs from then on', async () => {
      const { findings, signed } = await verify(signedBy('second', added(1, 'second')));
      expect(texts(findings)).to.equal('');
      expect(signed).to.equal(40);
    });

    it('is found where it goes on signing', async () => {
      const { findings, signed } = await verify(signedBy('first', added(1, 'second')));
      expect(findings.map(({ code, event }) => [code, event])).to.deep.equal([
        ['head', 'sys-auditTree@2'],
        ['head', 'sys-auditTree@3'],
      ]);
      expect(signed).to.equal(20);
    });

    it('is found where it announces a second successor', async () => {
      const { findings } = await verify(signedBy('third', added(1, 'second'), added(2, 'third')));
      expect(findings.map(({ code }) => code)).to.include('key');
      expect(findings.filter(({ code }) => code === 'head')).to.have.length(2);
    });
  });

  it('so that trees of tenants are not those that were signed is found at a head and at a pin', async () => {
    const lying = historyOf(history.events, keyOf('first'), (_, place) => (place === 15 ? 'globex' : 'acme'));
    const { findings } = await verify(signedLog(lying, HEADS));
    expect(findings.map(({ code, place }) => [code, place])).to.deep.equal([['root', [0, 10]]]);
    expect(texts(findings)).to.include('root over the trees of the tenants');
    const byPin = await verify(log, { trust: { ...history.trust, pin: lying.noteAt(30) } });
    expect(texts(byPin.findings)).to.include('your pin of size 30 has another root over the trees');
  });

  describe('by changing what is no part of a leaf', () => {
    const atLeaf = (n: number): number => log.findIndex(({ id }) => id === history.events[n]?.id);
    const nameOf = (n: number): string => `${history.events[n]?.stream}@${history.events[n]?.revision}`;
    const withLeaf = (n: number, change: Partial<RecordedEvent>): RecordedEvent[] =>
      log.with(atLeaf(n), { ...(log[atLeaf(n)] as RecordedEvent), ...change });
    const placesOf = (findings: readonly Finding[]) =>
      findings.map(({ code, place, event }) => [code, place, event]);
    // Heads of this history are signed at 12:00:<size>, its events recorded at 12:00:<place>.
    const minutesFromHead = (minutes: number, size: number): string =>
      new Date(Date.parse(history.checkpointAt(size).time) + minutes * 60_000).toISOString();

    it('is found where an event was recorded later than the head above it was signed', async () => {
      const { findings } = await verify(withLeaf(23, { recordedAt: minutesFromHead(6, 30) }));
      expect(placesOf(findings)).to.deep.equal([['time', 23, nameOf(23)]]);
      expect(texts(findings)).to.match(/recorded at \S+, later than .* of size 30 was signed/);
      // So far may the clocks of two instances be apart.
      const near = await verify(withLeaf(23, { recordedAt: minutesFromHead(4, 30) }));
      expect(near.findings).to.deep.equal([]);
    });

    it('is found where an event was recorded before the head below it was signed', async () => {
      const back = withLeaf(45, { recordedAt: minutesFromHead(-17, 40) });
      const { findings } = await verify(back);
      expect(placesOf(findings)).to.deep.equal([['time', 45, nameOf(45)]]);
      expect(texts(findings)).to.match(/earlier than .* of size 40 was signed/);
    });

    it('is found where a time is none', async () => {
      const { findings } = await verify(withLeaf(23, { recordedAt: 'soon' }));
      expect(placesOf(findings)).to.deep.equal([['time', 23, nameOf(23)]]);
    });

    it('is found where the last event under a head or a pin has another position', async () => {
      const moved = withLeaf(19, { position: '0000000000000040' });
      const { findings } = await verify(moved);
      expect(placesOf(findings)).to.deep.equal([['order', 19, nameOf(19)]]);
      expect(texts(findings)).to.include('at position 0000000000000040').and.to.include('0000000000000039');
      const bare = moved.filter(({ stream }) => stream !== 'sys-auditTree');
      const byPin = await verify(bare, { trust: { ...history.trust, pin: history.noteAt(20) } });
      expect(placesOf(byPin.findings)).to.deep.include(['order', 19, nameOf(19)]);
    });
  });

  describe('where the tree is kept beside the log, names', () => {
    const kept = {
      hashAt: history.tree.hashAt,
      recordAt: (index: number) => leafOf(history.events[index] as RecordedEvent),
    };
    const nameOf = (n: number): string => `${history.events[n]?.stream}@${history.events[n]?.revision}`;
    const atLeaf = (n: number): number => log.findIndex(({ id }) => id === history.events[n]?.id);
    const named = async (events: readonly RecordedEvent[], options: StoreOptions = {}) => {
      const { findings, ok } = await verify(events, { kept, ...options });
      expect(ok).to.equal(false);
      return findings
        .filter(({ code }) => code.endsWith('-event') || code === 'order')
        .filter(({ place }) => typeof place === 'number')
        .map(({ code, place, event }) => `${code} ${String(place)} ${event}`);
    };

    it('each event that was taken out, and none that only moved up', async () => {
      for (let n = 0; n < 40; n += 1)
        expect(new Set(await named(log.toSpliced(atLeaf(n), 1)))).to.deep.equal(
          new Set([`missing-event ${n} ${nameOf(n)}`]),
          `event ${n}`,
        );
    });

    it('each event that was changed, added or moved', async () => {
      const event = (n: number) => log[atLeaf(n)] as RecordedEvent;
      expect(await named(log.with(atLeaf(39), { ...event(39), data: {} }))).to.deep.equal([
        `changed-event 39 ${nameOf(39)}`,
      ]);
      const strange = { ...event(25), stream: 'cluster-strange', revision: 0, id: 'strange' };
      expect(await named(log.toSpliced(atLeaf(25), 0, strange))).to.deep.equal([
        'added-event 25 cluster-strange@0',
      ]);
      // In the place of another one.
      expect(await named(log.with(atLeaf(25), strange))).to.include.members([
        `missing-event 25 ${nameOf(25)}`,
        'added-event 25 cluster-strange@0',
      ]);
      const swapped = await named(log.with(atLeaf(12), event(13)).with(atLeaf(13), event(12)));
      expect(swapped.join()).to.include(nameOf(12));
      expect(swapped.join()).not.to.include(nameOf(14));
    });

    it('what a pin misses, though the heads were signed anew', async () => {
      const events = history.events.toSpliced(7, 1);
      const forged = signedLog(historyOf(events), HEADS);
      expect(await named(forged, { trust: pinned })).to.include(`missing-event 7 ${nameOf(7)}`);
    });

    it('all that a cut took away', async () => {
      const cut = log.filter(
        ({ stream, position }) => stream.startsWith('sys-') || Number(position) <= 2 * 36,
      );
      expect(await named(cut)).to.deep.equal([36, 37, 38, 39].map((n) => `missing-event ${n} ${nameOf(n)}`));
    });

    it('nobody by a name that is not the one that was signed', async () => {
      const lying = { ...kept, recordAt: () => leafOf(history.events[3] as RecordedEvent) };
      const { findings } = await verify(log.toSpliced(atLeaf(39), 1), { kept: lying });
      expect(texts(findings)).not.to.include(nameOf(3));
    });

    it('the place of the first change, whatever it is', async function () {
      this.timeout(10 * 60_000);
      const victim = logVictim(history, historyOf(eventsOf(50, 1)), [5, 6, 11, 30, 50]);
      const trust = { ...history.trust, pin: history.noteAt(50) };
      const original = leavesOfLog(victim.log, 50);
      await checkAsync(
        fc.asyncProperty(draws, async (draw) => {
          const { what, value } = tamperLog(victim, draw);
          const { ok, findings } = await verifyStore(stoppedLog(value), { trust, kept });
          const leaves = leavesOfLog(value, 50);
          const first = original.findIndex((leaf, place) => leaves[place] !== leaf);
          if (first < 0) return;
          expect(ok, what).to.equal(false);
          const exact = findings.filter(({ code, place }) => code.endsWith('-event') && place === first);
          expect(exact, `${what}: place ${first}\n${texts(findings)}`).not.to.have.length(0);
        }),
        { numRuns: Math.ceil(MUTATIONS / 6) },
      );
    });
  });
});
