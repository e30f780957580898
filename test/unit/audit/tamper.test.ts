import { expect } from 'chai';
import fc from 'fast-check';
import { findingText, type Finding } from '../../../src/app/audit/bundle/findings.ts';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import { verifyStore } from '../../../src/app/audit/bundle/verify-store.ts';
import { verifyTileLog } from '../../../src/app/audit/bundle/tile-log.ts';
import {
  bundleVictim,
  dumpOf,
  names,
  tamperBundle,
  type BundleVictim,
} from '../../support/audit/tampering/bundle.ts';
import { firstOddPlace, tamperBefore } from '../../support/audit/tampering/log-before-signing.ts';
import { leavesOfLog, logVictim, tamperLog } from '../../support/audit/tampering/log.ts';
import {
  dumpOfMirror,
  logOfMirror,
  mirrorOf,
  mirrorVictim,
  tamperMirror,
} from '../../support/audit/tampering/tiles.ts';
import { signRotation } from '../../../src/app/audit/merkle/key-chain.ts';
import type { NoteSigner } from '../../../src/app/audit/merkle/note.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import {
  bundleOf,
  editJson,
  eventsOf,
  historyOf,
  keyOf,
  memorySource,
  ORIGIN,
  tenantOf,
  textOf,
  vkey,
} from '../../support/audit/signed-history.ts';
import { signedLog, stoppedLog } from '../../support/audit/signed-log.ts';
import { cases, checkAsync } from '../../support/property.ts';

/**
 * Mutations of an export, a store, a mirror of the tiles, and a log before it is signed, in equal shares, each checked with what `audit verify` runs: whatever changes content, order or membership of what
 * the auditor's pin covers is found, and its place is named. 10,000 of them with the fault suites.
 */
const MUTATIONS = Number(process.env['LEDGER_TEST_MUTATIONS'] ?? 100);
const SIZE = 24;
const HEADS = [5, 6, 11, 16, 24];

const draws = fc.record({
  kind: fc.nat(1000),
  a: fc.nat(10_000),
  b: fc.nat(10_000),
  bit: fc.nat(200_000),
  forger: fc.boolean(),
});

const history = historyOf(eventsOf(SIZE));
const other = historyOf(eventsOf(SIZE, 1));
const trust = { ...history.trust, pin: history.noteAt(SIZE) };

/** Every finding says where: a file, a place in the tree, or an event. */
const expectPlaced = (findings: readonly Finding[], what: string): void => {
  for (const finding of findings)
    expect(
      finding.file !== undefined || finding.place !== undefined || finding.event !== undefined,
      `${what}: "${findingText(finding)}" says where`,
    ).to.equal(true);
};
const listed = (findings: readonly Finding[]): string => findings.map(findingText).join('\n');

/** Values that a field was not made for: among them numbers beyond all sizes and hashes of another length. */
const oddValues: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.jsonValue() as fc.Arbitrary<JsonValue>,
  fc.constantFrom(-1, 0, 1, SIZE, SIZE + 1, 2 ** 32, Number.MAX_SAFE_INTEGER, 1e300),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  fc.constant(Buffer.alloc(32).toString('base64')),
  fc.array(fc.constant(Buffer.alloc(32).toString('base64')), { maxLength: 70 }),
);

function* pathsOf(value: JsonValue, path: readonly string[] = []): Generator<readonly string[]> {
  if (path.length > 0) yield path;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) yield* pathsOf(inner as JsonValue, [...path, key]);
}

const placed = (value: JsonValue, [key, ...rest]: readonly string[], fresh: JsonValue): JsonValue => {
  if (key === undefined || typeof value !== 'object' || value === null) return fresh;
  if (Array.isArray(value)) return value.with(Number(key), placed(value[Number(key)] ?? null, rest, fresh));
  return { ...value, [key]: placed(value[key] ?? null, rest, fresh) };
};

describe('tampering', function () {
  this.timeout(10 * 60_000);

  for (const tenant of [undefined, 'acme'])
    describe(`with an export of ${tenant ?? 'the whole log'}`, () => {
      let victim: BundleVictim;
      let dump: string;
      before(async () => {
        victim = await bundleVictim(history, other, tenant);
        dump = dumpOf(victim.files);
        const sound = await verifyBundle(memorySource(victim.files), { trust });
        expect(sound.findings).to.deep.equal([]);
      });

      it('is found and placed, or changes nothing', () =>
        checkAsync(
          fc.asyncProperty(draws, async (draw) => {
            const { what, value, place } = tamperBundle(victim, draw);
            const { ok, findings } = await verifyBundle(memorySource(value), { trust });
            if (ok) {
              expect(dumpOf(value), what).to.equal(dump);
              return;
            }
            expect(findings.length, what).to.be.greaterThan(0);
            expectPlaced(findings, what);
            if (place !== undefined && dumpOf(value) !== dump)
              expect(
                findings.some((finding) => names(finding, place)),
                `${what}: place ${place}\n${listed(findings)}`,
              ).to.equal(true);
          }),
          { numRuns: Math.ceil(MUTATIONS / 4) },
        ));
    });

  it('with a log before it was signed is found and placed wherever the log shows it by itself', async () => {
    await checkAsync(
      fc.asyncProperty(draws, async (draw) => {
        const { what, events } = tamperBefore(history.events, draw);
        const forged = historyOf(events);
        const report = async (tenant?: string) =>
          verifyBundle(memorySource(await bundleOf(forged, tenant === undefined ? {} : { tenant })), {
            trust: history.trust,
          });
        const odd = firstOddPlace(events, true);
        const stored = await verifyStore(stoppedLog(signedLog(forged, HEADS.slice(0, -1))), {
          trust: history.trust,
        });
        for (const { ok, findings } of [await report(), stored]) {
          expect(ok, `${what}\n${listed(findings)}`).to.equal(odd === undefined);
          expectPlaced(findings, what);
          if (odd !== undefined)
            expect(
              findings.some(({ place }) => place === odd),
              `${what}: place ${odd}\n${listed(findings)}`,
            ).to.equal(true);
        }
        for (const tenant of new Set(events.map(tenantOf))) {
          const theirs = events.filter((event) => tenantOf(event) === tenant);
          const place = firstOddPlace(theirs, false);
          const { ok, findings } = await report(tenant);
          expect(ok, `${what}, tenant ${tenant}\n${listed(findings)}`).to.equal(place === undefined);
          if (place !== undefined) expect(findings.map((finding) => finding.place)).to.include(place);
        }
      }),
      // Each case signs a whole history anew.
      { numRuns: Math.max(cases(100), Math.ceil(MUTATIONS / 20)) },
    );
  });

  it('with the JSON of an export, whatever is put into it, ends in a report', async () => {
    const { files } = await bundleVictim(history, other);
    const places = ['proofs.json', 'trust.json', 'manifest.json'].flatMap((name) =>
      [...pathsOf(JSON.parse(textOf(files, name)) as JsonValue)].map((path) => [name, path] as const),
    );
    await checkAsync(
      fc.asyncProperty(fc.constantFrom(...places), oddValues, async ([name, path], value) => {
        const changed = new Map(files);
        editJson(changed, name, (json) => placed(json, path, value) as JsonObject);
        const { ok, findings } = await verifyBundle(memorySource(changed), { trust });
        if (ok) expect(dumpOf(changed)).to.equal(dumpOf(files));
        else expect(findings.length).to.be.greaterThan(0);
      }),
      { numRuns: Math.ceil(MUTATIONS / 5) },
    );
  });

  it('with a store is found and placed, or changes nothing', async () => {
    const victim = logVictim(history, other, HEADS);
    const original = leavesOfLog(victim.log, SIZE);
    await checkAsync(
      fc.asyncProperty(draws, async (draw) => {
        const { what, value } = tamperLog(victim, draw);
        const { ok, findings } = await verifyStore(stoppedLog(value), { trust });
        const leaves = leavesOfLog(value, SIZE);
        const first = original.findIndex((leaf, place) => leaves[place] !== leaf);
        expectPlaced(findings, what);
        if (first < 0) return;
        expect(ok, what).to.equal(false);
        expect(
          findings.some((finding) => names(finding, first)),
          `${what}: place ${first}\n${listed(findings)}`,
        ).to.equal(true);
      }),
      { numRuns: Math.ceil(MUTATIONS / 4) },
    );
  });

  it('with whose events the signer says that they are is found, once they were pinned', async () => {
    const places = fc.record({ pin: fc.integer({ min: 1, max: SIZE }), place: fc.nat(SIZE - 1) });
    await checkAsync(
      fc.asyncProperty(places, async ({ pin, place }) => {
        const refiled = historyOf(history.events, history.signer, (event, n) =>
          n === place ? 'elsewhere' : tenantOf(event),
        );
        const tenant = tenantOf(history.events[place]);
        const pinned = { ...history.trust, pin: history.noteAt(pin) };
        const what = `place ${place} of ${tenant}, pin ${pin}`;
        // What was filed elsewhere behind the pin, an export of the whole log alone can show.
        if (refiled.placesOf(tenant).length > 0) {
          const files = await bundleOf(refiled, { tenant, pins: [pin] });
          const { ok, findings } = await verifyBundle(memorySource(files), { trust: pinned });
          expect(ok, `${what}\n${listed(findings)}`).to.equal(place >= pin);
          if (!ok && pin < SIZE)
            expect(
              findings.some((finding) => names(finding, place)),
              what,
            ).to.equal(true);
          expectPlaced(findings, what);
        }
        const whole = await verifyBundle(memorySource(await bundleOf(refiled)), { trust: history.trust });
        expect([whole.ok, whole.findings[0]?.code], what).to.deep.equal([false, 'tenants']);
      }),
      { numRuns: Math.ceil(MUTATIONS / 5) },
    );
  });

  it('with a key that was replaced is found beyond the size at which it was, and a second successor always', async () => {
    const [first, second, third] = [keyOf('first'), keyOf('second'), keyOf('third')];
    const successor = (next: NoteSigner, size: number) => {
      const stated = { vkey: vkey(next), since: '2026-11-21T15:00:00.000Z', size };
      return { vkey: stated.vkey, since: stated.since, rotation: signRotation(ORIGIN, stated, first) };
    };
    const sizes = fc.record({
      at: fc.integer({ min: 1, max: SIZE }),
      size: fc.integer({ min: 1, max: SIZE }),
    });
    await checkAsync(
      fc.asyncProperty(sizes, async ({ at, size }) => {
        const keys = [...history.trust.keys, successor(second, size)];
        const known = { ...history.trust, keys };
        const old = await bundleOf(history, { at, signer: first });
        const { ok, findings } = await verifyBundle(memorySource(old), { trust: known });
        expect(ok, `signed at ${at}, replaced at ${size}\n${listed(findings)}`).to.equal(at <= size);
        const usurper = {
          ...history,
          trust: { ...known, keys: [...history.trust.keys, successor(third, at)] },
        };
        const forged = await bundleOf(usurper, { signer: third });
        const report = await verifyBundle(memorySource(forged), { trust: known });
        expect(report.findings[0]).to.include({ code: 'key', file: 'trust.json' });
      }),
      { numRuns: Math.ceil(MUTATIONS / 10) },
    );
  });

  it('with a mirror of the tiles is found and placed, or changes nothing', async () => {
    const [long, longOther] = [historyOf(eventsOf(600)), historyOf(eventsOf(600, 1))];
    const victim = mirrorVictim(long, longOther);
    const pins = fc.constantFrom(0, 1, 255, 256, 300, 512, 599, 600);
    await checkAsync(
      fc.asyncProperty(draws, pins, async (draw, pin) => {
        const { what, value, file, place } = tamperMirror(victim, draw);
        const report = await verifyTileLog(logOfMirror(value), {
          trust: { ...long.trust, pin: long.noteAt(pin) },
        });
        const said = `${what}, pin ${pin}\n${listed(report.findings)}`;
        if (report.ok) {
          expect(report.pin, said).to.equal('continued');
          expect(dumpOfMirror(value, pin), said).to.deep.equal(dumpOfMirror(victim.files, pin));
          expect(file ?? place, said).to.equal(undefined);
          return;
        }
        expectPlaced(report.findings, said);
        if (file !== undefined)
          expect(
            report.findings.map((finding) => finding.file),
            said,
          ).to.include(file);
        if (place !== undefined)
          expect(
            report.findings.some((finding) => names(finding, place)),
            said,
          ).to.equal(true);
      }),
      { numRuns: Math.ceil(MUTATIONS / 4) },
    );
  });

  it('with a whole history, signed by the right key and mirrored, does not pass the pin', async () => {
    const places = fc.record({ fork: fc.nat(SIZE - 1), pin: fc.integer({ min: 1, max: SIZE }) });
    await checkAsync(
      fc.asyncProperty(places, async ({ fork, pin }) => {
        const forked = historyOf([...history.events.slice(0, fork), ...other.events.slice(fork)]);
        const first = history.events.findIndex((event, at) => event !== forked.events[at]);
        const {
          ok,
          pin: state,
          findings,
        } = await verifyTileLog(logOfMirror(mirrorOf(forked)), {
          trust: { ...history.trust, pin: history.noteAt(pin) },
        });
        expect([ok, state], listed(findings)).to.deep.equal(
          first < pin ? [false, 'broken'] : [true, 'continued'],
        );
        if (first < pin)
          expect(
            findings.some((finding) => names(finding, first)),
            listed(findings),
          ).to.equal(true);
      }),
      { numRuns: Math.ceil(MUTATIONS / 10) },
    );
  });

  it('shows when two auditors who share a pin are shown two histories of the same size', async () => {
    for (const fork of [0, 1, 7, 15, SIZE - 1]) {
      const forked = historyOf([...history.events.slice(0, fork), ...other.events.slice(fork)]);
      for (const ask of [{}, { tenant: 'acme' }]) {
        const mine = await verifyBundle(memorySource(await bundleOf(history, ask)), { trust: history.trust });
        // What the first auditor verified is the pin of both from then on.
        const shared = mine.trust;
        expect([mine.ok, shared?.pin], listed(mine.findings)).to.deep.equal([true, history.noteAt(SIZE)]);
        const theirs = await verifyBundle(memorySource(await bundleOf(forked, ask)), {
          trust: shared as typeof trust,
        });
        expect([theirs.ok, theirs.pin]).to.deep.equal([false, 'broken']);
        expect(listed(theirs.findings)).to.include(`two histories of size ${SIZE}`);
      }
    }
  });
});
