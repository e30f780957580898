import { expect } from 'chai';
import type { SecretStore } from '../../../src/app/ports.ts';
import { SecretTampered } from '../../../src/adapters/secrets/sealed-secrets.ts';
import { SECRET_KINDS } from '../../../src/domain/secret-ref.ts';
import { collect } from '../../support/commands/fake-context.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text, 'utf8');
const secret = (more: Partial<Parameters<SecretStore['put']>[0]> = {}) => ({
  id: 'hub/../1',
  version: 'v1',
  kind: 'kubeconfig' as const,
  tenant: 'acme',
  value: bytes('apiVersion: v1'),
  ...more,
});

/** What every secret store keeps. `open` gives a store on the same place each time it is called. */
export const secretStoreContract = (open: () => Promise<SecretStore>): void => {
  let store: SecretStore;
  beforeEach(async () => {
    store = await open();
  });

  it('reveals what was put, whatever the bytes', async () => {
    const value = Uint8Array.from({ length: 256 }, (_, i) => i);
    const ref = await store.put(secret({ value }));
    expect(ref).to.include({ id: 'hub/../1', version: 'v1', kind: 'kubeconfig' });
    expect(ref.fingerprint).to.match(/^[0-9a-f]{16}$/);
    const revealed = await store.reveal(ref, 'acme');
    expect(Buffer.compare(revealed ?? Buffer.alloc(0), value)).to.equal(0);
  });

  it('gives equal values equal fingerprints, and others others', async () => {
    const one = await store.put(secret({ id: 'a' }));
    const two = await store.put(secret({ id: 'b', kind: 'pull-secret' }));
    const three = await store.put(secret({ id: 'c', value: bytes('other') }));
    expect(one.fingerprint).to.equal(two.fingerprint);
    expect(one.fingerprint).not.to.equal(three.fingerprint);
  });

  for (const kind of SECRET_KINDS)
    it(`keeps a ${kind}`, async () => {
      const ref = await store.put(secret({ kind }));
      const revealed = await (await open()).reveal(ref, 'acme');
      expect(Buffer.from(revealed ?? []).toString()).to.equal('apiVersion: v1');
    });

  it('knows nothing of an unknown id or version', async () => {
    const ref = await store.put(secret());
    expect(await store.reveal({ ...ref, id: 'other' }, 'acme')).to.equal(undefined);
    expect(await store.reveal({ ...ref, version: 'v2' }, 'acme')).to.equal(undefined);
  });

  it('overwrites a value that is put again under the same version', async () => {
    await store.put(secret({ value: bytes('first') }));
    const ref = await store.put(secret({ value: bytes('second') }));
    expect(Buffer.from((await store.reveal(ref, 'acme')) ?? []).toString()).to.equal('second');
    expect(await collect(store.list())).to.have.length(1);
  });

  it('does not reveal a value that is not the one the reference was made for', async () => {
    const ref = await store.put(secret({ value: bytes('first') }));
    await store.put(secret({ value: bytes('second') }));
    expect(await failure(store.reveal(ref, 'acme'))).to.be.instanceOf(SecretTampered);
  });

  it('does not reveal to another tenant or as another kind', async () => {
    const ref = await store.put(secret());
    expect(await failure(store.reveal(ref, 'globex'))).to.be.instanceOf(SecretTampered);
    expect(await failure(store.reveal({ ...ref, kind: 'pull-secret' }, 'acme'))).to.be.instanceOf(
      SecretTampered,
    );
  });

  it('keeps ids apart whose parts could be confused', async () => {
    const one = await store.put(secret({ id: 'a|b', version: 'c' }));
    const two = await store.put(secret({ id: 'a', version: 'b|c', value: bytes('two') }));
    expect(Buffer.from((await store.reveal(one, 'acme')) ?? []).toString()).to.equal('apiVersion: v1');
    expect(Buffer.from((await store.reveal(two, 'acme')) ?? []).toString()).to.equal('two');
  });

  it('removes, also what is not there', async () => {
    const ref = await store.put(secret());
    await store.remove(ref);
    await store.remove(ref);
    expect(await store.reveal(ref, 'acme')).to.equal(undefined);
    expect(await collect(store.list())).to.deep.equal([]);
  });

  it('lists id, version and time of everything it holds', async () => {
    await store.put(secret({ id: 'a' }));
    await store.put(secret({ id: 'b' }));
    const listed = (await collect(store.list())).map(({ id, version, storedAt }) => ({
      id,
      version,
      storedAt,
    }));
    expect(listed.toSorted((x, y) => x.id.localeCompare(y.id))).to.deep.equal([
      { id: 'a', version: 'v1', storedAt: '2026-11-21T10:00:00.000Z' },
      { id: 'b', version: 'v1', storedAt: '2026-11-21T10:00:00.000Z' },
    ]);
  });

  it('is shared by all that open it', async () => {
    const ref = await store.put(secret());
    const other = await open();
    expect(Buffer.from((await other.reveal(ref, 'acme')) ?? []).toString()).to.equal('apiVersion: v1');
  });
};

export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );
