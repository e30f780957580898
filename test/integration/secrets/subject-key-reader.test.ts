import { expect } from 'chai';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFileKeyStore } from '../../../src/adapters/keys/file-key-store.ts';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { SealBroken } from '../../../src/adapters/keys/seal.ts';
import { openSubjectKeyReader } from '../../../src/adapters/keys/subject-key-reader.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import type { OpenPersonal } from '../../../src/domain/personal.ts';

const [ANN, BOB] = ['6f0e7a3c-0000-5000-8000-000000000001', '6f0e7a3c-0000-5000-8000-000000000002'] as const;

type Place = { readonly keys: KeyStore; readonly open: OpenPersonal };

const readsWhatTheStoreDecrypts = (place: () => Place): void => {
  it('opens many values of several people, in their order', async () => {
    const { keys, open } = place();
    const values = [
      await keys.encrypt(ANN, 'ann'),
      await keys.encrypt(BOB, 'bob'),
      await keys.encrypt(ANN, 'ann@x'),
    ];
    expect(open(values)).to.deep.equal(['ann', 'bob', 'ann@x']);
    expect(open([])).to.deep.equal([]);
  });

  it('notices a destroyed key at once, and a new key does not open what the old one closed', async () => {
    const { keys, open } = place();
    const value = await keys.encrypt(ANN, 'ann');
    expect(open([value])).to.deep.equal(['ann']);
    await keys.destroy(ANN);
    expect(open([value])).to.deep.equal([undefined]);
    const again = await keys.encrypt(ANN, 'ann');
    expect(open([value, again])).to.deep.equal([undefined, 'ann']);
  });

  it('fails closed on what was changed, and never reads beyond its place', async () => {
    const { keys, open } = place();
    const value = await keys.encrypt(ANN, 'ann');
    const other = await keys.encrypt(ANN, 'bob');
    expect(() => open([{ ...value, ct: other.ct }])).to.throw(SealBroken);
    for (const keyId of ['../../etc/passwd.1', '', '.', 'no-dot'])
      expect(open([{ ...value, keyId }]), keyId).to.deep.equal([undefined]);
  });
};

describe('reader of subject keys', () => {
  describe('over files', () => {
    let directory: string;
    let place: Place;
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'ledger-keys-'));
      const where = { directory: join(directory, 'subjects'), kek: Buffer.alloc(32, 7) };
      place = { keys: await openFileKeyStore(where), open: openSubjectKeyReader(where) };
    });
    afterEach(() => rm(directory, { recursive: true }));
    readsWhatTheStoreDecrypts(() => place);

    it('opens nothing with the key of another deployment', async () => {
      const value = await place.keys.encrypt(ANN, 'ann');
      const foreign = openSubjectKeyReader({
        directory: join(directory, 'subjects'),
        kek: Buffer.alloc(32, 8),
      });
      expect(() => foreign([value])).to.throw(SealBroken);
    });
  });

  describe('over memory', () => {
    let place: Place;
    beforeEach(() => {
      const keys = createMemoryKeyStore();
      place = { keys, open: keys.open };
    });
    readsWhatTheStoreDecrypts(() => place);
  });
});
