import { expect } from 'chai';
import type { KafkaConnection } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { readTopicEnds } from '../../../src/adapters/kafka/topic-ends.ts';

describe('where topics end', () => {
  const connectionWith = (troubles: Error[] = []): KafkaConnection => ({
    connect: async () => undefined,
    disconnect: async () => undefined,
    refreshMetadata: async () => undefined,
    addMultipleTargetTopics: async () => {
      const trouble = troubles.shift();
      if (trouble !== undefined) throw trouble;
    },
    findTopicPartitionMetadata: () => [{ partitionId: 0 }],
    findLeaderForPartitions: () => ({ 1: [0] }),
    fetchTopicsOffset: async (topics) =>
      topics
        .toReversed()
        .map(({ topic }) => ({ topic, partitions: [{ partition: 0, offset: topic === 'a' ? '7' : '0' }] })),
    findBroker: () => expect.fail('no broker is asked by itself'),
  });

  it('is told in the order of the question', async () => {
    const ends = await readTopicEnds(connectionWith(), ['a', 'b']);
    expect([...ends]).to.deep.equal([
      ['a', new Map([[0, 7n]])],
      ['b', new Map([[0, 0n]])],
    ]);
  });

  it('is asked again of a topic that the broker has not heard of yet, and not for ever', async () => {
    const unheard = () => Object.assign(new Error('not there'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' });
    const ends = await readTopicEnds(connectionWith([unheard(), unheard()]), ['a']);
    expect(ends.get('a')?.get(0)).to.equal(7n);
    const missing = connectionWith(Array.from({ length: 9 }, unheard));
    expect(await readTopicEnds(missing, ['a']).catch(String)).to.equal('Error: not there');
    const other = connectionWith([Object.assign(new Error('refused'), { type: 'OTHER' })]);
    expect(await readTopicEnds(other, ['a']).catch(String)).to.equal('Error: refused');
  });
});
