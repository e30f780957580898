import { expect } from 'chai';
import { createBodyBudget, type BodyBudget } from '../../../src/http/body.ts';
import { eventually } from '../../support/eventually.ts';
import { framed, rawGrpc } from '../../support/grpc/raw-client.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const LIST = '/osac.public.v1.Clusters/List';
const WATCH = '/osac.public.v1.Events/Watch';
const KIB = 1_024;
const STRANGERS = 1_500;

/** What the service takes of a budget, and how much at most. */
const watchedBudget = (bytes: number) => {
  const inner = createBodyBudget(bytes);
  const seen = { now: 0, most: 0 };
  const budget: BodyBudget = {
    take: (wanted) => {
      if (!inner.take(wanted)) return false;
      seen.now += wanted;
      seen.most = Math.max(seen.most, seen.now);
      return true;
    },
    give: (returned) => {
      inner.give(returned);
      seen.now -= returned;
    },
  };
  return { budget, seen };
};

describe("bodies of Connect's protocol", function () {
  this.timeout(30_000);
  const LIMIT = 4 * KIB * KIB;
  const { budget, seen } = watchedBudget(LIMIT);
  let service: TestService;
  let token: string;
  let raw: ReturnType<typeof rawGrpc>;
  before(async () => {
    service = await startTestService({ grpc: { arrivalMs: 1_000, bodies: budget } });
    token = await service.token({ user: 'root', admin: true });
  });
  beforeEach(() => {
    raw = rawGrpc(service.grpcAddress);
  });
  afterEach(() => raw.close());
  after(() => service.close());

  const post = async (body: Uint8Array, { known = false, open = false, path = LIST, type = 'json' } = {}) => {
    const headers = {
      'content-type': `application/${type}`,
      ...(known ? { authorization: `Bearer ${token}` } : {}),
    };
    const reply = await raw.call({ path, body, open, headers });
    const text = reply.body.toString();
    return { status: reply.headers[':status'], text: text.slice(text.indexOf('{')) };
  };
  const codeOf = (text: string): unknown => (JSON.parse(text) as { readonly code?: string }).code;

  it('strangers who send without an end stay within the budget, and are closed', async () => {
    const bytes = 10_000;
    for (let i = 0; i < STRANGERS; i += 1)
      void post(Buffer.alloc(bytes, ' '), { open: true }).catch(() => undefined);
    const ends = (status: number): number =>
      service.logger.lines.filter(({ fields }) => 'status' in fields && fields['status'] === status).length;
    await eventually('all are closed', () => ends(408) + ends(503) === STRANGERS);
    expect(ends(408)).to.be.greaterThan(0);
    expect(seen.most).to.be.within(bytes, LIMIT);
    await eventually('all is given back', () => seen.now === 0);
  });

  it('streams that never begin are closed, too', async () => {
    const half = Buffer.from([0, 0, 0, 0, 9]);
    for (const type of ['connect+json', 'connect+proto']) {
      const { text } = await post(half, { open: true, path: WATCH, type });
      expect(text, type).to.contain('did not arrive in time');
    }
  });

  it('large ones are taken of known callers alone, whether or not their length is told', async () => {
    const large = Buffer.alloc(65 * KIB, ' ');
    const stranger = await post(large, { open: true });
    expect([stranger.status, codeOf(stranger.text)]).to.deep.equal(['401', 'unauthenticated']);
    const body = Buffer.concat([large, Buffer.from('{}')]);
    expect(await post(body, { known: true })).to.deep.include({ status: '200' });
    const begun = framed(Buffer.alloc(65 * KIB), { length: 66 * KIB });
    const watch = await post(begun, { open: true, path: WATCH, type: 'connect+json' });
    expect(watch.text).to.contain('"unauthenticated"');
  });

  it('too large ones are refused in the words of gRPC', async () => {
    for (const open of [true, false]) {
      const { status, text } = await post(Buffer.alloc(300 * KIB, ' '), { known: true, open });
      expect(status).to.equal('400');
      expect(text).to.contain('the request message is larger than 294912 bytes');
    }
  });

  it('bad ones of strangers count for their address, as over gRPC', async () => {
    const own = await startTestService({ admission: { rateLimitAddress: 3 } });
    const mine = rawGrpc(own.grpcAddress);
    try {
      const bad = async (type: string, body: Uint8Array): Promise<string | undefined> => {
        const reply = await mine.call({ path: LIST, body, headers: { 'content-type': type } });
        // gRPC-Web has its trailers in the body.
        const [, trailer] = /x-ledger-reason: (\w+)/i.exec(String(reply.body)) ?? [];
        return reply.headers['x-ledger-reason'] ?? trailer;
      };
      const frame = framed(Buffer.from([0xff]));
      expect(await bad('application/json', Buffer.from('{'))).to.equal('MALFORMED_JSON');
      expect(await bad('application/grpc-web', frame)).to.equal('INVALID_ARGUMENT');
      expect(await bad('application/grpc', frame)).to.equal('INVALID_ARGUMENT');
      expect(await bad('application/json', Buffer.from('{'))).to.equal('RATE_LIMITED');
      expect(await bad('application/grpc', frame)).to.equal('RATE_LIMITED');
    } finally {
      mine.close();
      await own.close();
    }
  });

  it('what follows the message of a stream is not kept', async () => {
    const stream = raw.session.request({
      ':method': 'POST',
      ':path': WATCH,
      'content-type': 'application/connect+json',
      authorization: `Bearer ${token}`,
    });
    let written = false;
    stream.on('data', () => undefined).on('error', () => undefined);
    stream.write(framed(Buffer.from('{}')));
    stream.write(Buffer.alloc(8 * KIB * KIB), () => (written = true));
    await eventually('the service has taken it all', () => written);
    expect([seen.now, stream.closed]).to.deep.equal([0, false]);
    stream.close();
  });
});
