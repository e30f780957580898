import { expect } from 'chai';
import { connect } from '../../../src/adapters/event-store/eventstoredb/client.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';

const BATCH_APPEND = { path: '/event_store.client.streams.Streams/BatchAppend' };

describe('eventstoredb: finding the leader among several nodes', () => {
  const bench = createBench();
  afterEach(() => bench.clean());

  /** Milliseconds of the slowest of so many connections that one of them asks the silent node first. */
  const slowest = async (options: string): Promise<number> => {
    const silent = await bench.peer();
    silent.faults.add({ on: 'gossip', do: { kind: 'never-answer' } });
    const leader = await bench.peer();
    const nodes = `esdb://127.0.0.1:${silent.port},127.0.0.1:${leader.port}?tls=false${options}`;
    const times = Array.from({ length: 16 }, async (_, n) => {
      const client = connect(nodes, 'test', n);
      const started = performance.now();
      await client.supports(BATCH_APPEND);
      const ms = performance.now() - started;
      await client.dispose();
      return ms;
    });
    return Math.max(...(await Promise.all(times)));
  };

  it('a node that does not answer costs a second', async () => {
    expect(await slowest('')).to.be.within(900, 4_900);
  });

  it('or as long as the connection string says', async () => {
    expect(await slowest('&gossip_timeout=2')).to.be.at.least(1_900);
  });
});
