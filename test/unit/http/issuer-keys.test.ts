import { expect } from 'chai';
import { SignJWT, exportJWK, generateKeyPair, type JWK } from 'jose';
import { createIssuerKeys } from '../../../src/adapters/identity/issuer-keys.ts';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import { eventually } from '../../support/eventually.ts';
import { IssuerUnreachable, TokenRejected } from '../../../src/app/tenancy/identity.ts';

const ISSUER = 'https://sso.example/realms/osac';
const JWKS = 'https://sso.example/keys';

describe('issuer keys', () => {
  let pairs: Awaited<ReturnType<typeof generateKeyPair>>[];
  let publicKeys: JWK[];
  let calls: string[];
  let served: JWK[];
  let discovery: unknown;
  let down: boolean;
  let clock: number;

  before(async () => {
    pairs = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')]);
    publicKeys = await Promise.all(
      pairs.map(async (pair, i) => ({ ...(await exportJWK(pair.publicKey)), kid: `k${i}`, use: 'sig' })),
    );
  });

  beforeEach(() => {
    calls = [];
    served = publicKeys.slice(0, 1);
    discovery = { issuer: ISSUER, jwks_uri: JWKS };
    down = false;
    clock = 1_000_000;
  });

  const fetcher = (async (url: string) => {
    calls.push(url);
    if (down) throw new TypeError('fetch failed');
    return url.endsWith('openid-configuration') ? Response.json(discovery) : Response.json({ keys: served });
  }) as unknown as typeof globalThis.fetch;
  const verifierOf = () =>
    createTokenVerifier({
      issuers: new Map([[ISSUER, createIssuerKeys({ issuer: ISSUER, now: () => clock, fetch: fetcher })]]),
      now: () => Date.now(),
    });
  let serial = 0;
  const token = (key = 0, kid = `k${key}`): Promise<string> =>
    new SignJWT({ sub: `u${(serial += 1)}` })
      .setProtectedHeader({ alg: 'RS256', kid })
      .setIssuer(ISSUER)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(pairs[key]?.privateKey ?? (pairs[0] as (typeof pairs)[number]).privateKey);
  const failure = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    );

  it('fetches discovery and keys once for many tokens', async () => {
    const verifier = verifierOf();
    await Promise.all((await Promise.all([token(), token(), token()])).map((text) => verifier.verify(text)));
    expect(calls).to.deep.equal([`${ISSUER}/.well-known/openid-configuration`, JWKS]);
  });

  it('fetches again for an unknown key id, but not more than once a minute', async () => {
    const verifier = verifierOf();
    await verifier.verify(await token(0));
    served = publicKeys;
    expect(await failure(verifier.verify(await token(1)))).to.be.instanceOf(TokenRejected);
    expect(calls).to.have.length(2);
    clock += 61_000;
    await verifier.verify(await token(1));
    expect(calls).to.have.length(4);
  });

  it('says that the issuer is unreachable when there are no keys yet, and asks it again only after a pause', async () => {
    down = true;
    const verifier = verifierOf();
    const error = await failure(verifier.verify(await token()));
    expect(error).to.be.instanceOf(IssuerUnreachable);
    expect(await failure(verifier.verify(await token()))).to.be.instanceOf(IssuerUnreachable);
    expect(calls).to.have.length(1);
    down = false;
    clock += 5_001;
    await verifier.verify(await token());
  });

  const HOUR = 3_600_000;

  it('goes on with the keys it has while the issuer is down, for a day', async () => {
    const verifier = verifierOf();
    const known = await token();
    await verifier.verify(known);
    down = true;
    clock += HOUR + 1;
    await verifier.verify(await token());
    expect(calls).to.have.length(3);
    clock += 22 * HOUR;
    await verifier.verify(await token());
    expect(verifier.recall(known)).not.to.equal(undefined);
    clock += HOUR;
    expect(verifier.recall(known)).to.equal(undefined);
    for (const text of [known, await token()])
      expect(await failure(verifier.verify(text))).to.be.instanceOf(IssuerUnreachable);
    down = false;
    clock += 5_001;
    await verifier.verify(known);
  });

  it('says so too of a key that came after the last fetch, and never that such a token is wrong', async () => {
    const verifier = verifierOf();
    await verifier.verify(await token(0));
    served = publicKeys;
    down = true;
    clock += 61_000;
    for (let i = 0; i < 2; i += 1)
      expect(await failure(verifier.verify(await token(1)))).to.be.instanceOf(IssuerUnreachable);
    await verifier.verify(await token(0));
    down = false;
    clock += 5_001;
    await verifier.verify(await token(1));
  });

  it('withdraws a key that the issuer lists no more, and the tokens that it signed', async () => {
    served = publicKeys;
    const verifier = verifierOf();
    const [withdrawn, kept] = [await token(0), await token(1)];
    await verifier.verify(withdrawn);
    await verifier.verify(kept);
    served = publicKeys.slice(1);
    clock += HOUR + 1;
    // Nobody waits for the issuer: who is known is let in once more, and asking is begun.
    expect(verifier.recall(withdrawn)).not.to.equal(undefined);
    await eventually('the keys are fetched again', () => verifier.recall(withdrawn) === undefined);
    expect(calls).to.have.length(4);
    expect(await failure(verifier.verify(withdrawn))).to.be.instanceOf(TokenRejected);
    expect(verifier.recall(kept)).not.to.equal(undefined);
  });

  it('withdraws a key whose id names another one now', async () => {
    const verifier = verifierOf();
    const text = await token(0);
    await verifier.verify(text);
    served = [{ ...(publicKeys[1] as JWK), kid: 'k0' }];
    clock += HOUR + 1;
    verifier.recall(text);
    await eventually('the keys are fetched again', () => verifier.recall(text) === undefined);
    expect(await failure(verifier.verify(text))).to.be.instanceOf(TokenRejected);
  });

  it('lets nothing but the list be withdrawn: a fetch that fails leaves the keys', async () => {
    const verifier = verifierOf();
    const text = await token();
    await verifier.verify(text);
    down = true;
    clock += HOUR + 1;
    expect(verifier.recall(text)).not.to.equal(undefined);
    await eventually('the issuer was asked', () => calls.length === 3);
    expect(verifier.recall(text)).not.to.equal(undefined);
    expect(calls, 'asked once, however often it is recalled').to.have.length(3);
  });

  it('does not follow a discovery document that names another issuer or a plain-text key address', async () => {
    for (const document of [
      { issuer: 'https://other.example', jwks_uri: JWKS },
      { issuer: ISSUER, jwks_uri: 'http://sso.example/keys' },
      { issuer: ISSUER },
      null,
    ]) {
      discovery = document;
      expect(await failure(verifierOf().verify(await token()))).to.be.instanceOf(IssuerUnreachable);
    }
  });

  it('leaves out keys that are not RSA signature keys', async () => {
    served = [{ ...(publicKeys[0] as JWK), use: 'enc' }];
    expect(await failure(verifierOf().verify(await token()))).to.be.instanceOf(TokenRejected);
  });

  it('refuses a key set of more than 1 MiB', async () => {
    served = Array.from({ length: 6000 }, () => publicKeys[0] as JWK);
    expect(await failure(verifierOf().verify(await token()))).to.be.instanceOf(IssuerUnreachable);
  });
});
