import { expect } from 'chai';
import type { KafkaConnection } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { readLastRecords } from '../../../src/adapters/kafka/last-records.ts';

/** Two brokers that lead a partition each; `busy` answers come first. */
const connectionOf = (
  busy: readonly Error[],
  /** First offsets of the partitions, and what a partition refuses. */
  {
    lows = ['0', '0', '0'],
    refused = new Map(),
  }: { readonly lows?: readonly string[]; readonly refused?: ReadonlyMap<string, Error> } = {},
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
      return topics.map(({ topic, fromBeginning }) => ({
        topic,
        partitions: (fromBeginning ? lows : ['5', '9007199254740993', '0']).map((offset, partition) => ({
          partition,
          offset,
        })),
      }));
    },
    findBroker: async ({ nodeId }) => ({
      versions: null,
      connectionPool: { send: () => expect.fail('nothing but a fetch is asked for') },
      fetch: async ({ topics }) => {
        for (const { topic, partitions } of topics)
          for (const { partition } of partitions) {
            const error = refused.get(`${topic} ${partition}`);
            if (error !== undefined) throw error;
          }
        const responses = topics.map(({ topic, partitions }) => ({
          topicName: topic,
          partitions: partitions.map(({ partition, fetchOffset }) => {
            asked.push(`${nodeId} ${partition} ${fetchOffset}`);
            const message = { offset: fetchOffset, value: Buffer.from(fetchOffset), headers: {} };
            return { partition, messages: [message] };
          }),
        }));
        return { responses };
      },
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

  it('are not asked of partitions whose records have all expired', async () => {
    const connection = connectionOf([], { lows: ['5', '9007199254740992', '0'] });
    const records = await readLastRecords(connection, ['t']);
    expect(connection.asked).to.deep.equal(['1 1 9007199254740992']);
    expect(records.get('t')).to.have.length(1);
  });

  it('are those of the others when one expires just then', async () => {
    const lead = { refused: new Map([['t 0', failure('OFFSET_OUT_OF_RANGE')]]) };
    const records = await readLastRecords(connectionOf([], lead), ['t', 'u']);
    expect(records.get('t')?.map(({ partition }) => partition)).to.deep.equal([1]);
    expect(records.get('u')?.map(({ partition }) => partition)).to.deep.equal([0, 1]);
  });

  it('are asked for again while nobody leads a topic that has just been made', async () => {
    const connection = connectionOf([failure('NOT_LEADER_FOR_PARTITION')]);
    expect((await readLastRecords(connection, ['t'])).get('t')).to.have.length(2);
    expect(connection.refreshed()).to.equal(1);
  });

  it('are not told of a topic that there is no right to read, and are of the others', async () => {
    const refusal = failure('TOPIC_AUTHORIZATION_FAILED');
    const refused = new Map([
      ['t 0', refusal],
      ['t 1', refusal],
    ]);
    const records = await readLastRecords(connectionOf([], { refused }), ['t', 'u']);
    expect([...records.keys()]).to.deep.equal(['u']);
    expect(records.get('u')?.map(({ partition }) => partition)).to.deep.equal([0, 1]);
  });

  it('are not asked for again where there is no right to read them', async () => {
    const outcome = await readLastRecords(connectionOf([failure('TOPIC_AUTHORIZATION_FAILED')]), ['t']).catch(
      (error: unknown) => error,
    );
    expect(outcome).to.include({ type: 'TOPIC_AUTHORIZATION_FAILED' });
  });
});
