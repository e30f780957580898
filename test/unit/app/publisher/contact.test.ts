import { expect } from 'chai';
import { createMemoryKafka } from '../../../../src/adapters/kafka/memory/memory-kafka.ts';
import { createContact } from '../../../../src/app/publisher/contact.ts';
import type { KafkaProducers, OnTrouble } from '../../../../src/app/publisher/ports.ts';

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
      trouble: {
        message: 'the brokers refuse the password',
        since: '2026-11-21T12:00:01.000Z',
        reason: 'unauthorized',
      },
    });
    kafka.faults.wrongPassword(false);
    await cluster.admin.describe([], signal);
    expect(status()).to.deep.equal({ lastAnswerAt: '2026-11-21T12:00:04.000Z', trouble: undefined });
  });

  it('takes a refusal on the way for an answer, and not for brokers that are away', async () => {
    let tell: OnTrouble = () => undefined;
    const kafka = createMemoryKafka();
    const producers: KafkaProducers = {
      open: (ends, mayWrite, onTrouble = () => undefined) => {
        tell = onTrouble;
        return kafka.producers.open(ends, mayWrite);
      },
    };
    const heard: (string | undefined)[] = [];
    const { cluster, status } = createContact(
      { ...kafka, producers },
      {
        clock: { now: () => '2026-11-21T12:00:00.000Z' },
        onTrouble: (trouble) => heard.push(trouble?.message),
      },
    );
    const problems: string[] = [];
    await cluster.producers.open(signal, undefined, (problem) => problems.push(problem));
    tell('This server is not the leader', { broker: 'b:1', isAnswer: true });
    expect(status().trouble).to.equal(undefined);
    tell('b:1 ended the connection', { broker: 'b:1' });
    expect(status().trouble).to.include({ message: 'b:1 ended the connection', reason: 'unreachable' });
    await cluster.admin.describe([], signal);
    expect(heard).to.deep.equal(['b:1 ended the connection', undefined]);
    expect(problems).to.have.length(2);
  });
});
