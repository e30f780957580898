import { createEventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { createFeedLines, type FeedEnd } from '../../../src/adapters/event-store/eventstoredb/feed-line.ts';
import { startPeer } from '../../support/eventstoredb-peer/peer.ts';
import { PLAYED_VERSIONS } from '../../support/eventstoredb-conformance/server.ts';
import type { ServerVersion } from '../../support/eventstoredb-peer/context.ts';
import { subscribeContract } from './contract/subscribe.ts';
import { describeEventStoreContract, type StoreUnderTest } from './contract.ts';
import { eventually } from '../../support/eventually.ts';
import { notRunHere } from '../../support/not-run-here.ts';

/** The port's contract against the protocol peer as each version that it knows; faults that are the same on all, once. */
for (const version of PLAYED_VERSIONS)
  describeEventStoreContract(
    `eventstoredb, against the protocol peer as ${version}`,
    () => onPeer(version),
    version === '24.10'
      ? ['dropConnections', 'unresponsive', 'loseNextAnswer', 'down', 'reopen']
      : ['dropConnections', 'reopen'],
  );

/** What is read by the subscription that the threads of a process share. */
describeEventStoreContract(
  'eventstoredb, by one subscription for a process',
  () => onPeer('24.10', createFeedLines().open(true)),
  ['dropConnections', 'reopen'],
  [subscribeContract],
);

const onPeer = async (version: ServerVersion, feed?: FeedEnd): Promise<StoreUnderTest> => {
  const peer = await startPeer({ version });
  const open = () =>
    createEventStoreDbStore({
      connectionString: peer.connectionString,
      instance: 'contract',
      deadlineMs: 2000,
      resubscribeMs: { first: 5, longest: 100 },
      replacedMs: 200,
      ...(feed && { feed }),
    });
  let store = await open();
  return {
    store,
    dispose: async () => {
      await store.close();
      await peer.stop();
    },
    dropConnections: async () => peer.cutConnections(),
    unresponsive: async () => {
      const lift = peer.faults.add({ on: 'append', do: { kind: 'never-answer' } });
      return async () => lift();
    },
    sent: () => eventually('the append arrived', () => peer.faults.hits() > 0),
    loseNextAnswer: async () => {
      peer.faults.add({ on: 'append', do: { kind: 'lose-answer' }, times: 1 });
    },
    down: async () => {
      await peer.goDown();
      // An append written to a connection that is cut but not yet noticed has an unknown outcome, not this one.
      await eventually('the cut is noticed', () => !store.stats().appendConnected);
      return () => peer.restart();
    },
    reopen: async () => {
      await store.close();
      store = await open();
      return store;
    },
  };
};

/**
 * The same contract against a real server: LEDGER_TEST_EVENTSTOREDB holds its connection string. Streams and types have
 * unique names, so that it can be run again and again on one server.
 */
const real = process.env['LEDGER_TEST_EVENTSTOREDB'];
if (real === undefined || real === '')
  describe('event store contract: eventstoredb, against a real server', () => {
    it('is not run here', function () {
      notRunHere(this, 'eventstoredb', 'LEDGER_TEST_EVENTSTOREDB holds no connection string');
    });
  });
else
  describeEventStoreContract('eventstoredb, against a real server', async () => {
    const open = () => createEventStoreDbStore({ connectionString: real, instance: 'contract' });
    let store = await open();
    return {
      store,
      dispose: () => store.close(),
      reopen: async () => {
        await store.close();
        store = await open();
        return store;
      },
    };
  }, ['reopen']);
