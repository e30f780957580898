import { expect } from 'chai';
import type { Admin, ITopicMetadata } from 'kafkajs';
import { offsetsSoon, whenLed } from '../../../src/adapters/kafka/partition-leaders.ts';
import { KafkaFault } from '../../../src/app/publisher/ports.ts';

const protocolError = (type: string): Error => Object.assign(new Error(type), { type });
const topic = (name: string, ...leaders: readonly number[]): ITopicMetadata => ({
  name,
  partitions: leaders.map((leader, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader,
    replicas: [1],
    isr: [1],
  })),
});

/** An admin whose looks end as told, one after the other; the last one for ever. */
const looks = (...ends: readonly (Error | readonly ITopicMetadata[])[]) => {
  let looked = 0;
  const admin: Pick<Admin, 'fetchTopicMetadata'> = {
    fetchTopicMetadata: async () => {
      const end = ends[Math.min(looked, ends.length - 1)] ?? [];
      looked += 1;
      if (end instanceof Error) throw end;
      return { topics: [...end] };
    },
  };
  return { admin, looked: () => looked };
};

describe('topics that were just made', () => {
  const settings = { withinMs: 5_000, lookMs: 1 };

  it('are waited for where the broker has not heard of them, or nobody leads them yet', async () => {
    const { admin, looked } = looks(
      protocolError('UNKNOWN_TOPIC_OR_PARTITION'),
      protocolError('LEADER_NOT_AVAILABLE'),
      [topic('a', 1, 1)],
      [topic('a', 1, -1), topic('b', 1)],
      [topic('a', 1, 1), topic('b', 1)],
    );
    await whenLed(admin, ['a', 'b'], settings);
    expect(looked()).to.equal(5);
  });

  it('are not waited for where something else is wrong', async () => {
    for (const error of [protocolError('TOPIC_AUTHORIZATION_FAILED'), new Error('Connection timeout')]) {
      const { admin, looked } = looks(error);
      expect(await whenLed(admin, ['a'], settings).catch((reason: unknown) => reason)).to.equal(error);
      expect(looked()).to.equal(1);
    }
  });

  it('are waited for so long and no longer', async () => {
    const { admin } = looks(protocolError('UNKNOWN_TOPIC_OR_PARTITION'));
    const fault: unknown = await whenLed(admin, ['a', 'b'], { withinMs: 20, lookMs: 1 }).catch(
      (reason: unknown) => reason,
    );
    expect(fault).to.be.instanceOf(KafkaFault).and.to.include({ reason: 'unreachable' });
    expect((fault as Error).message).to.include('a, b');
  });
});

describe('where the partitions of a topic end that was just made', () => {
  const failure = (retriable: boolean): Error => Object.assign(new Error('not the leader'), { retriable });
  const asked = (...ends: readonly (Error | undefined)[]) => {
    let looks = 0;
    const fetchTopicOffsets: Admin['fetchTopicOffsets'] = async () => {
      const end = ends[looks];
      looks += 1;
      if (end !== undefined) throw end;
      return [{ partition: 0, offset: '3', low: '1', high: '3' }];
    };
    return { admin: { fetchTopicOffsets }, looks: () => looks };
  };

  it('is asked again while what keeps it from being told passes', async () => {
    const { admin, looks } = asked(failure(true), failure(true));
    expect(await offsetsSoon(admin, 'a', 1)).to.deep.equal([
      { partition: 0, offset: '3', low: '1', high: '3' },
    ]);
    expect(looks()).to.equal(3);
  });

  it('is not asked again where that does not pass, nor for ever', async () => {
    const refused = asked(failure(false));
    expect(await offsetsSoon(refused.admin, 'a', 1).catch(String)).to.match(/not the leader/);
    expect(refused.looks()).to.equal(1);
    const never = asked(...Array.from({ length: 100 }, () => failure(true)));
    expect(await offsetsSoon(never.admin, 'a', 0).catch(String)).to.match(/not the leader/);
    expect(never.looks()).to.equal(40);
  });
});
