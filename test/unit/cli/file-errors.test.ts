import { expect } from 'chai';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileErrorText, fileFailure, messageFor } from '../../../src/cli/file-errors.ts';

describe('errors of files', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'ledger-files-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const thrown = (action: Promise<unknown>): Promise<unknown> =>
    action.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('are said in words, with the path and what to do', async () => {
    const absent = join(folder, 'none');
    const text = messageFor(await thrown(readFile(absent)));
    expect(text).to.equal(`cannot open ${absent}: no such file or directory`);
    expect(messageFor(await thrown(readFile(folder)))).to.match(/it is a directory: name a file in it$/);
    await writeFile(join(folder, 'file'), '');
    expect(messageFor(await thrown(readFile(join(folder, 'file', 'x'))))).to.match(/is not a directory$/);
    await mkdir(join(folder, 'full', 'x'), { recursive: true });
    expect(messageFor(await thrown(rename(join(folder, 'file'), join(folder, 'full'))))).to.not.match(
      /E[A-Z]{4,}/,
    );
    const error = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    });
    expect(fileErrorText(error, 'cannot write a.tar')).to.equal(
      'cannot write a.tar: no space left: make room, or choose another place',
    );
    expect(fileFailure(error, 'cannot write a.tar')).to.include({ status: 2 });
  });

  it('of another sort say it in their own words', () => {
    expect(messageFor(new Error('broke off'))).to.equal('broke off');
    expect(messageFor('text')).to.equal('text');
    const odd = Object.assign(new Error('connect ECONNREFUSED'), {
      code: 'ECONNREFUSED',
      syscall: 'connect',
    });
    expect(messageFor(odd)).to.equal('connect ECONNREFUSED');
  });
});
