import { expect } from 'chai';
import { SealBroken } from '../../../src/adapters/keys/seal.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import { failure } from './secret-store.contract.ts';

const SUBJECT = '6f0e7a3c-0000-5000-8000-000000000001';

/** What every key store keeps. `open` gives a store on the same place each time it is called. */
export const keyStoreContract = (open: () => Promise<KeyStore>): void => {
  let keys: KeyStore;
  beforeEach(async () => {
    keys = await open();
  });

  it('decrypts what it encrypted, whatever the text', async () => {
    const value = await keys.encrypt(SUBJECT, 'ann@example.com · ä 🔑');
    expect(value).to.include({ alg: 'A256GCM' });
    expect(value.keyId.startsWith(`${SUBJECT}.`)).to.equal(true);
    expect(JSON.stringify(value)).not.to.include('ann');
    expect(await keys.decrypt(value)).to.equal('ann@example.com · ä 🔑');
  });

  it('uses one key per subject and a nonce of its own each time', async () => {
    const [one, two] = [await keys.encrypt(SUBJECT, 'x'), await keys.encrypt(SUBJECT, 'x')];
    const other = await keys.encrypt('system', 'x');
    expect(one.keyId).to.equal(two.keyId);
    expect(one.nonce).not.to.equal(two.nonce);
    expect(other.keyId).not.to.equal(one.keyId);
  });

  it('makes one key when many ask at once', async () => {
    const stores = [keys, await open(), await open()];
    const values = await Promise.all(
      Array.from({ length: 12 }, (_, i) => (stores[i % 3] as KeyStore).encrypt(SUBJECT, `text ${i}`)),
    );
    expect(new Set(values.map((value) => value.keyId)).size).to.equal(1);
    const texts = await Promise.all(values.map((value) => keys.decrypt(value)));
    expect(texts).to.deep.equal(values.map((_, i) => `text ${i}`));
  });

  it('tells at once, also elsewhere, whether a subject has a key', async () => {
    const other = await open();
    const has = async (): Promise<boolean[]> => [await keys.has(SUBJECT), await other.has(SUBJECT)];
    expect(await has()).to.deep.equal([false, false]);
    await keys.encrypt(SUBJECT, 'ann');
    expect(await has()).to.deep.equal([true, true]);
    await other.destroy(SUBJECT);
    expect(await has()).to.deep.equal([false, false]);
    await keys.has('../escape').then((there) => expect(there).to.equal(false));
  });

  it('decrypts nothing after the key was destroyed, also elsewhere and after a new key was made', async () => {
    const other = await open();
    const value = await keys.encrypt(SUBJECT, 'ann');
    expect(await other.decrypt(value)).to.equal('ann');
    await keys.destroy(SUBJECT);
    await keys.destroy(SUBJECT);
    expect(await keys.decrypt(value)).to.equal(undefined);
    expect(await other.decrypt(value)).to.equal(undefined);
    const again = await keys.encrypt(SUBJECT, 'ann');
    expect(again.keyId).not.to.equal(value.keyId);
    expect(await keys.decrypt(value)).to.equal(undefined);
    expect(await keys.decrypt(again)).to.equal('ann');
  });

  it('fails closed on a changed ciphertext, tag or nonce', async () => {
    const value = await keys.encrypt(SUBJECT, 'ann');
    const other = await keys.encrypt(SUBJECT, 'bob');
    for (const changed of [
      { ...value, ct: other.ct },
      { ...value, tag: other.tag },
      { ...value, nonce: other.nonce },
      { ...value, tag: '' },
    ]) {
      expect(await failure(keys.decrypt(changed))).to.be.instanceOf(SealBroken);
    }
  });

  it('never lets an id reach beyond its place', async () => {
    expect(await failure(keys.encrypt('../../etc/passwd', 'x'))).to.be.instanceOf(TypeError);
    expect(await failure(keys.destroy('a/b'))).to.be.instanceOf(TypeError);
    const value = await keys.encrypt(SUBJECT, 'ann');
    expect(await keys.decrypt({ ...value, keyId: '../../x.1' })).to.equal(undefined);
    expect(await keys.decrypt({ ...value, keyId: '' })).to.equal(undefined);
  });
};
