import { expect } from 'chai';
import fc from 'fast-check';
import { Duplex } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { readMessages, type ReaderOptions } from '../../../src/grpc/frames.ts';
import { createBodyBudget, SMALL_BODY_BYTES } from '../../../src/http/body.ts';
import { unauthenticated } from '../../../src/http/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { framed } from '../../support/grpc/raw-client.ts';
import { checkAsync } from '../../support/property.ts';

const MIB = 1_048_576;
const BUDGET = 8 * MIB;

/** A reader on a stream of its own, and how much of its budget is taken. */
const reading = (options: Partial<ReaderOptions> = {}) => {
  const all = createBodyBudget(BUDGET);
  let taken = 0;
  const budget: typeof all = {
    take: (bytes) => {
      if (!all.take(bytes)) return false;
      taken += bytes;
      return true;
    },
    give: (bytes) => {
      all.give(bytes);
      taken -= bytes;
    },
  };
  // As a stream of HTTP/2, it stays open for the answer when the request has ended.
  const stream = new Duplex({ read: () => undefined, write: () => undefined });
  const end = (bytes: Uint8Array): void => {
    stream.push(bytes);
    stream.push(null);
  };
  const reader = readMessages(stream, {
    budget,
    onBytes: () => undefined,
    encoding: 'gzip',
    single: true,
    assertKnown: () => Promise.resolve(),
    ...options,
  });
  return { stream, end, reader, taken: () => taken };
};
const zipped = (message: Uint8Array): Buffer => framed(gzipSync(message), { flags: 1 });
const kept = (message: Buffer): Promise<Buffer> => Promise.resolve(message);
const reasonOf = async (result: Promise<unknown>): Promise<unknown> => {
  const error: unknown = await result.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  return (error as { error?: string } | undefined)?.error;
};

describe('messages of a request', () => {
  it('given a request of one message, when more comes behind it, then none of that is kept', async () => {
    const { stream, reader, taken } = reading();
    stream.push(framed(Buffer.from('one')));
    expect(String(await reader.next(kept))).to.equal('one');
    for (let i = 0; i < 40; i += 1) stream.push(Buffer.alloc(100_000));
    await eventually('all has come', () => stream.readableLength === 0);
    expect(taken()).to.equal(0);
  });

  it('given a request of many messages, when they come, then each is handed over', async () => {
    const { end, reader } = reading({ single: false });
    end(Buffer.concat([framed(Buffer.from('one')), zipped(Buffer.from('two'))]));
    const got = [];
    for (let i = 0; i < 3; i += 1) got.push((await reader.next(kept))?.toString());
    expect(got).to.deep.equal(['one', 'two', undefined]);
  });

  it('given a stranger, when a small message becomes a large one, then it is refused', async () => {
    const assertKnown = () => Promise.reject(unauthenticated('who?', true));
    const atLimit = reading({ assertKnown });
    atLimit.end(zipped(Buffer.alloc(SMALL_BODY_BYTES)));
    expect((await atLimit.reader.next(kept))?.length).to.equal(SMALL_BODY_BYTES);
    const above = reading({ assertKnown });
    above.end(zipped(Buffer.alloc(SMALL_BODY_BYTES + 1)));
    expect(await reasonOf(above.reader.next(kept))).to.equal('UNAUTHENTICATED');
    expect(above.taken()).to.equal(0);
  });

  it('given a message out of its compression, when it is used, then it counts until then', async () => {
    const { end, reader, taken } = reading();
    end(zipped(Buffer.alloc(3 * MIB)));
    const during = await reader.next(() => Promise.resolve(taken()));
    expect(during).to.be.at.least(3 * MIB);
    expect(taken()).to.equal(0);
  });

  it('given no room, when a message is taken out of its compression, then it is refused', async () => {
    const budget = createBodyBudget(MIB);
    const { end, reader } = reading({ budget });
    end(zipped(Buffer.alloc(3 * MIB)));
    expect(await reasonOf(reader.next(kept))).to.equal('UNAVAILABLE');
    expect(budget.take(MIB)).to.equal(true);
  });

  it('given a whole message, when its caller goes away before it is looked at, then that is said', async () => {
    const { end, stream, reader, taken } = reading();
    end(framed(Buffer.from('one')));
    await new Promise((resolve) => stream.once('end', resolve));
    const read = reasonOf(reader.next(kept));
    reader.stop();
    expect(await read).to.equal('CANCELLED');
    expect(taken()).to.equal(0);
  });

  it('whatever comes, the budget is whole in the end', async () => {
    const message = fc.record({
      bytes: fc.nat({ max: 200_000 }),
      flags: fc.constantFrom(0, 1, 2),
      zip: fc.boolean(),
      missing: fc.constantFrom(0, 0, 0, 7),
    });
    const part = fc.integer({ min: 1, max: 90_000 });
    await checkAsync(
      fc.asyncProperty(
        fc.array(message, { maxLength: 4 }),
        part,
        fc.boolean(),
        fc.boolean(),
        async (messages, size, single, known) => {
          const assertKnown = () =>
            known ? Promise.resolve() : Promise.reject(unauthenticated('who?', true));
          const { stream, reader, taken } = reading({ single, assertKnown });
          const all = Buffer.concat(
            messages.map(({ bytes, flags, zip, missing }) => {
              const plain = Buffer.alloc(bytes);
              const sent = zip ? gzipSync(plain) : plain;
              return framed(sent, { flags, length: sent.length + missing });
            }),
          );
          for (let at = 0; at < all.length; at += size) stream.push(all.subarray(at, at + size));
          stream.push(null);
          const rest = async (): Promise<void> => {
            while ((await reader.next(kept)) !== undefined);
          };
          await rest().catch(() => undefined);
          reader.stop();
          await new Promise((resolve) => stream.once('close', resolve).destroy());
          expect(taken()).to.equal(0);
        },
      ),
      { numRuns: 60 },
    );
  });
});
