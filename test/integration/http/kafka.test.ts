import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createMemoryKafka } from '../../../src/adapters/kafka/memory/memory-kafka.ts';
import { systemClock, systemIds, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { createPublisher } from '../../../src/app/publisher/publisher.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import type { TopicStream } from '../../../src/app/streams/stream.ts';
import { topicsOf } from '../../../src/app/streams/topics.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import {
  callerOf,
  itemsOf,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { recordingLogger } from '../../support/loggers.ts';
import { eventually } from '../../support/eventually.ts';

const KAFKA = '/api/ledger/v1/kafka';
const STATE = 'osac.state.cluster.v1';
const EVENTS = 'osac.events.clusters.v1';

describe('the Kafka publisher over HTTP', () => {
  const kafka = createMemoryKafka();
  const stop = new AbortController();
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let ended: Promise<void>;
  /** Streams of clusters that no record is made of. */
  const poison = new Set<string>();
  /** Times whose positions were looked up. */
  const asked: string[] = [];

  const topicOf = async (name: string): Promise<JsonObject> => {
    const { json } = await admin('GET', KAFKA);
    const found = listAt(json as JsonObject, 'topics').find((topic) => stringAt(topic, 'topic') === name);
    if (found === undefined) throw new Error(`no topic ${name}`);
    return found as JsonObject;
  };
  const published = (id: string): Promise<void> =>
    eventually(`a record of ${id}`, async () => kafka.records(STATE).some(({ key }) => key === id));
  const linesOf = (reply: { text: string }): JsonObject[] =>
    reply.text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as JsonObject);
  const order = async (name: string): Promise<string> =>
    textAt(
      (
        await user('POST', `${PUBLIC}/clusters`, {
          metadata: { name },
          spec: { template: { id: 'osac.templates.small' } },
        })
      ).json,
      'id',
    );

  before(async () => {
    const store = createMemoryEventStore();
    const streams = (): readonly TopicStream[] =>
      createStreams({ registry, kinds, store }).map(({ topic, map }) => ({
        topic,
        map: (event) => {
          if (topic.name === STATE && poison.has(event.stream)) throw new Error('no record of this cluster');
          return map(event);
        },
      }));
    const publisher = createPublisher({
      streams,
      topics: topicsOf(registry, kinds),
      cluster: kafka,
      store,
      ownership: { hold: (signal, whileOwner) => whileOwner({ epoch: 7, signal }) },
      clock: systemClock(),
      timers: systemTimers(),
      ids: systemIds(),
      instance: 'test',
      logger: recordingLogger(),
      settings: { retryMs: 10, longestRetryMs: 50, idleMs: 60_000 },
    });
    const past = {
      moments: {
        resolve: async (text: string) => {
          asked.push(text);
          return text < '2026' ? '' : ((await store.lastPosition()) ?? '');
        },
      },
    };
    service = await startTestService({ store, ledger: { publisher, retryMs: 300, past } });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    ended = publisher.run(stop.signal);
  });
  after(async () => {
    stop.abort();
    await ended;
    await service.close();
  });

  it('is for provider admins', async () => {
    expect((await user('GET', KAFKA)).status).to.equal(403);
    expect((await user('POST', `${KAFKA}/topics`)).status).to.equal(403);
  });

  it('tells which topics are missing, and makes them', async () => {
    const planned = await admin('GET', `${KAFKA}/topics`);
    expect(planned.status).to.equal(200);
    const items = itemsOf(planned);
    expect(items.length).to.be.greaterThan(20);
    for (const item of items) expect(item).to.deep.include({ exists: false });
    expect(JSON.stringify(items[0])).to.include('ledgerctl kafka create-topics');
    const made = (await admin('POST', `${KAFKA}/topics`)).json['created'];
    expect(made).to.include.members([STATE, EVENTS, 'osac.metering.heartbeat', 'osac.audit.checkpoints']);
    expect((await admin('POST', `${KAFKA}/topics`)).json).to.deep.equal({ created: [] });
    const again = itemsOf(await admin('GET', `${KAFKA}/topics`));
    for (const item of again) expect(item).to.deep.include({ exists: true, problems: [] });
  });

  it('tells what is wrong with a topic', async () => {
    kafka.alterTopic(EVENTS, { cleanup: 'compact', retentionMs: -1 });
    const items = itemsOf(await admin('GET', `${KAFKA}/topics`));
    const wrong = items.filter((item) => listAt(item as JsonObject, 'problems').length > 0);
    expect(wrong.map((item) => textAt(item, 'topic'))).to.deep.equal([EVENTS]);
    expect(JSON.stringify(wrong)).to.include('loses all but the newest record of each key');
    kafka.alterTopic(EVENTS, { cleanup: 'delete' });
    expect((await admin('GET', `${KAFKA}/topics`)).status).to.equal(200);
  });

  it('publishes what happens, and tells how far each topic is', async () => {
    const id = await order('seen');
    await published(id);
    await eventually('all confirmed', async () => (await topicOf(STATE))['waiting_events'] === 0);
    const topic = await topicOf(STATE);
    expect(topic).to.include({ state: 'live', lag_seconds: 0, waiting_events: 0 });
    expect(topic['behind_events']).to.be.a('number');
    expect(stringAt(topic, 'position')).to.match(/^memory\.\d{16}$/);
    const { json } = await admin('GET', KAFKA);
    expect(json).to.include({ configured: true, publishing: true, epoch: 7 });
    const value = JSON.parse(kafka.records(STATE).find(({ key }) => key === id)?.value ?? '{}') as JsonObject;
    expect(stringAt(objectAt(value, 'data'), 'id')).to.equal(id);
  });

  it('replays a part of the log to a topic of its own', async () => {
    await published(await order('replayed'));
    const before = kafka.records(STATE).length;
    const reply = await admin('POST', `${KAFKA}/topics/${STATE}/replays`, { name: 'one' });
    expect(reply.status).to.equal(200);
    const report = objectAt(linesOf(reply).at(-1), 'report');
    expect(report).to.include({ topic: `${STATE}.replay.one`, skipped_events: 0 });
    const again = kafka.records(`${STATE}.replay.one`);
    expect(again).to.have.length(Number(report['records']));
    const plain = (topic: string) =>
      kafka.records(topic).map(({ key, value, headers }) => ({ key, value, headers }));
    expect(plain(`${STATE}.replay.one`)).to.deep.equal(plain(STATE));
    expect(kafka.records(STATE)).to.have.length(before);
    const rest = await admin('POST', `${KAFKA}/topics/${STATE}/replays`, {
      name: 'two',
      from: stringAt(report, 'position'),
    });
    expect(objectAt(linesOf(rest).at(-1), 'report')).to.include({ events: 0, records: 0 });
  });

  it('replays from and to a bare position, as records have it', async () => {
    await published(await order('replayed-bare'));
    const values = kafka.records(STATE).map(({ value }) => JSON.parse(value ?? '{}') as JsonObject);
    const positions = values.map((value) => stringAt(value, 'osacposition')).toSorted();
    const [after = '', last = ''] = [positions.at(-2), positions.at(-1)];
    const path = `${KAFKA}/topics/${STATE}/replays`;
    for (const [name, from] of [
      ['bare', after],
      ['short', String(Number(after))],
    ] as const) {
      const reply = await admin('POST', path, { name, from, to: last });
      expect(objectAt(linesOf(reply).at(-1), 'report'), reply.text).to.include({ records: 1 });
      const [record] = kafka.records(`${STATE}.replay.${name}`);
      expect(JSON.parse(record?.value ?? '{}')).to.include({ osacposition: last });
    }
  });

  it('replays what was recorded in a time, begin included, end not', async () => {
    const path = `${KAFKA}/topics/${STATE}/replays`;
    asked.length = 0;
    const reply = await admin('POST', path, {
      name: 'times',
      from: '2026-01-01T02:00:00+02:00',
      to: '2026-02-01T00:00:00Z',
    });
    expect(reply.status, reply.text).to.equal(200);
    // `from` a position begins behind it, and `to` one ends with it.
    expect(asked).to.deep.equal(['2025-12-31T23:59:59.999Z', '2026-01-31T23:59:59.999Z']);
  });

  it('runs one of two replays that are asked for at one moment', async () => {
    await published(await order('replayed-twice'));
    const target = `${STATE}.replay.both`;
    const release = kafka.faults.hold(target);
    const both = [1, 2].map(() => admin('POST', `${KAFKA}/topics/${STATE}/replays`, { name: 'both' }));
    const first = await Promise.race(both);
    expect(first.text).to.include('another replay runs on this instance');
    release();
    const texts = (await Promise.all(both)).map(({ text }) => text);
    expect(texts.filter((text) => text.includes('"report"'))).to.have.length(1);
  });

  it('refuses a replay that cannot be', async () => {
    const path = `${KAFKA}/topics/${STATE}/replays`;
    for (const [body, what] of [
      [{}, "field 'name'"],
      [{ name: 'NO' }, "field 'name'"],
      [{ name: 'x', from: 'nonsense' }, "field 'from' must be a position as records have it (osacposition)"],
      [{ name: 'x', from: '2026-02-31T00:00:00Z' }, 'or a time such as 2026-01-31T12:00:00Z'],
      [{ name: 'x', from: 'elsewhere.0000000000000001' }, "'from' is a position of another event store"],
      [{ name: 'x', to: 7 }, "field 'to' must be"],
      [{ name: 'x', to: '2025-01-01T00:00:00Z' }, "field 'to' lies before everything"],
    ] as const) {
      const reply = await admin('POST', path, body);
      expect(reply.status, JSON.stringify(body)).to.equal(400);
      expect(reply.text).to.include(what);
    }
    const misspelt = await admin('POST', `${KAFKA}/topics/osac.state.clusters.v1/replays`, { name: 'x' });
    expect(misspelt.status).to.equal(404);
    expect(textAt(misspelt.json, 'detail')).to.include(`did you mean ${STATE}`);
    const turned = { name: 'turned', from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' };
    for (const body of [
      turned,
      { name: 'turned', from: '3', to: '2' },
      { name: 'turned', from: '3', to: '3' },
    ]) {
      const reply = await admin('POST', path, body);
      expect(reply.status, reply.text).to.equal(400);
    }
    expect(kafka.records(`${STATE}.replay.turned`), 'nothing was made').to.deep.equal([]);
    expect((await admin('POST', `${KAFKA}/topics/nowhere/replays`, { name: 'x' })).status).to.equal(404);
    const idle = await admin('POST', `${KAFKA}/topics/osac.metering.heartbeat/replays`, { name: 'x' });
    expect([idle.status, textAt(idle.json, 'detail')]).to.deep.equal([
      404,
      "topic 'osac.metering.heartbeat' is not made from the log; did you mean osac.metering.extra?",
    ]);
  });

  it('lists parked streams and publishes them when they are tried again', async () => {
    const id = await order('poisoned');
    await published(id);
    const stream = `cluster-${id}`;
    poison.add(stream);
    expect(
      (await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { a: 'b' } } })).status,
    ).to.equal(200);
    await eventually('parked', async () => listAt(await topicOf(STATE), 'parked').length === 1);
    const [parked] = listAt(await topicOf(STATE), 'parked');
    expect(parked).to.include({ stream, error: 'no record of this cluster' });
    const path = `${KAFKA}/topics/${STATE}/parked/${encodeURIComponent(stream)}/retry`;
    expect((await admin('POST', path)).json).to.include({ stream, published: false });
    poison.clear();
    kafka.faults.down(true);
    const late = await admin('POST', path);
    expect([late.status, textAt(late.json, 'code')]).to.deep.equal([503, 'KAFKA_RETRY_PENDING']);
    kafka.faults.down(false);
    await eventually('published after all', async () => listAt(await topicOf(STATE), 'parked').length === 0);
    poison.add(stream);
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { a: 'c' } } });
    await eventually('parked again', async () => listAt(await topicOf(STATE), 'parked').length === 1);
    poison.clear();
    expect((await admin('POST', path)).json).to.include({ stream, published: true });
    expect((await admin('POST', path)).status).to.equal(404);
    expect(listAt(await topicOf(STATE), 'parked')).to.deep.equal([]);
  });

  it('says why the brokers cannot be asked', async () => {
    kafka.faults.down(true);
    const away = await admin('GET', `${KAFKA}/topics`);
    expect([away.status, stringAt(away.json as JsonObject, 'code')]).to.deep.equal([
      503,
      'KAFKA_UNREACHABLE',
    ]);
    kafka.faults.down(false);
    kafka.faults.wrongPassword(true);
    const refused = await admin('POST', `${KAFKA}/topics`);
    expect([refused.status, stringAt(refused.json as JsonObject, 'code')]).to.deep.equal([
      400,
      'KAFKA_UNAUTHORIZED',
    ]);
    kafka.faults.wrongPassword(false);
  });

  it('is plain about having no brokers', async () => {
    const without = await startTestService();
    try {
      const asks = callerOf(without, await without.token({ user: 'root', admin: true }));
      expect((await asks('GET', KAFKA)).json).to.deep.equal({
        configured: false,
        publishing: false,
        topics: [],
        problems: [],
      });
      const refused = await asks('GET', `${KAFKA}/topics`);
      expect([refused.status, stringAt(refused.json as JsonObject, 'code')]).to.deep.equal([
        400,
        'KAFKA_NOT_CONFIGURED',
      ]);
    } finally {
      await without.close();
    }
  });
});
