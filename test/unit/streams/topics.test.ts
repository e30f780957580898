import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { NewerRelease } from '../../../src/app/streams/current-version.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import { EVERYTHING, type TopicStream } from '../../../src/app/streams/stream.ts';
import { topicsOf } from '../../../src/app/streams/topics.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { asyncApi, asyncApiDocument, decoded } from '../../support/streams/asyncapi.ts';
import { recorded, recordedSamples } from '../../support/streams/samples.ts';

const streamsOver = (history: readonly RecordedEvent[] = []): readonly TopicStream[] =>
  createStreams({
    registry,
    kinds,
    store: {
      storeId: 'store-1',
      async *readStream(stream, { from = 0, limit = Infinity } = {}) {
        yield* history.filter((event) => event.stream === stream).slice(from, from + limit);
      },
    },
  });
const streamOf = (topic: string, history?: readonly RecordedEvent[]): TopicStream => {
  const found = streamsOver(history).find((stream) => stream.topic.name === topic);
  if (found === undefined) throw new Error(`no stream fills ${topic}`);
  return found;
};

const DAY_MS = 24 * 60 * 60 * 1000;
const DOCUMENT = readFileSync(new URL('../../../docs/streams.md', import.meta.url), 'utf8');

describe('topics', () => {
  const topics = topicsOf(registry, kinds);

  it("are one for each context that is not internal and each kind that the public sees, and OSAC's own", () => {
    const named = topics.map(({ name }) => name);
    expect(
      named.filter((name) => !name.startsWith('osac.events.') && !name.startsWith('osac.state.')),
    ).to.deep.equal([
      'osac.audit.checkpoints',
      'osac.metering.lifecycle',
      'osac.metering.extra',
      'osac.metering.heartbeat',
      'osac.metering.corrections',
    ]);
    expect(named).to.include.members([
      'osac.events.clusters.v1',
      'osac.events.hubs.v1',
      'osac.events.audit.v1',
    ]);
    expect(named).to.include.members([
      'osac.state.cluster.v1',
      'osac.state.clusterTemplate.v1',
      'osac.state.user.v1',
    ]);
    expect(named).not.to.include.members(['osac.state.hub.v1']);
    for (const internal of ['naming', 'system']) expect(named).not.to.include(`osac.events.${internal}.v1`);
    expect(new Set(named).size).to.equal(named.length);
  });

  it('have names that Kafka takes, and only state is compacted', () => {
    for (const { name, kind, cleanup, partitions, retentionMs } of topics) {
      expect(name).to.match(/^[a-zA-Z0-9._-]{1,249}$/);
      expect(cleanup, name).to.equal(kind === 'state' ? 'compact' : 'delete');
      expect(partitions).to.be.greaterThan(0);
      expect(retentionMs === -1 || retentionMs >= 30 * 86_400_000, name).to.equal(true);
    }
  });

  it('are kept for as long as docs/streams.md says, in as many partitions, under the same rule', () => {
    const told = new Map(
      [...DOCUMENT.matchAll(/^\| `(osac\.[^`]+)` \| [^|]+ \| (\w+), (\d+), ([^|]+) \|/gm)].map(
        ([, name = '', ...rest]) => [name.replace(/<\w+>\.v1$/, '*'), rest] as const,
      ),
    );
    expect(told.size).to.equal(7);
    for (const { name, cleanup, partitions, retentionMs } of topics) {
      const row = told.get(name.replace(/^(osac\.events|osac\.state)\.\w+\.v1$/, '$1.*'));
      const days =
        retentionMs === -1 ? (cleanup === 'compact' ? '–' : 'for ever') : `${retentionMs / DAY_MS} days`;
      expect([cleanup, `${partitions}`, days], name).to.deep.equal(row);
    }
  });

  it('are each filled by the log, but for heartbeats and corrections', () => {
    const filled = streamsOver().map(({ topic }) => topic.name);
    const others = topics.map(({ name }) => name).filter((name) => !filled.includes(name));
    expect(others).to.deep.equal(['osac.metering.heartbeat', 'osac.metering.corrections']);
    for (const { topic } of streamsOver()) expect(topic.filter, topic.name).not.to.equal(undefined);
  });

  it('of events ask the log for everything, so that no type of a newer release is passed over', async () => {
    for (const { topic, map } of streamsOver().filter(({ topic: { kind } }) => kind === 'events')) {
      expect(topic.filter, topic.name).to.equal(EVERYTHING);
      const unknown = recorded('VolumePainted', {}, { stream: 'volume-1' });
      expect(() => map(unknown), topic.name).to.throw(NewerRelease);
    }
  });
});

describe('records of other topics', () => {
  const api = asyncApi(asyncApiDocument());

  it('of signed tree heads hold them whole', async () => {
    const file = new URL('../../../fixtures/events/TreeHeadSigned.v1.json', import.meta.url);
    const data = JSON.parse(readFileSync(file, 'utf8')) as JsonObject;
    const head = recorded('TreeHeadSigned', data, { stream: 'sys-auditTree', revision: 4 });
    const { map } = streamOf('osac.audit.checkpoints');
    const [record, ...others] = await map(head);
    if (record === undefined) throw new Error('no record');
    expect(others).to.deep.equal([]);
    expect(api.problems(record)).to.deep.equal([]);
    expect(decoded(record).data).to.deep.equal(data);
    expect(record.key).to.equal('auditTree');
    expect(await map(recorded('LeaseTaken', {}, { stream: 'sys-auditTree' }))).to.deep.equal([]);
  });

  it('stop at an event that a newer release wrote, and so does everything behind it', async () => {
    const order = recordedSamples().find(({ type }) => type === 'ClusterOrdered');
    if (order === undefined) throw new Error('no sample');
    const at = '2026-11-21T12:00:00.000Z';
    const newer = recorded('ClusterBecameReady', { at }, { stream: order.stream, revision: 1, version: 2 });
    const later = recorded(
      'ClusterDescribed',
      { at, displayName: 'x', description: '' },
      { stream: order.stream, revision: 2 },
    );
    for (const topic of ['osac.state.cluster.v1', 'osac.metering.lifecycle']) {
      const { map } = streamOf(topic, [order, newer, later]);
      expect(await map(order)).not.to.have.length(0);
      for (const event of [newer, later]) {
        const error = await Promise.resolve(map(event)).catch((failure: unknown) => failure);
        expect(error, topic)
          .to.be.instanceOf(Error)
          .with.property('message')
          .that.contains('knows it up to version 1');
      }
    }
  });

  it('stop at an event of a type that is not known here: what it did to the object is not known', async () => {
    const order = recordedSamples().find(({ type }) => type === 'ClusterOrdered');
    if (order === undefined) throw new Error('no sample');
    const at = '2026-11-21T12:00:00.000Z';
    const painted = recorded('ClusterPainted', { at }, { stream: order.stream, revision: 1 });
    const later = recorded('ClusterLabelled', { at, labels: {} }, { stream: order.stream, revision: 2 });
    for (const topic of ['osac.state.cluster.v1', 'osac.metering.lifecycle']) {
      const { map } = streamOf(topic, [order, painted, later]);
      for (const event of [painted, later]) {
        const error = await Promise.resolve(map(event)).catch((failure: unknown) => failure);
        expect(error, topic)
          .to.be.instanceOf(NewerRelease)
          .with.property('message')
          .that.contains('ClusterPainted');
      }
    }
  });

  it('of a document tell nothing of what changes no document, and end with a tombstone', async () => {
    const order = recordedSamples().find(({ type }) => type === 'ClusterOrdered');
    if (order === undefined) throw new Error('no sample');
    const at = '2026-11-21T12:00:00.000Z';
    const next = (type: string, data: JsonObject, revision: number): RecordedEvent =>
      recorded(type, { at, ...data }, { stream: order.stream, revision });
    const history = [
      order,
      next('ReferencesAnnounced', { targets: [] }, 1),
      next('ClusterDeletionRequested', {}, 2),
      next('ClusterDeleted', { how: 'not-dispatched' }, 3),
      next('ClusterLabelled', { labels: {} }, 4),
    ];
    const { map } = streamOf('osac.state.cluster.v1');
    const told: (readonly [string, string | undefined])[] = [];
    for (const event of history)
      for (const { value, headers } of await map(event))
        told.push([headers['osacrevision'] ?? '', value === null ? undefined : 'document']);
    expect(told).to.deep.equal([
      ['0', 'document'],
      ['2', 'document'],
      ['3', undefined],
    ]);
  });
});

describe('the reference consumer', () => {
  it('is short enough to be read', () => {
    const file = new URL('../../../fixtures/consumers/cluster-view.ts', import.meta.url);
    expect(readFileSync(file, 'utf8').trimEnd().split('\n').length).to.be.at.most(60);
  });
});
