import { expect } from 'chai';
import fc from 'fast-check';
import { leafWindow, lineBatches, type TextLine } from '../../../../src/app/audit/bundle/reading.ts';
import { checkAsync } from '../../../support/property.ts';

/** The bytes in pieces of these lengths, over and over. */
async function* inPieces(bytes: Buffer, lengths: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const end = at + (lengths[n % lengths.length] ?? 1);
    yield bytes.subarray(at, end);
    at = end;
  }
}
const lengths = fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 5 });

describe('lines of a file of a bundle', () => {
  const read = async (chunks: AsyncIterable<Uint8Array>) => {
    const lines: TextLine[] = [];
    let most = 0;
    for await (const batch of lineBatches(chunks)) {
      most = Math.max(most, batch.length);
      lines.push(...batch);
    }
    return { lines, most };
  };

  it('are the same however the file comes', () =>
    checkAsync(
      fc.asyncProperty(
        fc.array(
          fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' ')),
          { maxLength: 100 },
        ),
        fc.string().map((text) => text.replaceAll('\n', ' ')),
        lengths,
        async (texts, cutOff, pieces) => {
          const file = Buffer.from([...texts, cutOff].join('\n'));
          const { lines } = await read(inPieces(file, pieces));
          expect(lines).to.deep.equal([
            ...texts.map((text) => ({ text: text.toWellFormed(), ended: true })),
            ...(cutOff === '' ? [] : [{ text: cutOff, ended: false }]),
          ]);
        },
      ),
    ));

  it('are held some at a time, whatever a piece of the file brings', async () => {
    const { lines, most } = await read(inPieces(Buffer.from('{}\n'.repeat(10_000)), [30_000]));
    expect(lines).to.have.length(10_000);
    expect(most).to.be.within(2, 64);
  });
});

describe('the window over the hashes of a bundle', () => {
  const leaf = (n: number): Buffer => Buffer.alloc(32, n + 1);

  it('shows each hash at its place, however the file comes and whoever moves on when', () =>
    checkAsync(
      fc.asyncProperty(
        fc.nat(150),
        fc.nat(31),
        lengths,
        fc.array(fc.record({ fill: fc.nat(20), advance: fc.nat(20) })),
        async (count, odd, pieces, steps) => {
          const all = Array.from({ length: count }, (_, n) => leaf(n));
          const seen: Buffer[] = [];
          const file = Buffer.concat([...all, Buffer.alloc(odd, 0xff)]);
          const window = leafWindow(inPieces(file, pieces), 7, (hash) => seen.push(Buffer.from(hash)));
          let place = 0;
          for (const { fill, advance } of [...steps, { fill: count, advance: 0 }]) {
            await window.fill(fill);
            for (let ahead = 0; ahead < Math.min(fill, count - place); ahead += 1)
              expect(window.ahead(ahead)).to.deep.equal(leaf(place + ahead));
            const step = Math.min(fill, advance, count - place);
            window.advance(step);
            place += step;
            expect(window.place()).to.equal(7 + place);
          }
          await window.fill(count + 1);
          expect(window.ahead(count - place)).to.equal(undefined);
          expect(seen).to.deep.equal(all);
          expect(window.oddBytes()).to.equal(odd);
        },
      ),
    ));
});
