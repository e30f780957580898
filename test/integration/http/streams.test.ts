import { expect } from 'chai';
import { createClusterView } from '../../../fixtures/consumers/cluster-view.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { FoldMemoryOptions } from '../../../src/app/streams/stream-folds.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import type { KafkaRecord } from '../../../src/app/streams/stream.ts';
import { publicKinds, stateTopic } from '../../../src/app/streams/topics.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { encryptedIn, revealed } from '../../../src/domain/personal.ts';
import { registry } from '../../../src/domain/registry.ts';
import { KIND_SAMPLES, makeHousePool, named, type Around } from '../../support/http/kind-samples.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { asyncApi, decoded } from '../../support/streams/asyncapi.ts';

const objectOf = (reply: Reply): Json => reply.json['object'] ?? reply.json;

/** Everything that the log becomes, topic by topic, as the publisher asks for it. */
const recordsOf = async (
  { store }: Pick<TestService, 'store'>,
  events: readonly RecordedEvent[],
  memory: FoldMemoryOptions = {},
): Promise<readonly KafkaRecord[]> => {
  const records: KafkaRecord[] = [];
  for (const { map } of createStreams({ registry, kinds, store, memory }))
    for (const event of events) records.push(...(await map(event)));
  return records;
};

describe('what goes to Kafka of a service in use', () => {
  let service: TestService;
  let admin: Caller;
  let events: readonly RecordedEvent[];
  let records: readonly KafkaRecord[];
  /** Every object that was ever made, by kind. */
  const made = new Map<string, string[]>();

  before(async function () {
    this.timeout(30_000);
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    const make = async (collection: string, body: object): Promise<string> => {
      const reply = await admin('POST', `${PRIVATE}/${collection}`, body);
      expect(reply.status, `${collection}: ${reply.text}`).to.equal(200);
      return textAt(objectOf(reply), 'id');
    };
    await make('projects', named('house'));
    await make('roles', { metadata: { name: 'house-role' } });
    await makeHousePool(admin);
    let serial = 0;
    const users: string[] = [];
    for (let i = 0; i < 12; i += 1)
      users.push(await make('users', { ...named(`member-${i}`), spec: { username: `member-${i}` } }));
    const around: Around = { user: () => users.pop() ?? '' };
    for (const kind of kinds) {
      const ids: string[] = [];
      for (let i = 0; i < 3; i += 1) {
        const body = KIND_SAMPLES[kind.kind]?.body(`s-${(serial += 1)}`, around);
        ids.push(await make(kind.collection, body ?? {}));
      }
      made.set(kind.kind, ids);
      const [, changed = '', deleted = ''] = ids;
      const path = (id: string): string => `${PRIVATE}/${kind.collection}/${encodeURIComponent(id)}`;
      const patch = await admin('PATCH', path(changed), { metadata: { labels: { env: 'prod' } } });
      expect(patch.status, patch.text).to.equal(200);
      const settled = KIND_SAMPLES[kind.kind]?.settled;
      if (settled !== undefined) for (const id of ids) await admin('PATCH', path(id), settled);
      await admin('DELETE', path(deleted));
    }
    const [withdrawn = '', published = ''] = made.get('clusterCatalogItem') ?? [];
    const publish = async (id: string, value: boolean): Promise<void> => {
      const path = `${PRIVATE}/cluster_catalog_items/${id}`;
      expect((await admin('PATCH', path, { published: value })).status).to.equal(200);
    };
    await publish(published, true);
    await publish(withdrawn, true);
    await publish(withdrawn, false);
    const cluster = made.get('cluster')?.[0] ?? '';
    const scale = { spec: { node_sets: { workers: { host_type: { id: 'fc430' }, size: 7 } } } };
    expect((await admin('PATCH', `${PRIVATE}/clusters/${cluster}`, scale)).status).to.equal(200);
    const status = { status: { state: 'CLUSTER_STATE_READY', api_url: 'https://api.example' } };
    expect((await admin('PATCH', `${PRIVATE}/clusters/${cluster}`, status)).status).to.equal(200);
    events = await Array.fromAsync(service.store.readAll({ limit: 10_000 }));
    records = await recordsOf(service, events);
  });
  after(() => service.close());

  it('is as /asyncapi.json describes it, and valid to an independent library', async function () {
    this.timeout(30_000);
    const reply = await callerOf(service)('GET', '/asyncapi.json');
    expect(reply.headers.get('content-type')).to.equal('application/json');
    const api = asyncApi(reply.json as unknown as JsonObject);
    expect(records.length).to.be.greaterThan(150);
    for (const record of records) {
      expect(api.problems(record), `${record.topic} ${record.value ?? ''}`).to.deep.equal([]);
      if (record.value !== null) decoded(record);
    }
  });

  it('holds every event that is not internal, each once on the topic of its context', () => {
    const told = records
      .filter(({ topic }) => topic.startsWith('osac.events.'))
      .map(({ topic, headers }) => `${topic} ${headers['osacstream']}@${headers['osacrevision']}`);
    const expected = events.flatMap(({ type, stream, revision }) => {
      const entry = registry.get(type);
      return entry === undefined || entry.audience === 'internal'
        ? []
        : [`osac.events.${entry.context}.v1 ${stream}@${revision}`];
    });
    expect(told.toSorted()).to.deep.equal(expected.toSorted());
    expect(told.length).to.be.greaterThan(50);
  });

  it('keeps of every kind the public document that GET shows, and no other', async () => {
    let compared = 0;
    for (const kind of publicKinds(kinds)) {
      const latest = new Map<string, JsonObject | undefined>();
      for (const { topic, key, value } of records) {
        if (topic !== stateTopic(kind.kind)) continue;
        const { data } = value === null ? {} : (JSON.parse(value) as { data?: JsonObject });
        latest.set(key, data);
      }
      for (const id of made.get(kind.kind) ?? []) {
        const reply = await admin('GET', `${PUBLIC}/${kind.collection}/${encodeURIComponent(id)}`);
        const shown = reply.status === 200 ? objectOf(reply) : undefined;
        const document = latest.get(id);
        const opened = document === undefined ? undefined : revealed(document, service.people.open);
        expect(opened, `${kind.kind} ${id}`).to.deep.equal(shown);
        if (shown !== undefined) compared += 1;
      }
    }
    expect(compared, 'of those that are there').to.be.greaterThan(2 * publicKinds(kinds).length - 2);
    const tombstones = records
      .filter(({ value }) => value === null)
      .map(({ headers }) => headers['osacstream']);
    expect(tombstones.length).to.be.greaterThan(10);
    const withdrawn = `clusterCatalogItem-${made.get('clusterCatalogItem')?.[0] ?? ''}`;
    expect(tombstones, 'what is no longer published').to.include(withdrawn);
  });

  it('holds personal data as ciphertext only', () => {
    const users = records.filter(({ topic }) => topic === stateTopic('user'));
    const sealed = users.flatMap(({ value }) =>
      value === null ? [] : encryptedIn(JSON.parse(value) as JsonObject),
    );
    expect(sealed.length).to.be.greaterThan(10);
    expect(records.filter(({ value }) => value?.includes('member-'))).to.deep.equal([]);
  });

  it('holds no secret, and nothing private in public documents', () => {
    for (const { topic, value } of records) {
      expect(value ?? '', topic).not.to.match(/"auths|S3CRET/);
      if (topic.startsWith('osac.state.'))
        expect(value ?? '').not.to.match(/"(finalizers|fabric_interface|hub|osacsite)"/);
    }
  });

  it('rebuilds the view of clusters in the reference consumer, whatever comes twice or late', async () => {
    const topic = records.filter((record) => record.topic === stateTopic('cluster'));
    const shown = new Map<string, Json>();
    // Those of the world around them besides.
    const inLog = new Set([...(made.get('cluster') ?? []), ...topic.map(({ key }) => key)]);
    for (const id of inLog) {
      const reply = await admin('GET', `${PUBLIC}/clusters/${id}`);
      if (reply.status === 200) shown.set(id, objectOf(reply));
    }
    expect((made.get('cluster') ?? []).filter((id) => shown.has(id))).to.have.length(2);
    const once = createClusterView();
    for (const record of topic) expect(once.apply(record)).to.equal(true);
    expect(once.clusters).to.deep.equal(shown);
    // Two publishers at a takeover: everything twice, the second time from somewhere before.
    const twice = createClusterView();
    const half = Math.floor(topic.length / 2);
    for (const record of [...topic, ...topic.slice(half), ...topic]) twice.apply(record);
    expect(twice.clusters).to.deep.equal(shown);
    // It may end with what is old: nothing of it is applied, a document behind its tombstone neither.
    const gone = made.get('cluster')?.[2] ?? '';
    const ofGone = topic.filter(({ key }) => key === gone);
    expect(ofGone.at(-1)?.value).to.equal(null);
    const documents = ofGone.filter(({ value }) => value !== null);
    expect(documents).to.not.deep.equal([]);
    for (const late of [topic.slice(0, half), topic.slice(-1), topic.toReversed(), documents]) {
      for (const record of late) expect(once.apply(record), record.value ?? 'a tombstone').to.equal(false);
      expect(once.clusters).to.deep.equal(shown);
    }
    // A compacted topic keeps the last record of each key.
    const compacted = createClusterView();
    for (const record of new Map(topic.map((each) => [each.key, each])).values()) compacted.apply(record);
    expect(compacted.clusters).to.deep.equal(shown);
  });

  it('is the same for events that come again, one by one, and with little memory', async () => {
    const again = await recordsOf(service, events.toReversed(), { streams: 1 });
    const text = (record: KafkaRecord): string => JSON.stringify(record);
    expect(again.map(text).toSorted()).to.deep.equal(records.map(text).toSorted());
  });
});
