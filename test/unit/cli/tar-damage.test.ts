import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { pack } from 'tar-stream';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';

/** Where a tar is damaged, in our own words: with the file and the place. */
describe('a damaged tar', () => {
  let folder: string;
  let file: string;
  let bytes: Buffer;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-tar-'));
    file = join(folder, 'x.tar');
    const archive = pack();
    archive.entry({ name: 'one' }, 'a'.repeat(600));
    archive.entry({ name: 'two' }, 'b');
    archive.finalize();
    bytes = Buffer.concat(await Array.fromAsync(archive));
  });
  after(() => rmSync(folder, { recursive: true }));

  const said = async (content: Buffer): Promise<string> => {
    writeFileSync(file, content);
    try {
      await (await openBundle(file)).names();
    } catch (error) {
      return (error as Error).message;
    }
    return 'nothing';
  };
  const flipped = (at: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy.writeUInt8(copy.readUInt8(at) ^ 0x55, at);
    return copy;
  };

  it('is said with the file and the byte, and nothing that a library says', async () => {
    expect(await said(bytes)).to.equal('nothing');
    const damaged = `the tar ${file} is damaged: `;
    expect(await said(flipped(3))).to.equal(`${damaged}the block at byte 0 is no header of a file`);
    expect(await said(flipped(1536 + 3))).to.equal(
      `${damaged}the block at byte 1536 behind one is no header of a file`,
    );
    expect(await said(bytes.subarray(0, 700))).to.equal(
      `${damaged}it is cut off at byte 700, in one, which begins at byte 512`,
    );
    expect(await said(bytes.subarray(0, 1600))).to.equal(
      `${damaged}it is cut off at byte 1600, in a header behind one that begins at byte 1536`,
    );
  });

  it('is never said in the words of the library, wherever a header is changed', async () => {
    for (const start of [0, 1536])
      for (let at = 0; at < 512; at += 7) {
        const what = await said(flipped(start + at));
        expect(what, `byte ${start + at}`).to.match(/^nothing$|^the tar \S+ is damaged: |no tar$/);
        expect(what).to.not.match(/corrupted|gunzip|Unexpected end/i);
      }
  });
});
