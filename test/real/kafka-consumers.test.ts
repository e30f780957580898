import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { followRecords, type ReadRecord } from '../../src/adapters/kafka/record-reader.ts';
import { Kafka, logLevel } from '../../src/adapters/kafka/kafkajs-library.ts';
import type { ApiClient } from '../../src/cli/api-client.ts';
import { readTopic } from '../integration/kafka/real-cluster.ts';
import { specOf } from '../integration/kafka/publisher-rig.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  createStack,
  isReady,
  until,
  untilCluster,
  untilGone,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import type { MemberLine } from '../support/kafka/group-member.ts';
import { startLines, type LineProcess } from '../support/kafka/line-process.ts';
import {
  clusterOf,
  createBrokerRig,
  expectDelivered,
  makeTopics,
  streamsOf,
  type BrokerRig,
} from '../support/kafka/publisher-on-broker.ts';
import { recordingLogger } from '../support/loggers.ts';

const SUPPORT = join(import.meta.dirname, '../support/kafka');
const REFERENCE = join(import.meta.dirname, '../../fixtures/consumers/cluster-view.ts');
const never = new AbortController().signal;
const STATE_TOPIC = 'osac.state.cluster.v1';

describe('consumers of a real broker', function () {
  this.timeout(240_000);
  let kafka: RealKafka;
  before(async function () {
    kafka = await startTestKafka(this, { properties: { 'group.min.session.timeout.ms': '1000' } });
  });
  after(() => kafka?.close());

  describe('in a group', () => {
    const topic = 'grouped';
    let rig: BrokerRig;
    const members: LineProcess<MemberLine>[] = [];
    before(async () => {
      await makeTopics(kafka.brokers, { ...specOf(topic), partitions: 4 });
      rig = await createBrokerRig(kafka.brokers);
    });
    after(async () => {
      await Promise.all(members.map((member) => member.end()));
      await rig?.dispose();
    });
    const enter = (): LineProcess<MemberLine> => {
      const argv = [kafka.brokers.join(','), topic, 'analysts'];
      const member = startLines<MemberLine>(join(SUPPORT, 'group-member.ts'), argv);
      members.push(member);
      return member;
    };
    const partitionsOf = ({ lines }: LineProcess<MemberLine>): readonly number[] =>
      lines.flatMap((line) => ('partitions' in line ? [line.partitions] : [])).at(-1) ?? [];
    const valuesOf = ({ lines }: LineProcess<MemberLine>): readonly string[] =>
      lines.flatMap((line) => ('value' in line ? [line.value] : []));

    it('share the partitions, and one takes over what a killed one had', async () => {
      const [first, second] = [enter(), enter()];
      const isSplit = (): boolean => partitionsOf(first).length === 2 && partitionsOf(second).length === 2;
      await until('each has half of the partitions', isSplit);
      expect([...partitionsOf(first), ...partitionsOf(second)]).to.have.members([0, 1, 2, 3]);
      const running = rig.start({ topics: [{ ...specOf(topic), partitions: 4 }] });
      await rig.append(streamsOf(30), 10);
      await running.caughtUp(topic);
      const seen = () => new Set([...valuesOf(first), ...valuesOf(second)]).size;
      await until('they have all', () => seen() === 300);
      for (const member of [first, second]) expect(valuesOf(member).length).to.be.greaterThan(0);
      expect(await first.end('SIGKILL')).to.equal('SIGKILL');
      await rig.append(streamsOf(30), 5);
      await until('the other one has all that came since', () => seen() === 450);
      expect(partitionsOf(second)).to.have.members([0, 1, 2, 3]);
      await expectDelivered(rig.store, kafka.brokers, topic);
    });
  });

  describe('that the demo shows', () => {
    const topic = 'followed';
    const send = async (value: string): Promise<void> => {
      const producer = await clusterOf(kafka.brokers, recordingLogger()).producers.open(never);
      await producer.send([{ topic, key: value, value, headers: { note: value } }]);
      await producer.close();
    };

    it('read what comes from now on, each once, through a death of the broker', async () => {
      await makeTopics(kafka.brokers, topic);
      await send('before');
      const read: ReadRecord[] = [];
      const reader = await followRecords(kafka.brokers, [topic], (record) => read.push(record));
      try {
        await send('first');
        await until('the first is there', () => read.length > 0);
        await kafka.kill();
        await kafka.restart();
        await send('second');
        await until('the second is there', () => read.length > 1);
        expect(read.map(({ value, headers }) => [value, headers['note']])).to.deep.equal([
          ['first', 'first'],
          ['second', 'second'],
        ]);
      } finally {
        await reader.close();
      }
    });
  });

  describe('of a service', () => {
    let stack: Stack;
    let user: ApiClient;
    const views: LineProcess<ViewLine>[] = [];
    before(async () => {
      stack = await createStack('sqlite', AS_DEPLOYED);
      await startService();
      const admin = await stack.client({ user: 'root', admin: true });
      const { created } = await admin.send<{ created: string[] }>('POST', '/api/ledger/v1/kafka/topics');
      expect(created).to.include(STATE_TOPIC);
      await compactSoon(kafka.brokers, STATE_TOPIC);
    });
    after(async () => {
      await Promise.all(views.map((view) => view.end()));
      await stack?.dispose();
    });
    const startService = async (): Promise<void> => {
      await stack.start({ LEDGER_KAFKA_BROKERS: kafka.brokers.join(',') });
      user = await stack.client({ tenant: 'acme', user: 'alice' });
    };
    const startView = (): LineProcess<ViewLine> => {
      const view = startLines<ViewLine>(join(SUPPORT, 'view-process.ts'), [kafka.brokers.join(',')]);
      views.push(view);
      return view;
    };
    const order = async (name: string): Promise<string> => {
      const { id } = await user.send<ClusterBody>('POST', CLUSTERS, {
        metadata: { name, annotations: { simulation: 'factor=0.05' } },
        spec: { template: { id: 'osac.templates.ocp_ci_small' } },
      });
      return id;
    };
    const patch = (id: string, body: object): Promise<ClusterBody> =>
      user.send<ClusterBody>('PATCH', `${CLUSTERS}/${id}`, body);
    /** Waits until the view is exactly what GET shows of every cluster. */
    const expectEqual = async (view: LineProcess<ViewLine>): Promise<void> => {
      const { items } = await user.get<{ items: ClusterBody[] }>(`${CLUSTERS}?limit=100`);
      const shown = await Promise.all(items.map(({ id }) => user.get<ClusterBody>(`${CLUSTERS}/${id}`)));
      const expected = Object.fromEntries(shown.map((cluster) => [cluster.id, cluster]));
      const has = (): object => Object.fromEntries(clustersOf(view));
      const equals = (): boolean => isDeepStrictEqual(has(), expected);
      // The comparison that follows says what is missing when they never come to be equal.
      await until('the view equals GET', equals, 45_000).catch(() => undefined);
      expect(has(), view.errors()).to.deep.equal(expected);
    };

    it('rebuild its public clusters, through deaths of both; after compaction a deleted one is not there at all', async () => {
      const first = startView();
      // Four keys on three partitions: two share one, and what is written behind a tombstone lets it be compacted.
      const ids = [await order('one'), await order('two'), await order('three'), await order('four')];
      for (const id of ids) await untilCluster(user, id, isReady);
      await expectEqual(first);
      const read = () => readTopic(kafka.brokers, STATE_TOPIC);
      const early = await read();
      const partitions = new Map(early.map(({ key, partition }) => [key, partition]));
      const shares = (id: string): boolean =>
        ids.some((other) => other !== id && partitions.get(other) === partitions.get(id));
      const deleted = ids.find(shares) ?? '';
      const left = ids.filter((id) => id !== deleted);
      const [kept = '', changed = ''] = left;

      await patch(changed, { metadata: { labels: { env: 'prod' } } });
      await user.send('DELETE', `${CLUSTERS}/${deleted}`);
      await Promise.all([stack.stop('SIGKILL'), first.end('SIGKILL')]);
      await startService();
      const second = startView();
      const late = await order('late');
      await patch(kept, { metadata: { labels: { env: 'test' } } });
      await untilCluster(user, late, isReady);
      await untilGone(user, deleted);
      await expectEqual(second);
      expect([...clustersOf(second).keys()].toSorted()).to.deep.equal([...left, late].toSorted());

      const tombstones = (await read()).filter(({ key, value }) => key === deleted && value === null);
      expect(tombstones.length, 'a deleted cluster is told of by a tombstone').to.be.greaterThan(0);
      let round = 0;
      await until(
        'compaction takes away the last trace of it',
        async () => {
          // A segment is closed, and so compacted, when something is written behind it.
          round += 1;
          for (const id of left) await patch(id, { metadata: { labels: { round: `${round}` } } });
          return (await read()).every(({ key }) => key !== deleted);
        },
        60_000,
      );
      const third = startView();
      await expectEqual(third);
      expect(third.lines.some(({ id }) => id === deleted)).to.equal(false);

      // What two publishers at a takeover leave: records behind newer ones, and a document behind its tombstone. `second`
      // has seen the newer ones, and what is written last tells that it has read on from there.
      const ofDeleted = early.filter(({ key, value }) => key === deleted && value !== null);
      expect(ofDeleted, 'documents of what is gone').to.not.deep.equal([]);
      const seen = second.lines.length;
      const producer = await clusterOf(kafka.brokers, recordingLogger()).producers.open(never);
      await producer.send(
        early.map(({ key, value, headers }) => ({ topic: STATE_TOPIC, key, value, headers })),
      );
      await producer.close();
      for (const id of left) await patch(id, { metadata: { labels: { round: 'last' } } });
      await expectEqual(second);
      expect(second.lines.slice(seen).filter(({ id }) => id === deleted)).to.deep.equal([]);
    });

    it('can run the reference consumer as it is', async () => {
      const { items } = await user.get<{ items: ClusterBody[] }>(`${CLUSTERS}?limit=100`);
      const reference = startLines<string>(REFERENCE, [kafka.brokers.join(',')], (text) => text);
      try {
        for (const { id } of items)
          await until(`it shows ${id}`, () =>
            reference.lines.some((line) => line.startsWith(`cluster ${id} is CLUSTER_STATE_READY; `)),
          );
        const [{ id } = { id: '' }] = items;
        const told = (): readonly string[] =>
          reference.lines.flatMap((line) =>
            line.startsWith(`cluster ${id} is `) ? [line.split('; ')[0] ?? ''] : [],
          );
        for (const label of ['one', 'two'])
          await user.send('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { label } } });
        await user.send('DELETE', `${CLUSTERS}/${id}`);
        await until('it shows what follows', () => told().length > 1 && told().at(-1) !== told()[0]);
        const repeated = told().filter((state, n) => n > 0 && state === told()[n - 1]);
        expect(repeated, 'it tells changes of state alone').to.deep.equal([]);
      } finally {
        expect(await reference.end('SIGINT')).to.equal(0);
      }
    });
  });
});

/** kafkajs writes its own lines, which have neither. */
type ViewLine = { readonly id?: string; readonly document?: ClusterBody | null };

/** What the process has told, put together. */
const clustersOf = ({ lines }: LineProcess<ViewLine>): ReadonlyMap<string, ClusterBody> => {
  const clusters = new Map<string, ClusterBody>();
  for (const { id, document } of lines) {
    if (id === undefined || document === undefined) continue;
    if (document === null) clusters.delete(id);
    else clusters.set(id, document);
  }
  return clusters;
};

/** `ConfigResourceTypes.TOPIC`: an enum of kafkajs that exists in its types only. */
const TOPIC_RESOURCE = 2;

/** Compacts what is older than a moment, and keeps tombstones no longer than that. */
const compactSoon = async (brokers: readonly string[], topic: string): Promise<void> => {
  const admin = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      {
        type: TOPIC_RESOURCE,
        name: topic,
        configEntries: [
          { name: 'cleanup.policy', value: 'compact' },
          { name: 'segment.ms', value: '500' },
          { name: 'min.cleanable.dirty.ratio', value: '0.01' },
          { name: 'delete.retention.ms', value: '100' },
        ],
      },
    ],
  });
  await admin.disconnect();
};
