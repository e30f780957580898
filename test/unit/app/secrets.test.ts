import { expect } from 'chai';
import { pino } from 'pino';
import { Writable } from 'node:stream';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { subjectIdOf, secretVersionOf } from '../../../src/app/log/identifiers.ts';
import type { KeyStore } from '../../../src/app/ports.ts';
import { LOG_REDACT_PATHS, LOG_REDACTED } from '../../../src/app/log/redaction.ts';
import { createPersonalMetadata } from '../../../src/app/tenancy/subjects.ts';

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
    log.info({ token: 'canary-3', hub: { kubeconfig: 'canary-4' } }, 'x');
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

describe('stored secrets', () => {
  it('have versions that a refused repeat with another body cannot overwrite', () => {
    const version = secretVersionOf('command', 'hash', 'spec.kubeconfig');
    expect(version).to.equal(secretVersionOf('command', 'hash', 'spec.kubeconfig'));
    expect(version).not.to.equal(secretVersionOf('command', 'other hash', 'spec.kubeconfig'));
  });
});
