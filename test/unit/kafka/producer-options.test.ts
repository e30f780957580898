import { expect } from 'chai';
import type { ProducerBatch, ProducerConfig } from 'kafkajs';
import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { CompressionTypes, createPartitioner, Kafka } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { recordingLogger } from '../../support/loggers.ts';

/** What at least once and order per key rest on (OSAC). */
describe('what kafkajs is asked for', () => {
  const published = Kafka.prototype.producer;
  const asked: (ProducerConfig | undefined)[] = [];
  const sent: ProducerBatch[] = [];
  beforeEach(() => {
    asked.length = 0;
    sent.length = 0;
    const producer = {
      connect: () => Promise.resolve(),
      disconnect: () => Promise.resolve(),
      sendBatch: (batch: ProducerBatch) => {
        sent.push(batch);
        return Promise.resolve([]);
      },
    };
    Kafka.prototype.producer = (options) => {
      asked.push(options);
      return producer as unknown as ReturnType<typeof published>;
    };
  });
  afterEach(() => {
    Kafka.prototype.producer = published;
  });

  it('is an idempotent producer with one request at a time, whose sends all replicas have to confirm', async () => {
    const ports = { logger: recordingLogger(), clock: systemClock() };
    const { producers } = createKafkaCluster({ brokers: ['127.0.0.1:1'], clientId: 't' }, ports);
    const producer = await producers.open(new AbortController().signal);
    const record = (topic: string, key: string) => ({
      topic,
      key,
      value: `{"of":"${key}"}`,
      headers: { h: key },
    });
    await producer.send([record('a', '1'), record('b', '2'), record('a', '3')]);
    await producer.close();
    expect(asked).to.deep.equal([
      { idempotent: true, maxInFlightRequests: 1, allowAutoTopicCreation: false, createPartitioner },
    ]);
    const message = (key: string) => ({ key, value: `{"of":"${key}"}`, headers: { h: key } });
    expect(sent).to.deep.equal([
      {
        acks: -1,
        compression: CompressionTypes.None,
        topicMessages: [
          { topic: 'a', messages: [message('1'), message('3')] },
          { topic: 'b', messages: [message('2')] },
        ],
      },
    ]);
  });
});
