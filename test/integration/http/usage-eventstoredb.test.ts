import { expect } from 'chai';
import { createFeedLines } from '../../../src/adapters/event-store/eventstoredb/feed-line.ts';
import type { EventStoreDbStore } from '../../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { systemMetadata } from '../../../src/app/log/metadata.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { createBench, event } from '../../support/eventstoredb-peer/fixture.ts';
import type { Peer } from '../../support/eventstoredb-peer/peer.ts';
import { callerOf, startTestService, type Caller, type TestService } from '../../support/http/service.ts';
import { ordered } from '../../unit/domain/clusters/samples.ts';

const USAGE = '/api/ledger/v1/usage';
const codec = createEventCodec(eventTypes);

/** Nothing comes but renewals of leases, which no filter of a view lets through. */
describe('reads on an EventStoreDB where nothing happens', function () {
  this.timeout(30_000);
  const bench = createBench();
  const lines = createFeedLines();
  let peer: Peer;
  let store: EventStoreDbStore;
  let service: TestService;
  let admin: Caller;

  before(async () => {
    peer = await bench.peer();
    // As a service has it: every position reaches its readers.
    store = await bench.store(peer, { feed: lines.open(true) });
    service = await startTestService({ store, positions: { digits: 40 } });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    const metadata = systemMetadata('command-c1', 'Test', '2026-11-21T12:00:00.000Z', 'test');
    const data = { ...ordered, id: 'c1', tenant: 'acme', at: '2026-10-01T00:00:00.000Z' };
    const events = codec.encodeAll([{ type: 'ClusterOrdered', data }], 'cluster-c1', metadata);
    await store.append('cluster-c1', 'no_stream', events);
  });
  after(async () => {
    await service.close();
    lines.close();
    await bench.clean();
  });

  const renew = async (): Promise<string> => {
    const expected = await store.currentRevision('sys-lease-processes');
    const { position } = await store.append('sys-lease-processes', expected, [event('LeaseRenewed')]);
    return service.positions.format(position);
  };
  const seconds = async (call: Promise<{ readonly status: number; readonly text: string }>) => {
    const started = performance.now();
    const reply = await call;
    expect(reply.status, reply.text).to.equal(200);
    return (performance.now() - started) / 1000;
  };

  it('are answered in a moment, each time something of ours was stored that the view does not show', async () => {
    for (let n = 0; n < 3; n += 1) {
      await renew();
      expect(await seconds(admin('GET', USAGE))).to.be.below(3);
    }
  });

  it('wait no longer for a position that the view never hears of', async () => {
    for (const path of [USAGE, '/api/fulfillment/v1/host_types']) {
      const header = { 'x-ledger-min-position': await renew() };
      expect(await seconds(admin('GET', path, undefined, header)), path).to.be.below(3);
    }
  });
});
