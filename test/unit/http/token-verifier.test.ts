import { expect } from 'chai';
import { SignJWT, UnsecuredJWT, createLocalJWKSet, exportJWK, generateKeyPair, type JWK } from 'jose';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import { TokenRejected, type TokenVerifier } from '../../../src/app/tenancy/identity.ts';

const ISSUER = 'https://sso.example/realms/osac';
const NOW = Date.parse('2026-11-21T12:00:00Z');
const seconds = NOW / 1000;

describe('token verifier', () => {
  let keys: Awaited<ReturnType<typeof generateKeyPair>>;
  let foreign: Awaited<ReturnType<typeof generateKeyPair>>;
  let elliptic: Awaited<ReturnType<typeof generateKeyPair>>;
  let jwk: JWK;
  let now: number;
  let verifier: TokenVerifier;
  let keyLookups: number;

  before(async () => {
    [keys, foreign, elliptic] = await Promise.all([
      generateKeyPair('RS256'),
      generateKeyPair('RS256'),
      generateKeyPair('ES256'),
    ]);
    jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k1', use: 'sig' };
  });

  beforeEach(() => {
    now = NOW;
    keyLookups = 0;
    const set = createLocalJWKSet({ keys: [jwk] });
    verifier = createTokenVerifier({
      issuers: new Map([
        [
          ISSUER,
          (header, token) => {
            keyLookups += 1;
            return set(header, token);
          },
        ],
      ]),
      now: () => now,
    });
  });

  const claims = {
    sub: 'u-1',
    iss: ISSUER,
    iat: seconds,
    exp: seconds + 60,
    typ: 'Bearer',
    preferred_username: 'alice',
    organization: ['t1'],
  };
  const token = (
    more: Record<string, unknown> = {},
    header: { alg?: string; kid?: string } = {},
    key = keys.privateKey,
  ): Promise<string> =>
    new SignJWT({ ...claims, ...more })
      .setProtectedHeader({
        alg: header.alg ?? 'RS256',
        ...('kid' in header ? {} : { kid: 'k1' }),
        ...header,
      })
      .sign(key);

  const reasonOf = async (text: string): Promise<string> => {
    try {
      await verifier.verify(text);
    } catch (error) {
      if (error instanceof TokenRejected) return error.reason;
      throw error;
    }
    return 'accepted';
  };

  it('reads the claims of a good token', async () => {
    const verified = await verifier.verify(
      await token({ groups: ['/p/system:viewers'], realm_access: { roles: ['tenant-admin'] }, email: 'a@x' }),
    );
    expect(verified).to.deep.include({
      issuer: ISSUER,
      subject: 'u-1',
      userName: 'alice',
      email: 'a@x',
      organizations: ['t1'],
      groups: ['/p/system:viewers'],
      realmRoles: ['tenant-admin'],
      serviceAccount: false,
    });
  });

  it('reads both forms of the organization claim; groups inside one cannot make a provider admin', async () => {
    const verified = await verifier.verify(
      await token({ organization: { t1: { groups: ['admins'] }, t2: {} } }),
    );
    expect(verified.organizations).to.deep.equal(['t1', 't2']);
    expect(verified.groups).to.deep.equal([]);
    expect(verified.tenantGroups?.get('t1')).to.deep.equal(['admins']);
  });

  describe('the own account of a client', () => {
    const NAME = 'service-account-osac-admin';
    const accountOf = async (more: Record<string, unknown>): Promise<string | undefined> => {
      const { ownAccountOf } = await verifier.verify(
        await token({ organization: undefined, preferred_username: NAME, azp: 'osac-admin', ...more }),
      );
      return ownAccountOf;
    };

    it('is told by its name and the client that has the token, where no organization is named', async () => {
      expect(await accountOf({})).to.equal('osac-admin');
      expect(await accountOf({ azp: undefined, client_id: 'osac-admin' })).to.equal('osac-admin');
      for (const organization of [[], {}, null])
        expect(await accountOf({ organization })).to.equal('osac-admin');
    });

    for (const [what, more] of [
      ['a tenant', { organization: ['globex'] }],
      ['a tenant with groups', { organization: { globex: {} } }],
      ['a built-in tenant', { organization: ['shared'] }],
      ['an organization in a form that is none', { organization: 'globex' }],
      ['an organization without a name', { organization: [''] }],
      ['another client', { azp: 'osac-cli' }],
      ['another client, whatever client_id says', { azp: 'osac-cli', client_id: 'osac-admin' }],
      ['a client that is no text', { azp: ['osac-admin'], client_id: 'osac-admin' }],
      ['no client', { azp: undefined }],
      ['the name in `username`', { preferred_username: undefined, username: NAME }],
      ['the name in `sub`', { preferred_username: undefined, sub: NAME }],
      ['the name of another client', { preferred_username: 'service-account-osac-cli' }],
      ['a Kubernetes service account', { 'kubernetes.io': {} }],
    ] as const)
      it(`is not one of a token with ${what}`, async () => {
        expect(await accountOf(more)).to.equal(undefined);
      });
  });

  it('takes a Kubernetes service account by its subject', async () => {
    const sub = 'system:serviceaccount:osac:admin';
    const verified = await verifier.verify(await token({ sub, 'kubernetes.io': {}, organization: ['t1'] }));
    expect(verified).to.deep.include({ serviceAccount: true, userName: sub, organizations: [] });
  });

  it('accepts RS384 and RS512 too, and nothing else', async () => {
    expect(await reasonOf(await token({}, { alg: 'RS512' }, await withAlgorithm('RS512')))).to.equal(
      'accepted',
    );
    expect(await reasonOf(await token({}, { alg: 'ES256' }, elliptic.privateKey))).to.match(
      /RS256, RS384, RS512/,
    );
  });

  const withAlgorithm = async (alg: string): Promise<typeof keys.privateKey> => {
    const pair = await generateKeyPair(alg, { extractable: true });
    const set = createLocalJWKSet({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'k1' }] });
    verifier = createTokenVerifier({ issuers: new Map([[ISSUER, set]]), now: () => now });
    return pair.privateKey;
  };

  it('refuses what is not signed by the issuer', async () => {
    expect(await reasonOf('garbage')).to.match(/not a JSON Web Token/);
    expect(await reasonOf('a.b.c')).to.match(/not a JSON Web Token/);
    expect(await reasonOf(new UnsecuredJWT(claims).encode())).to.match(/must be signed/);
    expect(await reasonOf(await token({}, {}, foreign.privateKey))).to.match(/signature/);
    expect(await reasonOf(await token({ iss: 'https://evil.example' }))).to.match(/issuer is not trusted/);
    expect(await reasonOf(await token({}, { kid: 'other' }))).to.match(/key id/);
    expect(await reasonOf('x'.repeat(20_000))).to.match(/longer/);
    const good = await token();
    expect(await reasonOf(good.slice(0, -6) + 'AAAAAA')).to.match(/signature/);
  });

  it('refuses a token without a key id', async () => {
    const bare = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(keys.privateKey);
    expect(await reasonOf(bare)).to.match(/key id \(kid\)/);
  });

  for (const [what, more, reason] of [
    ['no expiry', { exp: undefined }, /exp/],
    ['an expiry that is no time', { exp: 1e300 }, /exp/],
    ['an expiry after the year 9999', { exp: 253_402_300_800 }, /exp/],
    ['expired', { exp: seconds - 6 }, /expired/],
    ['issued in the future', { iat: seconds + 60 }, /iat/],
    ['not valid yet', { nbf: seconds + 60 }, /nbf/],
    ['typ ID', { typ: 'ID' }, /typ/],
    ['a typ that is a list', { typ: ['Bearer'] }, /typ/],
    ['a typ that is null', { typ: null }, /typ/],
    ['no subject', { sub: undefined }, /sub/],
    ['empty subject', { sub: '' }, /sub/],
  ] as const) {
    it(`refuses ${what}`, async () => {
      expect(await reasonOf(await token(more))).to.match(reason);
    });
  }

  it('allows five seconds of difference between clocks', async () => {
    expect(await reasonOf(await token({ exp: seconds - 4 }))).to.equal('accepted');
    expect(await reasonOf(await token({ iat: seconds + 4, nbf: seconds + 4 }))).to.equal('accepted');
  });

  it('checks a signature once and remembers the token until it expires', async () => {
    const text = await token();
    expect(verifier.recall(text)).to.equal(undefined);
    const first = await verifier.verify(text);
    expect(await verifier.verify(text)).to.equal(first);
    expect(verifier.recall(text)).to.equal(first);
    expect(keyLookups).to.equal(1);
    now = NOW + 66_000;
    expect(verifier.recall(text)).to.equal(undefined);
    expect(await reasonOf(text)).to.match(/expired/);
  });

  it('remembers so many tokens and no more, the least used leaves first', async () => {
    const small = createTokenVerifier({
      issuers: new Map([[ISSUER, createLocalJWKSet({ keys: [jwk] })]]),
      now: () => now,
      cacheSize: 2,
    });
    const [first = '', second = '', third = ''] = await Promise.all(
      ['a', 'b', 'c'].map((jti) => token({ jti })),
    );
    await small.verify(first);
    await small.verify(second);
    expect(small.recall(first)).not.to.equal(undefined);
    await small.verify(third);
    expect([first, second, third].map((text) => small.recall(text) !== undefined)).to.deep.equal([
      true,
      false,
      true,
    ]);
  });

  describe('one token has one id', () => {
    const idOf = async (text: string): Promise<string> => (await verifier.verify(text)).tokenIdHash;
    /** The same signature in another spelling: the last character of base64url holds bits that count for nothing. */
    const respelt = (text: string): string => {
      const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
      const last = LETTERS.indexOf(text.slice(-1));
      return text.slice(0, -1) + LETTERS.charAt(last ^ 1);
    };

    it('made of the decoded signature', async () => {
      const text = await token();
      const other = respelt(text);
      expect(Buffer.from(other.split('.')[2] ?? '', 'base64url')).to.deep.equal(
        Buffer.from(text.split('.')[2] ?? '', 'base64url'),
      );
      expect(other).not.to.equal(text);
      expect(await idOf(other)).to.equal(await idOf(text));
      expect(await idOf(await token({ iat: seconds - 1 }))).not.to.equal(await idOf(text));
    });

    it('made of `jti` where it is a text, for each issuer its own', async () => {
      const named = await idOf(await token({ jti: 'a' }));
      expect(await idOf(await token({ jti: 'a', iat: seconds - 1 }))).to.equal(named);
      expect(await idOf(await token({ jti: 'b' }))).not.to.equal(named);
      const unnamed = await token({ jti: '' });
      expect(await idOf(unnamed)).not.to.equal(await idOf(await token({ jti: '', iat: seconds - 1 })));
      const others = createTokenVerifier({
        issuers: new Map([['https://b.example', createLocalJWKSet({ keys: [jwk] })]]),
        now: () => now,
      });
      const theirs = await others.verify(await token({ jti: 'a', iss: 'https://b.example' }));
      expect(theirs.tokenIdHash).not.to.equal(named);
    });

    it('and no padding or other alphabet', async () => {
      const [header = '', body = '', signature = ''] = (await token()).split('.');
      for (const text of [
        `${header}.${body}.${signature}==`,
        `${header}=.${body}.${signature}`,
        `${header}.${body}=.${signature}`,
        `${header}.${body}.${signature}\u00a0`,
        `${header}.${body}.${signature}+`,
        `${header}.${body}.${signature}.`,
      ])
        expect(await reasonOf(text), text.slice(-8)).to.match(/not a JSON Web Token/);
    });
  });

  it('forgets the tokens of a key that its issuer has withdrawn', async () => {
    let current = new Map([['k1', 'one']]);
    const keysOfIssuer = Object.assign(createLocalJWKSet({ keys: [jwk] }), {
      fingerprint: (kid: string) => current.get(kid),
    });
    const own = createTokenVerifier({ issuers: new Map([[ISSUER, keysOfIssuer]]), now: () => now });
    const text = await token();
    await own.verify(text);
    expect(own.recall(text)).not.to.equal(undefined);
    // Another key under the same id, and none.
    for (const next of [new Map([['k1', 'two']]), new Map<string, string>()]) {
      current = next;
      expect(own.recall(text)).to.equal(undefined);
      current = new Map([['k1', 'one']]);
      await own.verify(text);
    }
  });

  it('remembers a token by its hash alone, and one that differs in a character not at all', async () => {
    const text = await token();
    const { tokenIdHash } = await verifier.verify(text);
    expect(tokenIdHash).to.match(/^[\w-]{43}$/);
    expect(JSON.stringify(await verifier.verify(text))).not.to.include(text.slice(-40));
    expect(verifier.recall(`${text.slice(0, -1)}${text.endsWith('A') ? 'B' : 'A'}`)).to.equal(undefined);
    expect(verifier.recall('')).to.equal(undefined);
  });

  it('shows only the issuers that clients may sign in with', () => {
    const issuers = new Map([[ISSUER, createLocalJWKSet({ keys: [jwk] })]]);
    expect(createTokenVerifier({ issuers, now: () => now }).issuers).to.deep.equal([ISSUER]);
    expect(createTokenVerifier({ issuers, now: () => now, advertised: [] }).issuers).to.deep.equal([]);
  });

  it('says that a token has expired, so that a client knows to fetch a new one', async () => {
    const error = await verifier
      .verify(await token({ exp: seconds - 60 }))
      .catch((caught: unknown) => caught);
    expect(error).to.be.instanceOf(TokenRejected).and.to.have.property('expired', true);
  });
});
