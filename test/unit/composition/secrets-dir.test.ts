import { expect } from 'chai';
import { plainSecretsDir } from '../../../src/composition/secrets-dir.ts';
import { readConfig } from '../../../src/config.ts';

describe('the directory of secrets, read alone', () => {
  it('is the one that all settings together say', () => {
    for (const environment of [
      {},
      { LEDGER_DATA_DIR: '/srv/data' },
      { LEDGER_DATA_DIR: ' other ' },
      { LEDGER_DATA_DIR: '../x', LEDGER_SECRETS_DIR: '' },
      { LEDGER_SECRETS_DIR: ' keys ' },
      { LEDGER_DATA_DIR: '/srv/data', LEDGER_SECRETS_DIR: '/run/secrets' },
    ])
      expect(plainSecretsDir(environment), JSON.stringify(environment)).to.equal(
        readConfig(environment).secretsDir,
      );
  });

  it('is left to the other settings where it cannot be read', () => {
    expect(plainSecretsDir({ LEDGER_DATA_DIR: ' ' })).to.equal(undefined);
    expect(() => readConfig({ LEDGER_DATA_DIR: ' ' })).to.throw('LEDGER_DATA_DIR: must name a directory');
  });
});
