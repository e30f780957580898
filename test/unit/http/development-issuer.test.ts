import { expect } from 'chai';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DEVELOPMENT_ISSUER,
  mintToken,
  openDevelopmentIssuer,
  whyNoDevelopmentIssuer,
} from '../../../src/adapters/identity/development-issuer.ts';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import { principalOf } from '../../../src/http/osac/principal.ts';

describe('development issuer', () => {
  let directory: string;
  beforeEach(async () => {
    directory = join(await mkdtemp(join(tmpdir(), 'ledger-issuer-')), 'secrets');
  });
  afterEach(() => rm(join(directory, '..'), { recursive: true }));

  it('is refused in production and on addresses that other machines can reach', () => {
    expect(whyNoDevelopmentIssuer({ nodeEnv: 'production', listenHost: '127.0.0.1' })).to.match(/NODE_ENV/);
    for (const listenHost of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example'])
      expect(whyNoDevelopmentIssuer({ nodeEnv: undefined, listenHost }), listenHost).to.match(
        /LEDGER_TRUSTED_ISSUERS/,
      );
    for (const listenHost of ['127.0.0.1', '127.8.0.1', 'localhost', '::1'])
      expect(whyNoDevelopmentIssuer({ nodeEnv: 'test', listenHost }), listenHost).to.equal(undefined);
  });

  it('keeps its key over restarts, readable by its owner only', async () => {
    const [first, second] = await Promise.all([
      openDevelopmentIssuer(directory),
      openDevelopmentIssuer(directory),
    ]);
    expect(await readdir(directory)).to.deep.equal(['development-issuer.jwk.json']);
    expect((await stat(join(directory, 'development-issuer.jwk.json'))).mode & 0o777).to.equal(0o600);
    const now = Date.now();
    const text = await first.mintToken({ user: 'alice', tenant: 't1', ttlSeconds: 60, now });
    const verifier = createTokenVerifier({
      issuers: new Map([[second.issuer, second.keys]]),
      now: () => now,
    });
    expect(await verifier.verify(text)).to.deep.include({ userName: 'alice', organizations: ['t1'] });
  });

  it('does not mint, nor make a key, where the service has made none', async () => {
    const refusal = await mintToken(directory, { user: 'eve', tenant: 't1', ttlSeconds: 60, now: 0 }).catch(
      (error: unknown) => String(error),
    );
    expect(refusal).to.equal(
      `Error: no development issuer key in ${directory}: start the service first, or point LEDGER_DATA_DIR / LEDGER_SECRETS_DIR at the service's directory`,
    );
    expect(await readdir(join(directory, '..'))).to.deep.equal([]);
  });

  it('mints tokens whose claims become the principal that was asked for', async () => {
    const now = Date.now();
    const { issuer, keys } = await openDevelopmentIssuer(directory);
    const verifier = createTokenVerifier({ issuers: new Map([[issuer, keys]]), now: () => now });
    const admin = principalOf(
      await verifier.verify(await mintToken(directory, { user: 'root', admin: true, ttlSeconds: 60, now })),
    );
    expect(admin).to.deep.include({ admin: true, tenants: [], homeTenant: 'shared' });
    const user = principalOf(
      await verifier.verify(
        await mintToken(directory, {
          user: 'eve',
          tenant: 't1',
          roles: ['tenant-admin'],
          ttlSeconds: 60,
          now,
        }),
      ),
    );
    expect(user).to.deep.include({
      admin: false,
      tenants: ['t1'],
      roles: ['client', 'tenant-admin', 'tenant-idp-manager'],
    });
    expect(DEVELOPMENT_ISSUER).to.match(/^https:\/\//);
  });
});
