import { expect } from 'chai';
import { exportJWK, generateKeyPair, type JWTVerifyGetKey } from 'jose';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpsFetch } from '../../../src/adapters/identity/https-fetch.ts';
import { createIssuerKeys } from '../../../src/adapters/identity/issuer-keys.ts';
import { readPodIdentity } from '../../../src/adapters/identity/pod-identity.ts';
import { createTokenVerifier } from '../../../src/adapters/identity/token-verifier.ts';
import { createAuthenticator, type Authenticate } from '../../../src/http/authenticate.ts';
import { ApiError } from '../../../src/http/errors.ts';
import type { Principal } from '../../../src/http/osac/principal.ts';
import { json, startIssuer, TEST_CA, type Answer, type TestIssuer } from '../../support/http/issuer.ts';

/** Tokens, with issuers that are reached over https and do not always tell the truth. */
describe('token issuers over https', () => {
  let issuer: TestIssuer;
  let authenticate: Authenticate;
  let clock: number;

  const build = (issuers: readonly TestIssuer[], timeoutMs = 2_000): Authenticate => {
    const fetch = createHttpsFetch({ ca: TEST_CA });
    const keys = new Map<string, JWTVerifyGetKey>(
      issuers.map(({ issuer: name }) => [
        name,
        createIssuerKeys({ issuer: name, now: () => clock, fetch, timeoutMs }),
      ]),
    );
    return createAuthenticator({
      verifier: createTokenVerifier({ issuers: keys, now: () => Date.now() }),
      tenantExists: () => true,
      monotonicMs: () => 0,
    });
  };
  const admit = async (token: string, by = authenticate): Promise<Principal> =>
    by(`Bearer ${token}`, '/osac.public.v1.Clusters/List');
  /** Status and text, as the caller gets them. */
  const answer = async (token: string, by = authenticate): Promise<string> => {
    try {
      await admit(token, by);
      return '200';
    } catch (error) {
      if (error instanceof ApiError) return `${error.status} ${error.message}`;
      throw error;
    }
  };
  const UNREACHABLE = '503 the keys of the token issuer cannot be fetched now; try again';

  beforeEach(async () => {
    clock = 1_000_000;
    issuer = await startIssuer();
    authenticate = build([issuer]);
  });
  afterEach(() => issuer.close());

  it('are found by discovery; several of them have keys of their own', async () => {
    const second = await startIssuer();
    try {
      const both = build([issuer, second]);
      const [mine, theirs] = [
        await issuer.mint({ organization: ['t1'] }),
        await second.mint({ organization: ['t1'] }),
      ];
      const [one, two] = [await admit(mine, both), await admit(theirs, both)];
      expect(one.subjectId).not.to.equal(two.subjectId);
      expect(await answer(theirs)).to.equal('401 token is not valid: its issuer is not trusted here');
      // The same key id with another issuer's key does not pass.
      const forged = (await second.mint({})).split('.');
      const claims = (await issuer.mint({})).split('.');
      expect(await answer([claims[0], claims[1], forged[2]].join('.'), both)).to.match(/^401 .*signature/);
    } finally {
      await second.close();
    }
  });

  it('may rotate their keys: the new one is fetched, at most once a minute; the old one goes with it', async () => {
    const old = await issuer.mint({}, { kid: 'k1' });
    expect(await answer(old)).to.equal('200');
    issuer.keys = [];
    const fresh = await issuer.mint({}, { kid: 'k2' });
    expect(await answer(fresh)).to.equal('401 token is not valid: its key id is not one of its issuer');
    for (let i = 0; i < 20; i += 1)
      await answer(await issuer.mint({ n: i }, { kid: `forged-${i}`, signer: 'k1' }));
    expect(issuer.asked).to.have.length(2);
    issuer.keys = issuer.keys.filter(({ kid }) => kid === 'k2');
    clock += 60_001;
    expect(await answer(fresh)).to.equal('200');
    expect(await answer(await issuer.mint({ jti: 'again' }, { kid: 'k1' }))).to.match(/^401/);
    expect(issuer.asked).to.have.length(4);
  });

  const huge = 'x'.repeat(1024 * 1024 + 1);
  const text =
    (type: string, body: string): Answer =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': type }).end(body);
    };
  const lies: readonly (readonly [string, Partial<Pick<TestIssuer, 'discovery' | 'jwks'>>])[] = [
    ['a web page for discovery', { discovery: text('text/html', '<html>sign in</html>') }],
    ['a web page for keys', { jwks: text('text/html', '<html>sign in</html>') }],
    ['an empty answer', { jwks: text('application/json', '') }],
    ['a set without keys', { jwks: json({}) }],
    ['null', { jwks: json(null) }],
    ['more than 1 MiB', { jwks: json({ keys: [], padding: huge }) }],
    ['more keys than anybody has', { jwks: json({ keys: Array.from({ length: 101 }, () => ({})) }) }],
    ['a server error', { jwks: (_request, response) => void response.writeHead(500).end('{}') }],
    [
      'a redirect elsewhere',
      {
        jwks: (_request, response) =>
          void response.writeHead(302, { location: 'https://127.0.0.1:1/keys' }).end(),
      },
    ],
    ['a connection that is cut', { jwks: (request) => void request.socket.destroy() }],
    [
      'an answer that breaks off',
      {
        jwks: (request, response) => {
          response.writeHead(200, { 'content-length': '1000' }).write('{"keys":[');
          request.socket.end();
        },
      },
    ],
    [
      'another issuer',
      { discovery: json({ issuer: 'https://other.example', jwks_uri: 'https://other.example/k' }) },
    ],
    ['keys over plain http', { discovery: json({ issuer: '', jwks_uri: 'http://127.0.0.1/keys' }) }],
  ];
  for (const [what, lie] of lies)
    it(`answering with ${what} are unreachable, and asked again after a pause`, async () => {
      Object.assign(issuer, lie);
      const token = await issuer.mint({});
      expect(await answer(token)).to.equal(UNREACHABLE);
      const asked = issuer.asked.length;
      expect(await answer(token)).to.equal(UNREACHABLE);
      expect(issuer.asked).to.have.length(asked);
      Object.assign(issuer, { discovery: undefined, jwks: undefined });
      clock += 5_001;
      expect(await answer(token)).to.equal('200');
    });

  it('that never answer, or drop by drop, are given up after their time', async () => {
    const impatient = build([issuer], 100);
    issuer.jwks = () => undefined;
    expect(await answer(await issuer.mint({}), impatient)).to.equal(UNREACHABLE);
    issuer.jwks = (_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write(' '), 10);
      response.once('close', () => clearInterval(drip));
    };
    clock += 5_001;
    expect(await answer(await issuer.mint({}), impatient)).to.equal(UNREACHABLE);
  });

  it('with keys of another kind, too small or broken ones are 401: those keys do not count', async () => {
    const elliptic = await exportJWK((await generateKeyPair('ES256')).publicKey);
    const token = await issuer.mint({});
    const [good] = issuer.keys;
    for (const key of [
      { ...elliptic, kid: 'k1' },
      { kty: 'oct', k: 'c2VjcmV0', kid: 'k1' },
      { ...good, n: 'AQAB' },
      { ...good, n: '!'.repeat(342) },
      { ...good, n: 'A'.repeat(400) },
      { ...good, n: 'x'.repeat(100_000) },
      { ...good, e: '' },
      { ...good, use: 'enc' },
      { ...good, kid: 7 },
      null,
      'key',
    ]) {
      const by = build([issuer]);
      issuer.jwks = json({ keys: [key] });
      expect(await answer(token, by), JSON.stringify(key).slice(0, 60)).to.match(/^401 token is not valid/);
    }
  });

  it('that are down keep nobody waiting who has a key already', async () => {
    authenticate = build([issuer], 60_000);
    expect(await answer(await issuer.mint({}))).to.equal('200');
    clock += 3_600_001;
    issuer.discovery = (request) => void request.socket.destroy();
    expect(await answer(await issuer.mint({ jti: 'a' }))).to.equal('200');
    const asked = issuer.asked.length;
    issuer.discovery = () => undefined;
    clock += 5_001;
    // Asked again, but this answer never comes: the call is not held up by it.
    expect(await answer(await issuer.mint({ jti: 'b' }))).to.equal('200');
    expect(issuer.asked.length).to.be.at.most(asked + 1);
  });

  it('with a certificate that nobody vouches for are not asked at all', async () => {
    const keys = createIssuerKeys({ issuer: issuer.issuer, now: () => clock });
    const by = createAuthenticator({
      verifier: createTokenVerifier({ issuers: new Map([[issuer.issuer, keys]]), now: () => Date.now() }),
      tenantExists: () => true,
      monotonicMs: () => 0,
    });
    expect(await answer(await issuer.mint({}), by)).to.equal(UNREACHABLE);
    expect(issuer.asked).to.deep.equal([]);
  });

  it('may name a thousand groups; a token beyond 16,384 characters is refused before it is read', async () => {
    const groups = Array.from({ length: 1_000 }, (_, i) => `g${i}`);
    const many = await admit(
      await issuer.mint({ organization: ['t1'], groups: [...groups, '/p/system:managers'] }),
    );
    expect(many.projects.get('t1')).to.deep.equal({ viewers: ['p'], managers: ['p'] });
    const asked = issuer.asked.length;
    const long = await issuer.mint({ groups: groups.map((group) => `/projects/${group}/system:viewers`) });
    expect(await answer(long)).to.equal('401 token is not valid: it is longer than 16,384 characters');
    expect(issuer.asked).to.have.length(asked);
  });

  it('of a pod: its namespace, and keys fetched with its own certificates and token', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'ledger-pod-'));
    try {
      expect(await readPodIdentity(directory)).to.equal(undefined);
      const mounted = await issuer.mint({ sub: 'system:serviceaccount:osac:ledger', 'kubernetes.io': {} });
      await writeFile(join(directory, 'namespace'), 'osac\n');
      await writeFile(join(directory, 'ca.crt'), TEST_CA);
      await writeFile(join(directory, 'token'), 'no token\n');
      expect(await readPodIdentity(directory)).to.equal(undefined);
      await writeFile(join(directory, 'token'), `${mounted}\n`);
      const pod = await readPodIdentity(directory);
      expect(pod).to.include({ namespace: 'osac', issuer: issuer.issuer });
      if (pod === undefined) throw new Error('expected a pod');
      const keys = createIssuerKeys({ issuer: pod.issuer, fetch: pod.fetch, now: () => clock });
      const by = createAuthenticator({
        verifier: createTokenVerifier({ issuers: new Map([[pod.issuer, keys]]), now: () => Date.now() }),
        tenantExists: () => true,
        monotonicMs: () => 0,
        principal: { deploymentNamespace: pod.namespace },
      });
      const operator = { sub: 'system:serviceaccount:osac:osac-operator', 'kubernetes.io': {} };
      expect(await admit(await issuer.mint(operator), by)).to.include({
        admin: true,
        userName: 'osac-operator',
      });
      const stranger = { ...operator, sub: 'system:serviceaccount:elsewhere:osac-operator' };
      expect(await admit(await issuer.mint(stranger), by)).to.include({ admin: false });
      expect(issuer.asked.map(({ authorization }) => authorization)).to.deep.equal([
        `Bearer ${mounted}`,
        `Bearer ${mounted}`,
      ]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
