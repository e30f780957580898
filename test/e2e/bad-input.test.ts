import { expect } from 'chai';
import { UnsecuredJWT } from 'jose';
import { DEVELOPMENT_ISSUER } from '../../src/adapters/identity/development-issuer.ts';
import { callerOf } from '../support/service/caller.ts';
import { COLLECTING, isAsBefore, memoryOf } from '../support/service/memory.ts';
import { CLUSTERS, E2E_STORE, PRIVATE, createStack, type Stack } from '../support/service/stack.ts';
import { rawClient, type RawReply } from '../support/http/raw-client.ts';

const MiB = 1024 * 1024;
const SPEC = { template: { id: 'osac.templates.ocp_ci_small' } };

type Bad = {
  readonly what: string;
  readonly verb?: string;
  readonly path?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  /** Field `code` of the body: a gRPC code on OSAC's surfaces, a text in a problem document. */
  readonly code: number | string;
  readonly says: RegExp;
};

describe('bad input to the real process', function () {
  this.timeout(120_000);
  let stack: Stack;
  let raw: ReturnType<typeof rawClient>;
  let tokens: { readonly alice: string; readonly admin: string };
  let cases: readonly Bad[];

  before(async () => {
    stack = await createStack(E2E_STORE);
    await stack.start({ LEDGER_LOG_LEVEL: 'warn' }, { nodeOptions: COLLECTING });
    const bob = await callerOf(stack, { tenant: 'globex', user: 'bob' });
    const theirs = await bob('POST', CLUSTERS, { body: { metadata: { name: 'theirs' }, spec: SPEC } });
    tokens = {
      alice: await stack.token({ tenant: 'acme', user: 'alice' }),
      admin: await stack.token({ admin: true, user: 'root' }),
    };
    raw = rawClient(stack.http());
    const expired = await stack.token({ tenant: 'acme', user: 'alice', ttlSeconds: -60 });
    cases = badRequests(String(theirs.json()['id']), tokens, expired);
  });
  after(async () => {
    raw.close();
    await stack.dispose();
  });

  const send = ({ verb = 'POST', path = CLUSTERS, body, headers = {} }: Bad): Promise<RawReply> =>
    raw.send(verb, path, {
      headers: { authorization: `Bearer ${tokens.alice}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });

  it('gets its exact status, and a body that says what is wrong and where', async () => {
    for (const bad of cases) {
      const reply = await send(bad);
      expect(reply.status, `${bad.what}: ${reply.text}`).to.equal(bad.status);
      const json = JSON.parse(reply.text) as Record<string, unknown>;
      expect(json['code'], bad.what).to.equal(bad.code);
      expect(json['message'] ?? json['detail'], bad.what).to.match(bad.says);
    }
    const reply = await raw.send('GET', CLUSTERS, { headers: { authorization: `Bearer ${tokens.alice}` } });
    const { total = 0 } = JSON.parse(reply.text) as { total?: number };
    expect(total, 'nothing was made of it').to.equal(0);
  });

  it('leaves memory as it was after 10,000 of them, and the process up', async () => {
    const small = cases.filter(({ body }) => (body?.length ?? 0) < 4096);
    const round = async (requests: number): Promise<void> => {
      let sent = 0;
      const worker = async (): Promise<void> => {
        while (sent < requests) {
          const bad = small[(sent += 1) % small.length] as Bad;
          const reply = await send(bad);
          if (reply.status !== bad.status) throw new Error(`${bad.what}: ${reply.status} ${reply.text}`);
        }
      };
      await Promise.all(Array.from({ length: 16 }, worker));
    };
    await round(1_000);
    const before = await memoryOf(stack);
    await round(10_000);
    await isAsBefore(stack, before);
    expect((await fetch(`${stack.http()}/readyz`)).status).to.equal(200);
    expect(stack.service().log.filter((line) => /"level":"(error|fatal)"/.test(line))).to.deep.equal([]);
  });
});

const badRequests = (
  foreign: string,
  { alice, admin }: { readonly alice: string; readonly admin: string },
  expired: string,
): readonly Bad[] => {
  const order = (what: string, body: object, says: RegExp): Bad => ({
    what,
    body: JSON.stringify(body),
    status: 400,
    code: 3,
    says,
  });
  const named = (name: string): object => ({ metadata: { name }, spec: SPEC });
  const bytes = (what: string, body: string | Uint8Array, status: number, says: RegExp): Bad => ({
    what,
    body,
    status,
    code: 3,
    says,
  });
  const absent = (what: string, id: string, verb = 'GET'): Bad => ({
    what,
    verb,
    path: `${CLUSTERS}/${id}`,
    ...(verb === 'PATCH' ? { body: '{"metadata":{"labels":{"a":"b"}}}' } : {}),
    status: 404,
    code: 5,
    says: /^object with identifier '.+' not found$/,
  });
  const stranger = (what: string, authorization: string, says: RegExp): Bad => ({
    what,
    verb: 'GET',
    headers: { authorization },
    status: 401,
    code: 16,
    says,
  });
  const [head = '', claims = '', signature = ''] = alice.split('.');
  const otherClaims = Buffer.from(claims, 'base64url').toString().replace('acme', 'globex');
  const forged = [head, Buffer.from(otherClaims).toString('base64url'), signature].join('.');
  const unsigned = new UnsecuredJWT({ organization: ['acme'] })
    .setIssuer(DEVELOPMENT_ISSUER)
    .setSubject('alice')
    .setExpirationTime('1h')
    .encode();
  return [
    bytes('garbage', '<order/>', 400, /not valid JSON at line 1, column 1$/),
    bytes('a cut body', '{"metadata":\n{"name":"x"', 400, /unexpected end at line 2, column 12$/),
    bytes('an empty body', '', 400, /empty/),
    bytes('invalid UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 400, /not valid UTF-8/),
    bytes(
      'deep nesting',
      `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
      400,
      /nested deeper than 64 levels/,
    ),
    bytes('10 MiB', Buffer.alloc(10 * MiB, 0x20), 413, /larger than 294912 bytes/),
    {
      what: 'another content type on a surface of our own',
      path: '/api/ledger/v1/store/backup',
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'text/xml' },
      body: '<backup/>',
      status: 415,
      code: 'UNSUPPORTED_MEDIA_TYPE',
      says: /content type must be application\/json/,
    },
    {
      ...bytes('a compressed body', '{}', 415, /'gzip' is not supported/),
      headers: { 'content-encoding': 'gzip' },
    },
    order('an unknown field', { ...named('x'), colour: 'red' }, /^unknown field "colour"$/),
    order(
      'an unknown inner field',
      { spec: { template: { it: 1 } } },
      /^unknown field "spec\.template\.it"$/,
    ),
    order(
      'an unknown enum',
      { ...named('x'), status: { state: 'CLUSTER_STATE_PURPLE' } },
      /'status\.state': one of/,
    ),
    order(
      'a number overflow',
      { spec: { node_sets: { w: { size: 2 ** 31 } } } },
      /'spec\.node_sets\.w\.size': a whole/,
    ),
    order('a fraction', { spec: { node_sets: { w: { size: 1.5 } } } }, /'spec\.node_sets\.w\.size': a whole/),
    order(
      'a negative size',
      { ...named('x'), spec: { ...SPEC, node_sets: { workers: { size: -1 } } } },
      /size for node set 'workers'/,
    ),
    order('an upper-case name', named('Bad'), /metadata\.name/),
    order('a name that is a path', named('../../etc/passwd'), /metadata\.name/),
    order('a name that is too long', named('a'.repeat(64)), /at most 63/),
    order('an id that is a path', { id: '../../x', ...named('x') }, /^field 'id' must not hold/),
    order('an id with a NUL', { id: 'a\u0000b', ...named('x') }, /^field 'id' must not hold/),
    {
      ...absent('a path to a file', '..%2F..%2F..%2Fetc%2Fpasswd'),
      says: /^object with identifier '\.\.\/\.\.\/\.\.\/etc\/passwd' not found$/,
    },
    absent('SQL for an id', encodeURIComponent("x' OR '1'='1")),
    absent("another tenant's id, read", foreign),
    absent("another tenant's id, changed", foreign, 'PATCH'),
    absent("another tenant's id, deleted", foreign, 'DELETE'),
    {
      ...order(
        'a template of nobody',
        { metadata: { name: 'x' }, spec: { template: { id: 'nope' } } },
        /nope/,
      ),
    },
    stranger('an expired token', `Bearer ${expired}`, /^token expired/),
    stranger('a token with other claims', `Bearer ${forged}`, /signature/),
    stranger('an unsigned token', `Bearer ${unsigned}`, /must be signed/),
    stranger('no token at all', '', /./),
    {
      what: 'the private surface for a tenant',
      verb: 'GET',
      path: `${PRIVATE}/hubs`,
      status: 403,
      code: 7,
      says: /^permission denied$/,
    },
    {
      what: 'our own surface for a tenant',
      verb: 'GET',
      path: '/api/ledger/v1/events',
      status: 403,
      code: 'PERMISSION_DENIED',
      says: /only provider admins/,
    },
    // Only the embedded store has backups.
    ...(E2E_STORE === 'sqlite'
      ? [
          {
            what: 'a backup to a path that is none',
            path: '/api/ledger/v1/store/backup',
            headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json' },
            body: '{"file":"../../etc/passwd"}',
            status: 400,
            code: 'INVALID_ARGUMENT',
            says: /'file' must be an absolute path/,
          },
        ]
      : []),
    {
      what: 'a position of another store',
      verb: 'GET',
      headers: { authorization: `Bearer ${alice}`, 'x-ledger-min-position': 'elsewhere.0000000000000001' },
      status: 400,
      code: 3,
      says: /position/i,
    },
    {
      ...order('an idempotency key that cannot be read', named('x'), /Idempotency-Key/),
      headers: { 'idempotency-key': '"open' },
    },
  ];
};
