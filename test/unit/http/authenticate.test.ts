import { expect } from 'chai';
import {
  IssuerUnreachable,
  TokenRejected,
  type TokenVerifier,
  type VerifiedToken,
} from '../../../src/app/tenancy/identity.ts';
import { createAuthenticator } from '../../../src/http/authenticate.ts';
import { ApiError } from '../../../src/http/errors.ts';
import {
  readCommandId,
  readIdempotencyKey,
  readIfMatch,
  readRequestId,
  readTraceparent,
} from '../../../src/http/osac/call.ts';

const METHOD = '/osac.public.v1.Clusters/List';
const verified = (more: Partial<VerifiedToken> = {}): VerifiedToken => ({
  issuer: 'https://sso.example',
  subject: 's',
  userName: 'alice',
  serviceAccount: false,
  organizations: ['t1'],
  groups: [],
  realmRoles: [],
  expiresAt: 2_000_000_000,
  tokenIdHash: 'h',
  ...more,
});

describe('authenticator', () => {
  const build = (answer: VerifiedToken | Error, recalled?: VerifiedToken) => {
    const asked: string[] = [];
    const state = { now: 0, tenants: ['t1'], asked };
    const verifier: TokenVerifier = {
      issuers: [],
      verify: async () => {
        if (answer instanceof Error) throw answer;
        return answer;
      },
      recall: () => recalled,
    };
    const authenticate = createAuthenticator({
      verifier,
      tenantExists: (tenant) => {
        asked.push(tenant);
        return state.tenants.includes(tenant);
      },
      monotonicMs: () => state.now,
    });
    return { authenticate, state };
  };
  const failure = async (run: () => unknown): Promise<ApiError> => {
    try {
      await run();
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
    throw new Error('expected a refusal');
  };

  for (const [what, problem, status, text] of [
    [
      'a rejected token',
      new TokenRejected('its signature is wrong'),
      401,
      /^token is not valid: its signature is wrong$/,
    ],
    ['an expired token', new TokenRejected('x', { expired: true }), 401, /^token expired/],
    ['unreachable keys', new IssuerUnreachable('https://sso.example', 5000), 503, /keys of the token issuer/],
  ] as const)
    it(`answers ${what} with ${status}`, async () => {
      const error = await failure(() => build(problem).authenticate('Bearer abc', METHOD));
      expect(error.status).to.equal(status);
      expect(error.message).to.match(text);
      if (status === 503) expect(error.options.retryAfterSeconds).to.equal(5);
    });

  it('passes on what is no refusal', async () => {
    const bug = new TypeError('bug');
    let caught: unknown;
    try {
      await build(bug).authenticate('Bearer abc', METHOD);
    } catch (error) {
      caught = error;
    }
    expect(caught).to.equal(bug);
  });

  it('knows a token again without waiting, and asks for its tenant once a second', () => {
    const { authenticate, state } = build(new Error('not called'), verified());
    const first = authenticate('Bearer abc', METHOD);
    expect(first).to.deep.include({ homeTenant: 't1' });
    expect(authenticate('Bearer abc', METHOD)).to.equal(first);
    expect(state.asked).to.deep.equal(['t1']);
    state.now = 1_001;
    state.tenants = [];
    expect(() => authenticate('Bearer abc', METHOD)).to.throw(
      ApiError,
      "tenant 't1' of the token doesn't exist",
    );
  });

  it('believes an unknown tenant the moment it exists', () => {
    const { authenticate, state } = build(
      new Error('not called'),
      verified({ organizations: ['new', 'other'] }),
    );
    expect(() => authenticate('Bearer abc', METHOD)).to.throw(ApiError, "'new'");
    state.tenants = ['other'];
    expect(authenticate('Bearer abc', METHOD)).to.deep.include({ tenants: ['new', 'other'] });
  });

  it('does not ask for tenants of admins', () => {
    const { authenticate, state } = build(
      new Error('not called'),
      verified({ organizations: ['x'], groups: ['admins'] }),
    );
    expect(authenticate('Bearer abc', METHOD)).to.include({ admin: true });
    expect(state.asked).to.deep.equal([]);
  });
});

describe('headers of a call', () => {
  it('If-Match holds one tag of the right kind, or anything goes', () => {
    expect(readIfMatch(undefined, 'cluster')).to.equal(undefined);
    expect(readIfMatch('*', 'cluster')).to.equal(undefined);
    expect(readIfMatch('"cluster-17"', 'cluster')).to.equal(17);
    for (const wrong of [
      'cluster-17',
      '"17"',
      'W/"cluster-1"',
      '"cluster-1", "cluster-2"',
      '"cluster--1"',
      '',
    ])
      expect(() => readIfMatch(wrong, 'cluster'), wrong).to.throw(ApiError, 'If-Match');
    expect(() => readIfMatch('"hub-1"', 'cluster')).to.throw(ApiError, 'belongs to a hub');
  });

  it('an idempotency key is a structured-field string or a bare token', () => {
    for (const [header, key] of [
      ['"order 4711"', 'order 4711'],
      ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
      ['"a\\"b"', 'a"b'],
    ] as const)
      expect(readIdempotencyKey(header)).to.equal(key);
    expect(readIdempotencyKey(undefined)).to.equal(undefined);
  });

  it('a command id is a UUID and stands alone', () => {
    const id = '01A1FDBF-853F-7699-B03B-202E1BBB7FF3';
    expect(readCommandId(id, undefined)).to.equal(id.toLowerCase());
    expect(() => readCommandId('x', undefined)).to.throw(ApiError, 'UUID');
    expect(() => readCommandId(id, 'key')).to.throw(ApiError, 'not both');
  });

  it('malformed trace and request ids are replaced, never refused', () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(readTraceparent({ traceparent: trace })).to.equal(trace);
    expect(readTraceparent({ traceparent: 'nonsense' })).to.equal(undefined);
    expect(readRequestId({ 'x-request-id': 'abc-1' }, () => 'fresh')).to.equal('abc-1');
    for (const bad of ['a b', 'x'.repeat(129), 'a\u0000', ''])
      expect(readRequestId({ 'x-request-id': bad }, () => 'fresh')).to.equal('fresh');
  });
});
