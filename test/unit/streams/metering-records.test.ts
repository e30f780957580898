import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import {
  createLifecycleMapper,
  emptyMeter,
  foldMeter,
  heartbeatsOf,
} from '../../../src/app/streams/metering-records.ts';
import { meteredTopics, meteringTopicOf } from '../../../src/app/streams/topics.ts';
import { toyMeter } from '../../support/process-runner/toy-kind.ts';
import type { KafkaRecord } from '../../../src/app/streams/stream.ts';
import {
  createFoldMemory,
  createStreamFolds,
  type FoldMemoryOptions,
} from '../../../src/app/streams/stream-folds.ts';
import { actingCluster, clusterMeter } from '../../../src/domain/clusters/acting.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { registry } from '../../../src/domain/registry.ts';

type Golden = {
  readonly history: readonly RecordedEvent[];
  readonly lifecycle: readonly JsonObject[];
  readonly heartbeats: {
    readonly after: number;
    readonly windowStart: string;
    readonly records: readonly JsonObject[];
  };
};
const START = '2026-11-21T12:00:00.000Z';
const FILE = new URL('../../../fixtures/metering/cluster-life.json', import.meta.url);
const golden = JSON.parse(readFileSync(FILE, 'utf8')) as Golden;
const { history } = golden;
const shown = (record: KafkaRecord): unknown => ({ ...record, value: JSON.parse(record.value ?? 'null') });

/** The history as a store gives it, and how often it was asked. */
const storeOf = (events: readonly RecordedEvent[]) => {
  const asked: number[] = [];
  return {
    asked,
    async *readStream(
      _stream: string,
      { from = 0, limit = Infinity }: { from?: number; limit?: number } = {},
    ) {
      asked.push(from);
      yield* events.slice(from, from + limit);
    },
  };
};
const lifecycleOver = (store: ReturnType<typeof storeOf>, memory: FoldMemoryOptions = {}) =>
  createLifecycleMapper({
    folds: createStreamFolds({
      initial: emptyMeter,
      fold: (before, event) => foldMeter(registry, before, event),
      readStream: store.readStream,
      turn: () => undefined,
      name: 'test',
      memory: createFoldMemory(memory),
    }),
  });
const mapAll = async (map: ReturnType<typeof lifecycleOver>, events: readonly RecordedEvent[]) => {
  const records: KafkaRecord[] = [];
  for (const event of events) records.push(...(await map(event)));
  return records;
};

describe('metering records', () => {
  it("of a cluster's life are those of the stored sample, in its order", async () => {
    const store = storeOf(history);
    const records = await mapAll(lifecycleOver(store), history);
    expect(records.map(shown)).to.deep.equal(golden.lifecycle);
    expect(store.asked, 'folded as the events come').to.deep.equal([]);
  });

  it('are the same for an event that comes again, alone, or first after a restart', async () => {
    const map = lifecycleOver(storeOf(history));
    const first = await mapAll(map, history);
    expect(await mapAll(map, history)).to.deep.equal(first);
    for (const event of history) {
      const alone = await lifecycleOver(storeOf(history))(event);
      expect(alone).to.deep.equal(
        first.filter(({ value }) => value?.includes(`"osacrevision":${event.revision},`)),
      );
    }
  });

  it("have OSAC's key and exactly its headers; every lifecycle record has its twelve fields", () => {
    for (const record of [...golden.lifecycle, ...golden.heartbeats.records]) {
      const { key, headers, value } = record as unknown as {
        key: string;
        headers: Record<string, string>;
        value: JsonObject;
      };
      expect(Object.keys(headers)).to.deep.equal(['ce_specversion', 'ce_type', 'ce_source', 'ce_id']);
      expect(headers).to.deep.equal({
        ce_specversion: value['specversion'],
        ce_type: value['type'],
        ce_source: 'osac-metering',
        ce_id: value['id'],
      });
      expect(key).to.equal(value['osacresourceid']);
      expect(value).not.to.have.any.keys('subject', 'osacsite');
      const lifecycle = value['type'] !== 'osac.resource.heartbeat.v1';
      expect(Object.keys(value['data'] as JsonObject)).to.have.length(lifecycle ? 12 : 8);
    }
  });

  it('of a heartbeat come from the meter and the window alone, with the window in their ids', () => {
    const { after, windowStart, records } = golden.heartbeats;
    const meter = history
      .slice(0, after + 1)
      .reduce((fold, event) => foldMeter(registry, fold, event), emptyMeter()).meter;
    const startMs = Date.parse(windowStart);
    expect(heartbeatsOf(meter ?? clusterMeter.initial(), startMs).map(shown)).to.deep.equal(records);
    const last = history.reduce((fold, event) => foldMeter(registry, fold, event), emptyMeter()).meter;
    expect(heartbeatsOf(last ?? clusterMeter.initial(), startMs), 'of what is not billed').to.deep.equal([]);
  });

  it('of what OSAC does not meter go to a topic of their own, without heartbeats', () => {
    const meter = toyMeter({ isOurs: true });
    const made = { type: 'ToyMade', data: { at: START, id: 't1', tenant: 'acme' } };
    const { meter: now, changes } = meter.fold(meter.initial(), made);
    expect(changes.map(({ type }) => type)).to.deep.equal(['created', 'started']);
    expect(meteringTopicOf(now.facts ?? {})).to.equal('osac.metering.extra');
    expect(heartbeatsOf(now, Date.parse(START) + 60_000)).to.deep.equal([]);
    expect(
      meteredTopics([
        { ...actingCluster, meter: clusterMeter },
        { ...actingCluster, kind: 'toy', meter },
      ] as never).map(([topic, kinds]) => [topic, kinds.map(({ kind }) => kind)]),
    ).to.deep.equal([
      ['osac.metering.lifecycle', ['cluster']],
      ['osac.metering.extra', ['toy']],
    ]);
  });

  it('are not made of a cluster without a tenant', async () => {
    const [order] = history;
    if (order === undefined) throw new Error('the sample is empty');
    const nobodys = { ...order, data: { ...order.data, tenant: '' } };
    expect(await lifecycleOver(storeOf([nobodys]))(nobodys)).to.deep.equal([]);
  });

  for (const [bound, memory] of [
    ['streams', { streams: 1 }],
    ['characters', { characters: 1_500 }],
  ] as const)
    it(`need no more memory than they may keep: ${bound}`, async () => {
      const store = storeOf(history);
      const [first] = history;
      if (first === undefined) throw new Error('the sample is empty');
      const map = lifecycleOver(store, memory);
      for (const [i, event] of history.entries()) {
        await map(event);
        await map({ ...first, stream: `cluster-other-${i}`, revision: 0 });
      }
      expect(store.asked, 'read again whenever it had left').to.deep.equal(history.slice(1).map(() => 0));
    });
});
