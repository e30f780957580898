import { expect } from 'chai';
import type { KafkaConnection } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { readLastRecords } from '../../../src/adapters/kafka/last-records.ts';

/** Two brokers that lead a partition each; `busy` answers come first. */
const connectionOf = (
  busy: readonly Error[],
): KafkaConnection & { readonly asked: string[]; readonly refreshed: () => number } => {
  const waiting = [...busy];
  const asked: string[] = [];
  let refreshes = 0;
  return {
    asked,
    refreshed: () => refreshes,
    connect: async () => undefined,
    disconnect: async () => undefined,
    refreshMetadata: async () => {
      refreshes += 1;
    },
    addMultipleTargetTopics: async () => undefined,
    findTopicPartitionMetadata: () => [{ partitionId: 0 }, { partitionId: 1 }, { partitionId: 2 }],
    findLeaderForPartitions: (_topic, [partition = 0]) => ({ [partition % 2]: [partition] }),
    fetchTopicsOffset: async (topics) => {
      const error = waiting.shift();
      if (error !== undefined) throw error;
      return topics.map(({ topic }) => ({
        topic,
        partitions: [
          { partition: 0, offset: '5' },
          { partition: 1, offset: '9007199254740993' },
          { partition: 2, offset: '0' },
        ],
      }));
    },
    findBroker: async ({ nodeId }) => ({
      fetch: async ({ topics }) => ({
        responses: topics.map(({ topic, partitions }) => ({
          topicName: topic,
          partitions: partitions.map(({ partition, fetchOffset }) => {
            asked.push(`${nodeId} ${partition} ${fetchOffset}`);
            return {
              partition,
              messages: [{ offset: fetchOffset, value: Buffer.from(fetchOffset), headers: {} }],
            };
          }),
        })),
      }),
    }),
  };
};
const failure = (type: string): Error => Object.assign(new Error(type), { type });

describe('the newest records of topics', () => {
  it('are asked of the brokers that lead them, and not of partitions that are empty', async () => {
    const connection = connectionOf([]);
    const records = await readLastRecords(connection, ['t']);
    expect(connection.asked).to.deep.equal(['0 0 4', '1 1 9007199254740992']);
    expect(records.get('t')?.map(({ partition, value }) => [partition, value])).to.deep.equal([
      [0, '4'],
      [1, '9007199254740992'],
    ]);
  });

  it('are asked for again while nobody leads a topic that has just been made', async () => {
    const connection = connectionOf([failure('NOT_LEADER_FOR_PARTITION')]);
    expect((await readLastRecords(connection, ['t'])).get('t')).to.have.length(2);
    expect(connection.refreshed()).to.equal(1);
  });

  it('are not asked for again where there is no right to read them', async () => {
    const outcome = await readLastRecords(connectionOf([failure('TOPIC_AUTHORIZATION_FAILED')]), ['t']).catch(
      (error: unknown) => error,
    );
    expect(outcome).to.include({ type: 'TOPIC_AUTHORIZATION_FAILED' });
  });
});
