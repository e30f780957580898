import { expect } from 'chai';
import { chmod, mkdtemp, readFile, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BadDeploymentKey,
  deriveDeploymentKeys,
  MASTER_KEY_FILE,
  openDeploymentKeys,
} from '../../../src/adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../../../src/adapters/keys/file-key-store.ts';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { UnsafePermissions } from '../../../src/adapters/keys/private-files.ts';
import { openFileSecretStore } from '../../../src/adapters/secrets/file-secret-store.ts';
import { createMemorySecretStore } from '../../../src/adapters/secrets/memory-secret-store.ts';
import { SecretTampered, type Envelope } from '../../../src/adapters/secrets/sealed-secrets.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import { collect } from '../../support/commands/fake-context.ts';
import { keyStoreContract } from './key-store.contract.ts';
import { failure, secretStoreContract } from './secret-store.contract.ts';

const now = (): string => '2026-11-21T10:00:00.000Z';
const keys = deriveDeploymentKeys(Buffer.alloc(32, 7));

const filesUnder = async (directory: string): Promise<string[]> => {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
};
const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);

describe('secret and key stores', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-secrets-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  describe('secret store in memory', () => {
    let envelopes: Map<string, Envelope>;
    beforeEach(() => {
      envelopes = new Map();
    });
    secretStoreContract(async () => createMemorySecretStore({ keys, now, envelopes }));
  });

  describe('secret store in files', () => {
    const open = () => openFileSecretStore({ directory: join(directory, 'values'), keys, now });
    secretStoreContract(open);

    const value = Buffer.from('a kubeconfig');
    const put = async (id = 'a', version = 'v1') =>
      (await open()).put({ id, version, kind: 'kubeconfig', tenant: 'acme', value });

    it('leaves nothing readable for others and no value in clear', async () => {
      await put();
      const files = await filesUnder(directory);
      expect(files).to.have.length(1);
      expect(await modeOf(files[0] ?? '')).to.equal('600');
      expect(await modeOf(join(directory, 'values'))).to.equal('700');
      const content = (await readFile(files[0] ?? '')).toString('latin1');
      expect(content).not.to.include('kubeconfig\n').and.not.to.include('a kubeconfig');
      expect(content).not.to.include(value.toString('base64url'));
    });

    it('refuses a directory or file that others may read', async () => {
      const ref = await put();
      const [file] = await filesUnder(directory);
      await chmod(file ?? '', 0o640);
      expect(await failure((await open()).reveal(ref, 'acme'))).to.be.instanceOf(UnsafePermissions);
      await chmod(join(directory, 'values'), 0o755);
      const refused = await failure(open());
      expect(refused).to.be.instanceOf(UnsafePermissions);
      expect(String(refused)).to.include('chmod 0700');
    });

    it('fails closed on a swapped, changed or truncated envelope, and under another deployment key', async () => {
      const ref = await put('a');
      const [fileOfA = ''] = await filesUnder(directory);
      const original = await readFile(fileOfA, 'utf8');
      const other = await put('b');
      const fileOfB = (await filesUnder(directory)).find((file) => file !== fileOfA) ?? '';
      const envelope = JSON.parse(original) as Envelope;
      const flipped = envelope.value.ct.startsWith('A') ? 'B' : 'A';
      const attacks = {
        'the envelope of another secret': await readFile(fileOfB, 'utf8'),
        'another tenant written over': JSON.stringify({ ...envelope, tenant: 'globex' }),
        'a changed ciphertext': JSON.stringify({
          ...envelope,
          value: { ...envelope.value, ct: flipped + envelope.value.ct.slice(1) },
        }),
        'a data key of another secret': JSON.stringify({
          ...envelope,
          wrappedKey: (JSON.parse(await readFile(fileOfB, 'utf8')) as Envelope).wrappedKey,
        }),
        'a truncated file': original.slice(0, 40),
      };
      for (const [name, content] of Object.entries(attacks)) {
        await writeFile(fileOfA, content);
        const tenant = name.includes('tenant') ? 'globex' : 'acme';
        expect(await failure((await open()).reveal(ref, tenant)), name).to.be.instanceOf(SecretTampered);
      }
      const foreign = await openFileSecretStore({
        directory: join(directory, 'values'),
        keys: { ...deriveDeploymentKeys(Buffer.alloc(32, 8)), fingerprintKey: keys.fingerprintKey },
        now,
      });
      expect(await failure(foreign.reveal(other, 'acme'))).to.be.instanceOf(SecretTampered);
    });

    it('clears away what a crash left half written, but nothing that is being written', async () => {
      await put();
      const [file = ''] = await filesUnder(directory);
      const [stale, current] = [join(file, '..', '.new-1'), join(file, '..', '.new-2')];
      await writeFile(stale, 'x', { mode: 0o600 });
      await writeFile(current, 'x', { mode: 0o600 });
      const longAgo = new Date(Date.now() - 3_600_000);
      await utimes(stale, longAgo, longAgo);
      const store = await open();
      expect(await filesUnder(directory)).to.have.members([file, current]);
      expect(await collect(store.list())).to.have.length(1);
    });
  });

  describe('key store in memory', () => {
    let store: KeyStore;
    beforeEach(() => {
      store = createMemoryKeyStore();
    });
    keyStoreContract(async () => store);
  });

  describe('key store in files', () => {
    const open = () => openFileKeyStore({ directory: join(directory, 'subjects'), kek: keys.subjectKek });
    keyStoreContract(open);

    it('keeps each key wrapped in a file of its own, and removes it when destroyed', async () => {
      const store = await open();
      await store.encrypt('subject-1', 'ann');
      const files = await filesUnder(directory);
      expect(files).to.have.length(1);
      expect(await modeOf(files[0] ?? '')).to.equal('600');
      await store.destroy('subject-1');
      expect(await filesUnder(directory)).to.deep.equal([]);
    });

    it('does not accept a key file that was moved to another subject', async () => {
      const store = await open();
      const value = await store.encrypt('subject-1', 'ann');
      await store.encrypt('subject-2', 'bob');
      const [one = '', two = ''] = (await filesUnder(directory)).toSorted();
      const content = JSON.parse(await readFile(two, 'utf8')) as object;
      await writeFile(one, JSON.stringify({ ...content, keyId: value.keyId }));
      expect(await failure((await open()).decrypt(value))).to.be.instanceOf(Error);
    });
  });

  describe('deployment keys', () => {
    it('are made on the first start and the same from then on', async () => {
      const path = join(directory, 'keys');
      const [first, second] = [await openDeploymentKeys(path), await openDeploymentKeys(path)];
      expect(second).to.deep.equal(first);
      expect(await modeOf(join(path, MASTER_KEY_FILE))).to.equal('600');
      expect(first.fingerprint).to.match(/^[0-9a-f]{32}$/);
      const all = [first.secretKek, first.subjectKek, first.fingerprintKey, first.requestHashKey];
      expect(new Set(all.map((key) => Buffer.from(key).toString('hex'))).size).to.equal(4);
    });

    it('are the same for all that start at once', async () => {
      const path = join(directory, 'keys');
      const opened = await Promise.all(Array.from({ length: 8 }, () => openDeploymentKeys(path)));
      expect(new Set(opened.map((one) => one.fingerprint)).size).to.equal(1);
    });

    it('are refused when others may read them or when they are no keys', async () => {
      const path = join(directory, 'keys');
      await openDeploymentKeys(path);
      const file = join(path, MASTER_KEY_FILE);
      await chmod(file, 0o644);
      expect(await failure(openDeploymentKeys(path))).to.be.instanceOf(UnsafePermissions);
      await chmod(file, 0o600);
      await writeFile(file, 'not a key');
      expect(await failure(openDeploymentKeys(path))).to.be.instanceOf(BadDeploymentKey);
    });
  });
});
