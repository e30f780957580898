import { expect } from 'chai';
import type { KafkaConnection, ProtocolRequest } from '../../../src/adapters/kafka/kafkajs-library.ts';
import { readTopicEnds } from '../../../src/adapters/kafka/topic-ends.ts';
import { bodyOf, idsOf } from '../../../src/adapters/kafka/topic-ids.ts';

/** Bytes of the protocol (kafka.apache.org/protocol, Metadata version 12), put together by hand. */
const hex = (...parts: readonly string[]): Buffer => Buffer.from(parts.join('').replaceAll(' ', ''), 'hex');
const text = (value: string): string =>
  (Buffer.byteLength(value) + 1).toString(16).padStart(2, '0') + Buffer.from(value).toString('hex');
const NO_ID = '00'.repeat(16);
const ID = '0123456789abcdef0123456789abcdef';
const BROKERS = `02 00000001 ${text('localhost')} 00002384 00 00`;
const PARTITION = '0000 00000000 00000001 00000007 02 00000001 02 00000001 01';
/** A field that this version does not have: tag 1, three bytes. */
const TAGS = '01 01 03 aabbcc';
const topicOf = (error: string, name: string, id: string, tags = '00'): string =>
  `${error} ${text(name)} ${id} 00 02 ${PARTITION} ${tags} 80000000 ${tags}`;
const answerOf = (topics: readonly string[], brokers = BROKERS, tags = '00'): Buffer =>
  hex(tags, '00000000', brokers, text('cluster'), '00000001', `0${topics.length + 1}`, ...topics, tags);

describe('ids of topics', () => {
  it('are asked for by name, without making what is not there', () => {
    expect(bodyOf(['a', 'ü']).toString('hex')).to.equal(
      hex('00', '03', NO_ID, text('a'), '00', NO_ID, text('ü'), '00', '00', '00', '00').toString('hex'),
    );
    const long = 'n'.repeat(249);
    expect(bodyOf([long]).subarray(18, 20).toString('hex'), '250 in two bytes').to.equal('fa01');
  });

  it('are read past everything else that the answer says, also past what newer brokers add', () => {
    const id = Buffer.from(ID, 'hex').toString('base64url');
    const others = `02 00000001 ${text('localhost')} 00002384 00 ${TAGS}`;
    const answer = answerOf([topicOf('0000', 'a', ID, TAGS), topicOf('0000', 'b', ID)], others, TAGS);
    expect(idsOf(answer)).to.deep.equal([
      { name: 'a', id },
      { name: 'b', id },
    ]);
  });

  it('are none of topics that are not there, and of brokers that give none', () => {
    expect(idsOf(answerOf([topicOf('0003', 'a', ID), topicOf('0000', 'b', NO_ID)]))).to.deep.equal([
      { name: 'a', id: undefined },
      { name: 'b', id: undefined },
    ]);
  });
});

describe('where topics end', () => {
  const asked: string[] = [];
  /** `a` is led by 1, `b` by 2, which is of the given version. */
  const connectionWith = (version: number | undefined, troubles: Error[] = []): KafkaConnection => ({
    connect: async () => undefined,
    disconnect: async () => undefined,
    refreshMetadata: async () => undefined,
    addMultipleTargetTopics: async () => {
      const trouble = troubles.shift();
      if (trouble !== undefined) throw trouble;
    },
    findTopicPartitionMetadata: () => [{ partitionId: 0 }],
    findLeaderForPartitions: (topic) => ({ [topic === 'a' ? 1 : 2]: [0] }),
    fetchTopicsOffset: async (topics) =>
      topics
        .toReversed()
        .map(({ topic }) => ({ topic, partitions: [{ partition: 0, offset: topic === 'a' ? '7' : '0' }] })),
    findBroker: async ({ nodeId }) => ({
      fetch: () => expect.fail('nothing is read'),
      versions:
        nodeId === '1'
          ? { 3: { maxVersion: 13 } }
          : version === undefined
            ? null
            : { 3: { maxVersion: version } },
      connectionPool: {
        send: async <Response>({ request, response }: ProtocolRequest<Response>) => {
          asked.push(`${nodeId} ${request.apiKey} ${request.apiVersion}`);
          return response.parse(
            await response.decode(answerOf([topicOf('0000', nodeId === '1' ? 'a' : 'b', ID)])),
          );
        },
      },
    }),
  });
  const topicId = Buffer.from(ID, 'hex').toString('base64url');
  beforeEach(() => {
    asked.length = 0;
  });

  it('is told in the order of the question, with the ids that those who lead them know', async () => {
    const ends = await readTopicEnds(connectionWith(12), ['a', 'b']);
    expect([...ends]).to.deep.equal([
      ['a', { topicId, offsets: new Map([[0, 7n]]) }],
      ['b', { topicId, offsets: new Map([[0, 0n]]) }],
    ]);
    expect(asked).to.deep.equal(['1 3 12', '2 3 12']);
  });

  it('brokers that know no ids are not asked for them', async () => {
    for (const version of [11, undefined]) {
      asked.length = 0;
      const ends = await readTopicEnds(connectionWith(version), ['a', 'b']);
      expect([...ends.values()].map((each) => each.topicId)).to.deep.equal([topicId, undefined]);
      expect(asked).to.deep.equal(['1 3 12']);
    }
  });

  it('is asked again of a topic that the broker has not heard of yet, and not for ever', async () => {
    const unheard = () => Object.assign(new Error('not there'), { type: 'UNKNOWN_TOPIC_OR_PARTITION' });
    const ends = await readTopicEnds(connectionWith(12, [unheard(), unheard()]), ['a']);
    expect(ends.get('a')?.offsets.get(0)).to.equal(7n);
    const missing = connectionWith(12, Array.from({ length: 9 }, unheard));
    expect(await readTopicEnds(missing, ['a']).catch(String)).to.equal('Error: not there');
    const other = connectionWith(12, [Object.assign(new Error('refused'), { type: 'OTHER' })]);
    expect(await readTopicEnds(other, ['a']).catch(String)).to.equal('Error: refused');
  });
});
