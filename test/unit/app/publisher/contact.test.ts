import { expect } from 'chai';
import { createMemoryKafka } from '../../../../src/adapters/kafka/memory/memory-kafka.ts';
import { createContact } from '../../../../src/app/publisher/contact.ts';

describe('contact with the brokers', () => {
  const signal = new AbortController().signal;
  it('keeps since when credentials are refused, over every further try, which the brokers answer', async () => {
    const kafka = createMemoryKafka();
    let second = 0;
    const now = (): string => new Date(Date.UTC(2026, 10, 21, 12, 0, second)).toISOString();
    const { cluster, status } = createContact(kafka, { clock: { now } });
    kafka.faults.wrongPassword(true);
    for (second = 1; second <= 3; second += 1)
      await cluster.admin.describe([], signal).catch(() => undefined);
    expect(status()).to.deep.equal({
      lastAnswerAt: '2026-11-21T12:00:03.000Z',
      trouble: { message: 'the brokers refuse the password', since: '2026-11-21T12:00:01.000Z' },
    });
    kafka.faults.wrongPassword(false);
    await cluster.admin.describe([], signal);
    expect(status()).to.deep.equal({ lastAnswerAt: '2026-11-21T12:00:04.000Z', trouble: undefined });
  });
});
