import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openExportFiles } from '../../../../src/adapters/audit/export-files.ts';

const ID = '0190fdc2-bf52-71b8-8c36-977f348f4436';

describe('files of exports', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-exports-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const { signal } = new AbortController();
  const whole = async (bytes: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of bytes ?? []) chunks.push(chunk);
    return Buffer.concat(chunks);
  };
  const write = async (files: Awaited<ReturnType<typeof openExportFiles>>, text: string): Promise<void> => {
    const sink = await files.begin(ID);
    const file = await sink.file('folder/events.ndjson');
    await file.write(Buffer.from(text));
    await file.close();
  };

  it('make one file, of which any part can be read', async () => {
    const files = await openExportFiles(directory);
    await files.expect(ID);
    expect(await files.list()).to.deep.equal([ID]);
    expect(await files.find(ID)).to.equal(undefined);
    await write(files, 'one line\n');
    const { bytes, digest } = await files.finish(ID, signal);
    const found = await files.find(ID);
    const content = await whole(found?.read(0, bytes));
    expect(found?.bytes).to.equal(bytes);
    expect(createHash('sha256').update(content).digest('hex')).to.equal(digest);
    expect((await whole(found?.read(10, 20))).equals(content.subarray(10, 20))).to.equal(true);
    expect((await whole(found?.read(5, 5))).length).to.equal(0);
    expect((await readdir(directory)).toSorted()).to.deep.equal([`${ID}.tar`, `${ID}.wanted`]);
    await files.forget(ID);
    expect(await readdir(directory)).to.deep.equal([]);
  });

  it('begin anew after a try that broke off, and hold nothing of it', async () => {
    const files = await openExportFiles(directory);
    const sink = await files.begin(ID);
    await (await sink.file('left-open')).write(Buffer.from('half'));
    await write(files, 'whole\n');
    expect(existsSync(join(directory, `${ID}.parts`, 'left-open'))).to.equal(false);
    await files.finish(ID, signal);
    const again = await openExportFiles(directory);
    expect(await again.list()).to.deep.equal([ID]);
  });

  it('refuse what is no id of an export', async () => {
    const files = await openExportFiles(directory);
    for (const id of ['..', '../x', 'a/b', '']) {
      const error = await Promise.resolve()
        .then(() => files.find(id))
        .catch((refused: unknown) => refused);
      expect(error, id).to.be.instanceOf(TypeError);
    }
  });
});
