import { expect } from 'chai';
import { Readable } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { createBodyBudget, readBody } from '../../../src/http/body.ts';
import { ApiError } from '../../../src/http/errors.ts';

/** A request as far as its body is concerned. */
const request = (parts: readonly string[], headers: Record<string, string> = {}): IncomingMessage =>
  Object.assign(Readable.from(parts.map((part) => Buffer.from(part))), {
    headers,
  }) as unknown as IncomingMessage;

const refusal = (work: Promise<unknown>): Promise<ApiError> =>
  work.then(
    () => expect.fail('it was accepted'),
    (error: unknown) => {
      if (error instanceof ApiError) return error;
      throw error;
    },
  );

describe('reading a body', () => {
  it('gives its bytes in their order, however they come', async () => {
    const text = 'abc'.repeat(5_000);
    for (const parts of [[text], Array.from(text), [text.slice(0, 4_097), text.slice(4_097)], []]) {
      const body = await readBody(request(parts));
      expect(body.toString()).to.equal(parts.join(''));
    }
  });

  it('an announced length that is wrong does no harm', async () => {
    for (const length of ['1', '900000', 'nonsense'])
      expect((await readBody(request(['hello'], { 'content-length': length }))).toString()).to.equal('hello');
  });

  it('more than the limit is 413, in one part or in many', async () => {
    for (const parts of [['x'.repeat(11)], Array.from({ length: 11 }, () => 'x')])
      expect((await refusal(readBody(request(parts), { limit: 10 }))).status).to.equal(413);
    expect((await readBody(request(['x'.repeat(10)]), { limit: 10 })).length).to.equal(10);
  });

  describe('within a budget', () => {
    it('what one body took is there for the next, whether it was read or refused', async () => {
      const budget = createBodyBudget(8_192);
      for (let i = 0; i < 20; i += 1) {
        expect((await readBody(request(['x'.repeat(5_000)]), { budget })).length).to.equal(5_000);
        expect((await refusal(readBody(request(['x'.repeat(11)]), { budget, limit: 10 }))).status).to.equal(
          413,
        );
        const tooMuch = request(['x'.repeat(9_000), 'more', 'and more']);
        const error = await refusal(readBody(tooMuch, { budget }));
        expect([error.status, error.reason]).to.deep.equal([503, 'TOO_MANY_BODIES']);
      }
      expect(budget.take(8_192)).to.equal(true);
    });

    it('what counts is what arrives, not what is announced', async () => {
      const budget = createBodyBudget(5_000);
      const boastful = request(['{}'], { 'content-length': '1000000' });
      expect((await readBody(boastful, { budget })).toString()).to.equal('{}');
      expect((await refusal(readBody(request(['x'.repeat(5_001)]), { budget }))).status).to.equal(503);
    });
  });
});
