import { expect } from 'chai';
import { pino } from 'pino';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { deriveDeploymentKeys } from '../../../src/adapters/keys/deployment-keys.ts';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { createMemorySecretStore } from '../../../src/adapters/secrets/memory-secret-store.ts';
import { assertDeployment, DeploymentMismatch, DEPLOYMENT_STREAM } from '../../../src/app/deployment.ts';
import type { EventStore } from '../../../src/app/event-store.ts';
import { subjectIdOf, secretVersionOf } from '../../../src/app/identifiers.ts';
import { createOrphanSweeper, secretRefsIn } from '../../../src/app/orphan-secrets.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import { LOG_REDACT_PATHS, LOG_REDACTED } from '../../../src/app/redaction.ts';
import { Secret } from '../../../src/app/secret.ts';
import { createPersonalMetadata } from '../../../src/app/subjects.ts';
import { collect, createFakeClock } from '../../support/fake-context.ts';
import { createFakeIds } from '../../support/fake-incarnation.ts';

const keys = deriveDeploymentKeys(Buffer.alloc(32, 7));

describe('Secret', () => {
  const secret = new Secret('hunter2');

  it('shows as [redacted] however it is printed', () => {
    for (const shown of [
      String(secret),
      JSON.stringify({ nested: [secret] }),
      inspect(secret),
      inspect({ nested: { secret } }, { depth: 9, showHidden: true }),
      JSON.stringify(Object.entries(secret)),
    ]) {
      expect(shown).not.to.include('hunter2').and.not.to.include('104,117,110');
    }
    expect(inspect(secret)).to.equal('[redacted]');
  });

  it('reveals its value until it is wiped, and keeps a copy of its own', () => {
    const bytes = Buffer.from('hunter2');
    const own = new Secret(bytes);
    bytes.fill(0);
    expect(own.revealText()).to.equal('hunter2');
    own.wipe();
    expect([...own.reveal()]).to.deep.equal([0, 0, 0, 0, 0, 0, 0]);
  });
});

describe('log redaction', () => {
  it('hides what should never have reached the logger', () => {
    let text = '';
    const sink = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        text += chunk.toString();
        done();
      },
    });
    const log = pino({ redact: { paths: [...LOG_REDACT_PATHS], censor: LOG_REDACTED } }, sink);
    log.info({ req: { headers: { authorization: 'canary-1', 'idempotency-key': 'canary-2' } } }, 'request');
    log.info({ token: 'canary-3', hub: { kubeconfig: 'canary-4' }, secret: new Secret('canary-5') }, 'x');
    log.info({ object: { spec: { pull_secret: 'canary-6', name: 'visible' } } }, 'x');
    expect(text).not.to.match(/canary/);
    expect(text).to.include('visible').and.to.include(LOG_REDACTED);
  });
});

describe('subjects and personal metadata', () => {
  const counting = () => {
    const store = createMemoryKeyStore();
    let encrypted = 0;
    const counted: KeyStore = {
      ...store,
      encrypt: (...args) => {
        encrypted += 1;
        return store.encrypt(...args);
      },
    };
    return { store: counted, count: () => encrypted };
  };

  it('derives the subject id from tenant, issuer and sub alone', () => {
    const id = subjectIdOf('acme', 'https://issuer', 'ann');
    expect(id).to.equal(subjectIdOf('acme', 'https://issuer', 'ann'));
    expect(id).not.to.include('ann');
    const others = [
      subjectIdOf('globex', 'https://issuer', 'ann'),
      subjectIdOf('acme', 'https://issue', 'rann'),
    ];
    expect(new Set([id, ...others]).size).to.equal(3);
  });

  it('encrypts once per person and text, however many commands come', async () => {
    const { store, count } = counting();
    const metadata = createPersonalMetadata({ keys: store });
    const one = await metadata.personal('s1', { userName: 'ann' });
    for (let i = 0; i < 100; i += 1) {
      expect(await metadata.personal('s1', { userName: 'ann' })).to.equal(one);
    }
    expect(count()).to.equal(1);
    expect(await metadata.personal('s1', { userName: 'ann', email: 'ann@example.com' })).not.to.equal(one);
    expect(await metadata.personal('s2', { userName: 'ann' })).not.to.equal(one);
    expect(await metadata.personal('s1', {})).to.equal(undefined);
  });

  it('reads as erased after the key was destroyed, and encrypts anew from then on', async () => {
    const metadata = createPersonalMetadata({ keys: createMemoryKeyStore() });
    const value = await metadata.source('s1', { ip: '10.0.0.1', userAgent: 'curl' });
    if (value === undefined) throw new Error('expected a ciphertext');
    expect(await metadata.read(value)).to.deep.equal({ ip: '10.0.0.1', userAgent: 'curl' });
    await metadata.erase('s1');
    expect(await metadata.read(value)).to.deep.equal({ erased: true });
    const again = await metadata.source('s1', { ip: '10.0.0.1', userAgent: 'curl' });
    expect(again?.keyId).not.to.equal(value.keyId);
  });

  it('does not remember a failure', async () => {
    const store = createMemoryKeyStore();
    let broken = true;
    const metadata = createPersonalMetadata({
      keys: {
        ...store,
        encrypt: (...args) => (broken ? Promise.reject(new Error('disk')) : store.encrypt(...args)),
      },
    });
    const failed: unknown = await metadata
      .personal('s1', { userName: 'ann' })
      .catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(Error);
    broken = false;
    expect(await metadata.personal('s1', { userName: 'ann' })).to.have.property('ct');
  });
});

describe('binding of a log to its deployment', () => {
  const bind = (store: ReturnType<typeof createMemoryEventStore>, fingerprint: string) =>
    assertDeployment({
      store,
      fingerprint,
      clock: createFakeClock(),
      ids: createFakeIds(fingerprint),
      instance: 'i',
    });

  it('is made by the first start and accepts the same keys from then on', async () => {
    const store = createMemoryEventStore();
    await bind(store, 'f1');
    await bind(store, 'f1');
    expect(await store.currentRevision(DEPLOYMENT_STREAM)).to.equal(0);
  });

  it('refuses a start with other keys, naming the setting', async () => {
    const store = createMemoryEventStore();
    await bind(store, 'f1');
    const refused: unknown = await bind(store, 'f2').catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(DeploymentMismatch);
    expect(String(refused)).to.include('LEDGER_SECRETS_DIR');
  });

  it('lets only one of two first starts with different keys through', async () => {
    const store = createMemoryEventStore();
    const both = await Promise.allSettled([bind(store, 'f1'), bind(store, 'f2')]);
    expect(both.map(({ status }) => status).toSorted()).to.deep.equal(['fulfilled', 'rejected']);
  });
});

describe('orphaned secrets', () => {
  it('are removed once they are old enough; what an event refers to stays', async () => {
    const clock = createFakeClock();
    const secrets = createMemorySecretStore({ keys, now: () => clock.now() });
    const put = (id: string) =>
      secrets.put({ id, version: 'v1', kind: 'pull-secret', tenant: 'acme', value: Buffer.from(id) });
    const kept = await put('kept');
    await put('orphan');
    clock.advance(3_600_000);
    await put('young');
    const store = createMemoryEventStore();
    await store.append('cluster-1', 'no_stream', [
      {
        id: '1',
        type: 'ClusterOrdered',
        data: JSON.stringify({ list: [{ pullSecret: kept }] }),
        metadata: '{}',
      },
    ]);
    const sweeper = createOrphanSweeper({ secrets, store, olderThanMs: 600_000 });
    expect(await sweeper.sweep(clock.now())).to.deep.equal({ examined: 2, removed: 1 });
    expect((await collect(secrets.list())).map(({ id }) => id)).to.deep.equal(['kept', 'young']);
    expect(await sweeper.sweep(clock.now())).to.deep.equal({ examined: 0, removed: 0 });
    clock.advance(600_001);
    expect(await sweeper.sweep(clock.now()), 'old by now, and nothing refers to it').to.deep.equal({
      examined: 1,
      removed: 1,
    });
  });

  it('are looked at once each, in the part of the log that came since; removal looks at all of it', async () => {
    const clock = createFakeClock();
    const secrets = createMemorySecretStore({ keys, now: () => clock.now() });
    const put = (id: string) =>
      secrets.put({ id, version: 'v1', kind: 'pull-secret', tenant: 'acme', value: Buffer.from(id) });
    const log = createMemoryEventStore();
    let read = 0;
    const store: EventStore = {
      ...log,
      async *readAll(options) {
        for await (const event of log.readAll(options)) {
          read += 1;
          yield event;
        }
      },
    };
    const HOUR = 3_600_000;
    const sweeper = createOrphanSweeper({ secrets, store, olderThanMs: HOUR });
    const referTo = async (id: string) => {
      const data = JSON.stringify({ pullSecret: await put(id) });
      await log.append(`cluster-${id}`, 'no_stream', [{ id, type: 'ClusterOrdered', data, metadata: '{}' }]);
    };
    const sweep = async () => {
      clock.advance(HOUR);
      read = 0;
      return sweeper.sweep(clock.now());
    };
    for (let hour = 0; hour < 10; hour += 1) {
      for (let i = 0; i < 10; i += 1) await referTo(`${hour}-${i}`);
      clock.advance(1);
      const swept = await sweep();
      expect(swept.removed).to.equal(0);
      expect(swept.examined).to.equal(10);
      expect(read, 'at most what the last three hours added').to.be.at.most(30);
    }
    // The request of the first hour comes once more: its value is new, its event is not.
    await put('0-0');
    await put('orphan');
    clock.advance(1);
    expect(await sweep()).to.deep.equal({ examined: 2, removed: 1 });
    expect((await collect(secrets.list())).map(({ id }) => id))
      .to.include('0-0')
      .and.not.include('orphan');
    expect((await sweep()).examined).to.equal(0);
    expect(read).to.equal(0);
  });

  it('are found by their references wherever these are in an event', () => {
    const ref = { id: 'a', version: 'v', kind: 'kubeconfig', fingerprint: 'f' };
    expect([
      ...secretRefsIn({ x: [1, null, { y: ref }], z: ref, no: { id: 'a', version: 'v' } }),
    ]).to.deep.equal([
      { id: 'a', version: 'v' },
      { id: 'a', version: 'v' },
    ]);
  });

  it('have versions that a refused repeat with another body cannot overwrite', () => {
    const version = secretVersionOf('command', 'hash', 'spec.kubeconfig');
    expect(version).to.equal(secretVersionOf('command', 'hash', 'spec.kubeconfig'));
    expect(version).not.to.equal(secretVersionOf('command', 'other hash', 'spec.kubeconfig'));
  });
});
