import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openDirectories } from '../../../src/composition/opening.ts';
import { BadSetting } from '../../../src/config.ts';

describe('directories of the settings', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-directories-'));
    writeFileSync(join(dir, 'file'), '');
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const refusal = async (dataDir: string, secretsDir = join(dataDir, 'secrets')): Promise<string> => {
    try {
      await openDirectories({ dataDir, secretsDir });
    } catch (error) {
      if (error instanceof BadSetting) return error.message;
      throw error;
    }
    throw new Error('they were accepted');
  };

  it('are made, for their own user only, and may be there already', async () => {
    const dataDir = join(dir, 'a', 'data');
    const secretsDir = join(dir, 'b', 'secrets');
    for (const _ of [1, 2]) await openDirectories({ dataDir, secretsDir });
    for (const made of [dataDir, join(dir, 'a'), secretsDir, join(dir, 'b')])
      expect(statSync(made).mode & 0o777, made).to.equal(0o700);
  });

  it('that are files, or below one, are refused by the variable, with an example', async () => {
    const file = join(dir, 'file');
    expect(await refusal(file)).to.equal(
      `LEDGER_DATA_DIR: ${file} is not a directory that the service can write to (EEXIST). Example: LEDGER_DATA_DIR=./data`,
    );
    expect(await refusal(join(file, 'x'))).to.match(/^LEDGER_DATA_DIR: .*\(ENOTDIR\)/);
    expect(await refusal(join(dir, 'data'), file)).to.match(/^LEDGER_SECRETS_DIR: .*\(EEXIST\)/);
  });

  it('are refused where the system lets nothing be made, at once', async () => {
    expect(await refusal('/proc/ledger-x')).to.equal(
      'LEDGER_DATA_DIR: /proc/ledger-x is not a directory that the service can write to (ENOENT). Example: LEDGER_DATA_DIR=./data',
    );
    expect(await refusal('/proc/ledger-x/y/z')).to.match(/^LEDGER_DATA_DIR: .*\(ENOENT\)/);
    expect(await refusal(join(dir, 'data'), '/proc/ledger-x')).to.match(/^LEDGER_SECRETS_DIR: .*\(ENOENT\)/);
  });

  it('may be reached through links, but not through one that leads nowhere', async () => {
    mkdirSync(join(dir, 'there'));
    symlinkSync(join(dir, 'there'), join(dir, 'link'));
    symlinkSync(join(dir, 'nowhere'), join(dir, 'broken'));
    await openDirectories({ dataDir: join(dir, 'link', 'a', 'b'), secretsDir: join(dir, 'link', 'a', 's') });
    expect(statSync(join(dir, 'there', 'a', 'b')).isDirectory()).to.equal(true);
    expect(await refusal(join(dir, 'broken'))).to.match(/\(EEXIST\)/);
    expect(await refusal(join(dir, 'broken', 'x'))).to.match(/^LEDGER_DATA_DIR: /);
  });

  it('are made by many at the same time', async () => {
    // Often enough that one of them finds a level missing that another one makes before it looks.
    for (let round = 0; round < 20; round += 1) {
      const dataDir = join(dir, `many-${round}`, 'levels', 'data');
      const secretsDir = join(dataDir, 'secrets');
      await Promise.all(Array.from({ length: 16 }, () => openDirectories({ dataDir, secretsDir })));
      expect(statSync(secretsDir).mode & 0o777).to.equal(0o700);
    }
  });

  it('of data that everybody may write to are refused with what mends it', async () => {
    const data = join(dir, 'data');
    mkdirSync(data);
    for (const mode of [0o777, 0o1777, 0o703]) {
      chmodSync(data, mode);
      expect(await refusal(data), mode.toString(8)).to.equal(
        `LEDGER_DATA_DIR: every user of this machine can write to ${data} (mode ${mode.toString(8).padStart(4, '0')}); run: chmod o-w '${data}'`,
      );
    }
    chmodSync(data, 0o2775);
    await openDirectories({ dataDir: data, secretsDir: join(dir, 'secrets') });
  });

  it('of secrets that others may read are refused with what mends it', async () => {
    const secrets = join(dir, 'secrets');
    mkdirSync(secrets);
    chmodSync(secrets, 0o755);
    expect(await refusal(dir, secrets)).to.match(
      /^LEDGER_SECRETS_DIR: .*can be read by others \(mode 0755\); run: chmod 0700 /,
    );
  });
});
