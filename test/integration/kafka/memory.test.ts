import { expect } from 'chai';
import { createMemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { describeKafkaContract } from './contract.ts';

describeKafkaContract('in memory', async () => {
  const kafka = createMemoryKafka();
  const unreachable = createMemoryKafka();
  unreachable.faults.down(true);
  const withWrongPassword = createMemoryKafka();
  withWrongPassword.faults.wrongPassword(true);
  return {
    cluster: kafka,
    read: async (topic) =>
      kafka.records(topic).map(({ key, value, headers, partition }) => ({
        key,
        value,
        headers,
        partition,
      })),
    deleteTopic: async (topic) => kafka.deleteTopic(topic),
    expire: async (topic) => kafka.expire(topic),
    unreachable,
    withWrongPassword,
    dispose: async () => undefined,
  };
});

describe('brokers in memory', () => {
  const signal = new AbortController().signal;
  const record = (value: string) => ({ topic: 't', key: 'k', value, headers: {} });
  const values = (kafka: ReturnType<typeof createMemoryKafka>) =>
    kafka.records('t').map(({ value }) => value);
  const started = () => {
    const kafka = createMemoryKafka();
    kafka.createTopic({ name: 't', cleanup: 'delete', partitions: 1, retentionMs: -1 });
    return kafka;
  };

  it('lose another batch of the same size after a lost answer, as real ones do', async () => {
    const kafka = started();
    const producer = await kafka.producers.open(signal);
    await producer.send([record('A1')]);
    kafka.faults.loseAnswers('t', 1);
    await producer.send([record('A2')]).catch(() => undefined);
    await producer.send([record('B')]);
    await producer.send([record('C')]);
    expect(values(kafka)).to.deep.equal(['A1', 'A2', 'C']);
  });

  it('lose nothing when a new producer goes on', async () => {
    const kafka = started();
    const producer = await kafka.producers.open(signal);
    kafka.faults.loseAnswers('t', 1);
    await producer.send([record('A')]).catch(() => undefined);
    await producer.close();
    await (await kafka.producers.open(signal)).send([record('B')]);
    expect(values(kafka)).to.deep.equal(['A', 'B']);
  });
});
