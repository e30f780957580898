import { expect } from 'chai';
import fc from 'fast-check';
import { gzipSync } from 'node:zlib';
import { SMALL_BODY_BYTES } from '../../../src/http/body.ts';
import { eventually } from '../../support/eventually.ts';
import { Code } from '../../support/grpc/caller.ts';
import { framed, rawGrpc } from '../../support/grpc/raw-client.ts';
import { watchedBudget } from '../../support/grpc/watched-budget.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';

const LIST = '/osac.public.v1.Clusters/List';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const MIB = 1_048_576;
const LIMIT = 8 * MIB;
const STRANGERS = 300;

describe('what requests over gRPC may take before they are carried out', function () {
  this.timeout(60_000);
  const { budget, seen } = watchedBudget(LIMIT);
  let service: TestService;
  let token: string;
  let raw: ReturnType<typeof rawGrpc>;
  before(async () => {
    service = await startTestService({ grpc: { arrivalMs: 1_000, bodies: budget } });
    token = await service.token({ user: 'root', admin: true });
  });
  beforeEach(() => {
    seen.most = 0;
    raw = rawGrpc(service.grpcAddress);
  });
  afterEach(() => raw.close());
  after(() => service.close());

  const zipped = (bytes: number): Buffer => framed(gzipSync(Buffer.alloc(bytes)), { flags: 1 });
  const headersOf = (known: boolean) => ({
    'grpc-encoding': 'gzip',
    ...(known ? { authorization: `Bearer ${token}` } : {}),
  });
  const codeOf = async (body: Uint8Array, known: boolean): Promise<number> => {
    const reply = await raw.call({ path: LIST, body, headers: headersOf(known) });
    return Number(reply.headers['grpc-status']);
  };
  const isWhole = (): Promise<void> => eventually('all is given back', () => seen.now === 0);

  it('strangers who send without an end stay within the budget, and are answered', async () => {
    const begun = framed(Buffer.alloc(60_000), { length: MIB });
    const replies = await Promise.all(
      Array.from({ length: STRANGERS }, () => raw.call({ path: LIST, body: begun, open: true })),
    );
    const codes = new Set(replies.map(({ headers }) => Number(headers['grpc-status'])));
    expect([...codes].toSorted((a, b) => a - b)).to.deep.equal([Code.DEADLINE_EXCEEDED, Code.UNAVAILABLE]);
    expect(seen.most).to.be.within(begun.length, LIMIT);
    await isWhole();
  });

  it('a small message of a stranger is refused once it becomes a large one', async () => {
    // It is no such message, as is seen only of one that was unpacked.
    expect(await codeOf(zipped(SMALL_BODY_BYTES), false)).to.equal(Code.INVALID_ARGUMENT);
    expect(await codeOf(zipped(SMALL_BODY_BYTES + 1), false)).to.equal(Code.UNAUTHENTICATED);
    await isWhole();
  });

  it('a message out of its compression counts, and is refused where there is no room', async () => {
    expect(await codeOf(zipped(3 * MIB), true)).to.equal(Code.INVALID_ARGUMENT);
    expect(seen.most).to.be.at.least(3 * MIB);
    await isWhole();
    const taken = LIMIT - MIB;
    expect(budget.take(taken)).to.equal(true);
    expect(await codeOf(zipped(3 * MIB), true).finally(() => budget.give(taken))).to.equal(Code.UNAVAILABLE);
    await isWhole();
  });

  it('of one message, what comes behind it is not kept', async () => {
    const stream = raw.session.request({
      ':method': 'POST',
      ':path': LIST,
      'content-type': 'application/grpc',
      ...headersOf(true),
    });
    // Node's client does not show trailers that a reset follows.
    const answer = new Promise((resolve) => stream.once('data', resolve));
    stream.on('error', () => undefined);
    stream.write(Buffer.concat([framed(Buffer.alloc(0)), Buffer.alloc(2 * MIB)]));
    expect(await answer).to.deep.equal(framed(Buffer.alloc(0)));
    stream.close();
    expect(seen.most).to.be.below(MIB);
    await isWhole();
  });

  it('whatever comes, the budget is whole in the end', async () => {
    const message = fc.record({
      bytes: fc.nat({ max: 200_000 }),
      flags: fc.constantFrom(0, 1, 2),
      zip: fc.boolean(),
      missing: fc.constantFrom(0, 0, 0, 7),
    });
    const part = fc.integer({ min: 100, max: 90_000 });
    const path = fc.constantFrom(LIST, REFLECTION);
    await checkAsync(
      fc.asyncProperty(
        fc.array(message, { maxLength: 4 }),
        part,
        path,
        fc.boolean(),
        async (messages, size, path, known) => {
          const all = Buffer.concat(
            messages.map(({ bytes, flags, zip, missing }) => {
              const plain = Buffer.alloc(bytes);
              const sent = zip ? gzipSync(plain) : plain;
              return framed(sent, { flags, length: sent.length + missing });
            }),
          );
          const stream = raw.session.request({
            ':method': 'POST',
            ':path': path,
            'content-type': 'application/grpc',
            ...headersOf(known),
          });
          stream.on('error', () => undefined).resume();
          for (let at = 0; at < all.length; at += size) stream.write(all.subarray(at, at + size));
          stream.end();
          await new Promise((resolve) => stream.once('close', resolve));
          await isWhole();
        },
      ),
      { numRuns: 60 },
    );
  });
});
