import { START } from '@eventstore/db-client';
import { connect, type LedgerClient } from '../../../src/adapters/event-store/eventstoredb/client.ts';
import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';

describe('EventStoreDB adapter: a subscriber that does not read for a moment', () => {
  const bench = createBench();
  let client: LedgerClient | undefined;
  afterEach(async () => {
    await client?.dispose();
    await bench.clean();
  });

  it('is sent two megabytes meanwhile, so that a server need not drop it', async () => {
    const peer = await bench.peer();
    client = connect(peer.connectionString, 'slow', 0);
    const subscription = client.api.subscribeToAll({ fromPosition: START });
    subscription.on('error', () => undefined);
    subscription.pause();
    await eventually('subscribed', () => peer.stats.calls.subscribe === 1);
    const before = peer.stats.eventsSent;
    const data = Buffer.from(JSON.stringify({ text: 'x'.repeat(20_000) }));
    for (let n = 0; n < 100; n += 1) peer.log.inject('thing-a', { type: 'Thing', data });
    await eventually('all of it is sent', () => peer.stats.eventsSent >= before + 100);
  });
});
