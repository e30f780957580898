import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { createEventStoreDbStore } from '../../src/adapters/event-store/eventstoredb/eventstoredb-event-store.ts';
import { openSqliteEventStore } from '../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { PUBLISHER_SETTINGS } from '../../src/app/publisher/types.ts';
import { startPeerProcess } from '../support/eventstoredb-peer/process.ts';
import { until } from '../support/service/stack.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import {
  appendThings,
  clusterOf,
  createBrokerRig,
  expectDelivered,
  makeTopics,
  REQUEST_MS,
  streamsOf,
  type BrokerRig,
} from '../support/kafka/publisher-on-broker.ts';
import { startPublisherProcess, type PublisherProcess } from '../support/kafka/start-publisher.ts';

/** Small batches, so that a fault comes between many of them. */
const SMALL = { batch: { records: 5, bytes: 100_000 } };

describe('the publisher on an event log and a real broker', function () {
  this.timeout(120_000);
  let kafka: RealKafka;
  let rig: BrokerRig;
  let topic = '';
  let topics = 0;
  before(async function () {
    kafka = await startTestKafka(this);
  });
  after(() => kafka?.close());
  beforeEach(async () => {
    topics += 1;
    topic = `things-${topics}`;
    await makeTopics(kafka.brokers, topic);
    rig = await createBrokerRig(kafka.brokers);
  });
  afterEach(() => rig.dispose());

  it('keeps the order of each key over partitions, sends each record once, and goes on where it was', async () => {
    await rig.append(streamsOf(20), 25);
    const first = rig.start({ topics: [topic], settings: SMALL });
    await first.caughtUp(topic);
    await first.stop();
    await rig.append(streamsOf(25), 5);
    const second = rig.start({ topics: [topic], settings: SMALL });
    await second.caughtUp(topic);
    const { records, repeated } = await expectDelivered(rig.store, kafka.brokers, topic);
    expect(repeated).to.equal(0);
    expect(new Set(records.map(({ partition }) => partition)).size).to.equal(2);
    expect(second.topic(topic).sent).to.equal(125);
  });

  it('loses nothing when the broker is killed in the middle of producing and comes back', async () => {
    await rig.append(streamsOf(20), 100);
    const running = rig.start({ topics: [topic], settings: SMALL });
    await until('it is producing', () => running.topic(topic).sent >= 100);
    await kafka.kill();
    expect(running.topic(topic).sent).to.be.below(2_000);
    await rig.append(streamsOf(20), 5);
    await kafka.restart();
    await running.caughtUp(topic, 30_000);
    await expectDelivered(rig.store, kafka.brokers, topic);
  });

  for (const [how, retries] of [
    ['in vain, and a new producer goes on', 1],
    ['again by the same producer', 30],
  ] as const)
    it(`loses nothing when the broker freezes for longer than a request may take, and thaws: tried ${how}`, async () => {
      const cluster = clusterOf(kafka.brokers, rig.log, { retry: { retries, maxRetryTime: 200 } });
      await rig.append(streamsOf(10), 50);
      const running = rig.start({ topics: [topic], settings: SMALL, cluster });
      await until('it is producing', () => running.topic(topic).sent >= 50);
      kafka.freeze();
      const frozenAt = performance.now();
      try {
        await rig.append(streamsOf(10), 5);
        const isTold = () => running.topic(topic).lastError?.reason === 'unreachable';
        const isOver = () => performance.now() - frozenAt > 2 * REQUEST_MS;
        await until('requests were given up', () => isOver() && (retries > 1 || isTold()), REQUEST_MS * 8);
        expect(running.topic(topic).waitingEvents).to.be.greaterThan(0);
      } finally {
        kafka.thaw();
      }
      await running.caughtUp(topic, 40_000);
      await expectDelivered(rig.store, kafka.brokers, topic);
    });

  it('holds a bounded part in memory while the broker is away and events go on, and loses none of them', async () => {
    const running = rig.start({ topics: [topic] });
    await rig.append(streamsOf(4));
    await running.caughtUp(topic);
    await kafka.stop();
    const { records } = PUBLISHER_SETTINGS.outbox;
    for (let round = 0; round < 10; round += 1) {
      await rig.append(streamsOf(40), 50);
      expect(running.topic(topic).waitingEvents).to.be.at.most(records);
    }
    await until('it holds what it may', () => running.topic(topic).waitingEvents === records);
    expect(running.topic(topic).lagSeconds).to.be.greaterThan(0);
    await kafka.restart();
    await running.caughtUp(topic, 40_000);
    await expectDelivered(rig.store, kafka.brokers, topic);
  });

  it('loses nothing when it is killed at each point between send and stored position', async () => {
    await rig.append(streamsOf(7), 20);
    await rig.store.close();
    const store = { dataDir: rig.dataDir };
    const order = { store, brokers: kafka.brokers, topic };
    for (const point of ['before-send', 'after-send', 'before-checkpoint', 'after-checkpoint'] as const) {
      const dying = startPublisherProcess({ ...order, instance: point, dieAt: { point, n: 3 } });
      expect(await dying.ended, point).to.equal('SIGKILL');
    }
    const last = startPublisherProcess({ ...order, instance: 'last' });
    await last.until('the end', ({ state, waitingEvents }) => state === 'live' && waitingEvents === 0);
    last.signal('SIGTERM');
    expect(await last.ended).to.equal(0);
    const log = await openSqliteEventStore(store);
    try {
      const { repeated } = await expectDelivered(log, kafka.brokers, topic);
      // Killed behind a send, it has not stored that: the next one sends it again.
      expect(repeated).to.be.greaterThan(0);
    } finally {
      await log.close();
    }
  });

  it('publishes on when the owner is suspended, and that one wakes up again', async () => {
    const peer = await startPeerProcess();
    const { connectionString } = peer;
    const log = await createEventStoreDbStore({ connectionString, instance: 'test' });
    const order = { store: { connectionString }, brokers: kafka.brokers, topic, ttlMs: 1_500 };
    const processes: PublisherProcess[] = [];
    const start = (instance: string): PublisherProcess => {
      const started = startPublisherProcess({ ...order, instance });
      processes.push(started);
      return started;
    };
    try {
      await appendThings(log, streamsOf(10), 40);
      const first = start('first');
      await first.until('the first one publishes', ({ sent }) => sent >= 30);
      const second = start('second');
      await second.until('the second one stands by', ({ state }) => state === 'standby');
      first.signal('SIGSTOP');
      await appendThings(log, streamsOf(12), 3);
      await second.until(
        'the second one is at the end',
        ({ epoch, state, waitingEvents }) => (epoch ?? 0) > 1 && state === 'live' && waitingEvents === 0,
      );
      first.signal('SIGCONT');
      await appendThings(log, streamsOf(12), 3);
      await first.until('the first one has noticed', ({ state }) => state === 'standby');
      const sent = second.report()?.sent ?? 0;
      await appendThings(log, ['thing-0'], 1);
      await second.until('and the second one goes on', (report) => report.sent > sent);
      await second.until('to the end', ({ waitingEvents, state }) => state === 'live' && waitingEvents === 0);
      for (const each of processes) each.signal('SIGTERM');
      expect(await Promise.all(processes.map(({ ended }) => ended))).to.deep.equal([0, 0]);
      await expectDelivered(log, kafka.brokers, topic);
    } finally {
      for (const each of processes) each.signal('SIGKILL');
      await log.close();
      await peer.stop();
    }
  });
});
