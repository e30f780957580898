import { expect } from 'chai';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { accounts } from '../../support/commands/fake-account.ts';
import { createTestRunner, fakeContext } from '../../support/commands/fake-context.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';

const LAG_MS = 60;

/** A store whose writes count at once, while its reads show them later: so does a leader that was just deposed. */
const behind = (store: EventStore): EventStore => {
  async function* readStream(...args: Parameters<EventStore['readStream']>) {
    for await (const event of store.readStream(...args))
      if (Date.now() - Date.parse(event.recordedAt) >= LAG_MS) yield event;
  }
  return {
    ...store,
    readStream,
    currentRevision: async (stream) => {
      let last: number | 'no_stream' = 'no_stream';
      for await (const { revision } of readStream(stream)) last = revision;
      return last;
    },
  };
};

describe('commands of two instances whose reads are behind their writes', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  it('one creation is accepted, and the other one never goes behind what it has not seen', async () => {
    const peer = await bench.peer();
    const [one, two] = [
      createTestRunner(behind(await bench.store(peer))).runner,
      createTestRunner(behind(await bench.store(peer))).runner,
    ];
    const outcomes = await Promise.all([
      one.execute(accounts, 'a', { type: 'OpenAccount', owner: 'ann' }, fakeContext('c1')),
      two.execute(accounts, 'a', { type: 'OpenAccount', owner: 'bob' }, fakeContext('c2')),
    ]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).to.deep.equal(['accepted', 'rejected']);
    expect(peer.log.all.filter(({ stream }) => stream === 'account-a')).to.have.length(1);
  });
});
