import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { createEventMapper } from '../../../src/app/streams/event-records.ts';
import type { KafkaRecord } from '../../../src/app/streams/stream.ts';
import { contextsOf, eventsTopic, topicsOf } from '../../../src/app/streams/topics.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { asyncApi, asyncApiDocument, decoded } from '../../support/streams/asyncapi.ts';
import { recordedSamples } from '../../support/streams/samples.ts';

const api = asyncApi(asyncApiDocument());
const { document } = api;

const sampleRecords = (audience: 'tenant' | 'provider'): readonly KafkaRecord[] =>
  contextsOf(registry).flatMap((context) => {
    const source = 'fulfillment-ledger/store-1';
    const map = createEventMapper({ registry, source, topic: eventsTopic(context), context, audience });
    return recordedSamples().flatMap((event) => map(event) as readonly KafkaRecord[]);
  });

const GOLDEN = new URL('../../../fixtures/metering/cluster-life.json', import.meta.url);
const metering = (): readonly KafkaRecord[] => {
  const { lifecycle, heartbeats } = JSON.parse(readFileSync(GOLDEN, 'utf8')) as {
    lifecycle: { value: JsonObject }[];
    heartbeats: { records: { value: JsonObject }[] };
  };
  return [...lifecycle, ...heartbeats.records].map(
    (record) => ({ ...record, value: JSON.stringify(record.value) }) as unknown as KafkaRecord,
  );
};

const references = (node: JsonValue): readonly string[] => {
  if (Array.isArray(node)) return node.flatMap(references);
  if (!isObject(node)) return [];
  const own = node['$ref'];
  return [...(typeof own === 'string' ? [own] : []), ...Object.values(node).flatMap(references)];
};

describe('AsyncAPI document', () => {
  it('has a channel for every topic, with its messages, and an operation that sends them', () => {
    expect(document['asyncapi']).to.equal('3.0.0');
    const topics = topicsOf(registry, kinds);
    const channels = objectAt(document, 'channels');
    expect(Object.keys(channels)).to.deep.equal(topics.map(({ name }) => name));
    for (const { name, partitions, cleanup, retentionMs } of topics) {
      expect(api.messagesOf(name), name).not.to.deep.equal([]);
      expect(objectAt(objectAt(objectAt(channels, name), 'bindings'), 'kafka')).to.deep.include({
        partitions,
        topicConfiguration: { 'cleanup.policy': [cleanup], 'retention.ms': retentionMs },
      });
    }
    const sending = Object.values(objectAt(document, 'operations')).map((operation) => [
      stringAt(operation, 'action'),
      stringAt(objectAt(operation, 'channel'), '$ref'),
    ]);
    expect(sending).to.deep.equal(topics.map(({ name }) => ['send', `#/channels/${name}`]));
  });

  it('points at nothing that is not there', () => {
    const found = references(document);
    expect(found.length).to.be.greaterThan(100);
    for (const reference of new Set(found)) {
      const target = reference
        .slice(2)
        .split('/')
        .reduce<JsonValue | undefined>((node, key) => (isObject(node) ? node[key] : undefined), document);
      expect(target, reference).not.to.equal(undefined);
    }
  });

  for (const audience of ['tenant', 'provider'] as const)
    it(`describes the record of every stored sample, as the ${audience} reads it`, () => {
      const records = sampleRecords(audience);
      const told = new Set(
        records.map(({ value }) => stringAt(JSON.parse(value ?? '{}') as JsonObject, 'type')),
      );
      const types = registry.types.filter((entry) => entry.audience !== 'internal');
      expect(told.size).to.equal(types.length);
      for (const record of records) expect(api.problems(record), record.value ?? '').to.deep.equal([]);
    });

  it("describes OSAC's metering records", () => {
    for (const record of metering()) expect(api.problems(record), record.value ?? '').to.deep.equal([]);
  });

  /**
   * Nothing here ever has to be corrected (docs/streams.md), and consumers that are made for OSAC's corrections know
   * them by
   * their ids: the form is that of OSAC.
   */
  it("describes OSAC's corrections and their ids", () => {
    const name = 'osac.resource.correction.v1';
    const topic = 'osac.metering.corrections';
    const source = 'osac-metering/reconciler';
    const key = '0193a1b2-0000-7000-8000-0000000000c1';
    const id = `correction/${key}/state_drift/READY/FAILED/9e3779b97f4a7c15/workers`;
    const headers = { ce_specversion: '1.0', ce_type: name, ce_source: source, ce_id: id };
    const payload = {
      specversion: '1.0',
      id,
      source,
      type: name,
      time: '2026-11-21T12:00:00.000Z',
      datacontenttype: 'application/json',
      osacresourceid: key,
      osacresourcetype: 'cluster_order',
      osactenant: 'acme',
      data: {
        resource_id: key,
        resource_type: 'cluster_order',
        tenant_id: 'acme',
        project_id: null,
        reason: 'state_drift',
        description: 'the projection has READY, the service FAILED',
        corrected_state: 'FAILED',
        previous_state_in_projection: 'READY',
        actual_state_from_source: 'FAILED',
        billing_dimensions: {
          cluster_template: 'small',
          node_set: 'workers',
          component: 'worker',
          host_type: 'fc430',
          node_count: 2,
        },
        schema_version: 'v1',
      },
    };
    const problems = (changed: string): readonly string[] =>
      api.problems({
        topic,
        key,
        headers: { ...headers, ce_id: changed },
        value: JSON.stringify({ ...payload, id: changed }),
      });
    expect(problems(id)).to.deep.equal([]);
    expect(decoded({ topic, key, headers, value: JSON.stringify(payload) }).source).to.equal(source);
    for (const other of [
      'correction/c1/missed_creation//READY/1',
      'correction/c1/missed_deletion/READY//ffffffffffffffff/_control_plane',
      'correction/c1/billing_dimensions_drift/READY/READY/0a/workers',
    ])
      expect(problems(other), other).to.deep.equal([]);
    for (const wrong of [
      '0193a1b2-0000-7000-8000-0000000000c1',
      'correction/c1/mistake/READY/FAILED/1',
      'correction/c1/state_drift/READY/FAILED',
      'correction/c1/state_drift/READY/FAILED/xyz',
      'correction/c1/state_drift/READY/FAILED/00000000000000000',
      'correction/c1/state_drift/READY/FAILED/1/workers/2',
    ])
      expect(problems(wrong).length, wrong).to.equal(2);
  });

  it("describes the ids of OSAC's other records, in value and header", () => {
    const uuid = '0193a1b2-0000-7000-8000-0000000000c1';
    for (const [type, good, bad] of [
      ['created', uuid, `${uuid}/workers`],
      // What is one thing has no component in its ids: a compute instance.
      ['started', uuid, `${uuid}/workers/2`],
      ['started', `${uuid}/workers`, 'workers'],
      ['heartbeat', `hb/${uuid}/1795262400`, `hb/${uuid}/`],
      ['heartbeat', `hb/${uuid}/1795262400/workers`, `hb/${uuid}/1795262400/workers/2`],
      ['heartbeat', `hb/${uuid}/1795262400/_control_plane`, `hb/${uuid}/1795262400.5/workers`],
    ] as const) {
      const record = metering().find(({ headers }) => headers['ce_type'] === `osac.resource.${type}.v1`);
      if (record?.value === undefined || record.value === null) throw new Error(`no sample of ${type}`);
      const value = JSON.parse(record.value) as JsonObject;
      const problems = (id: string): readonly string[] =>
        api.problems({
          ...record,
          value: JSON.stringify({ ...value, id }),
          headers: { ...record.headers, ce_id: id },
        });
      expect(problems(good), good).to.deep.equal([]);
      expect(problems(bad).length, bad).to.equal(2);
    }
  });

  it('would notice a field too many, one too few, and a header', () => {
    const [record] = sampleRecords('tenant');
    if (record?.value === undefined || record.value === null) throw new Error('no sample');
    const value = JSON.parse(record.value) as JsonObject;
    const data = objectAt(value, 'data');
    const { at: _at, ...less } = data;
    const wrong: readonly KafkaRecord[] = [
      { ...record, value: JSON.stringify({ ...value, data: { ...data, surprise: 1 } }) },
      { ...record, value: JSON.stringify({ ...value, data: less }) },
      { ...record, value: JSON.stringify({ ...value, surprise: 'x' }) },
      { ...record, headers: { ...record.headers, surprise: 'x' } },
      { ...record, topic: 'osac.events.hubs.v1' },
    ];
    for (const one of wrong) expect(api.problems(one)).not.to.deep.equal([]);
  });
});

describe('records as an independent library reads them', () => {
  it('are valid CloudEvents, and say what was written', () => {
    const records = [...sampleRecords('tenant'), ...sampleRecords('provider'), ...metering()];
    expect(records.length).to.be.greaterThan(150);
    for (const record of records) {
      const event = decoded(record);
      const { time, data, ...attributes } = JSON.parse(record.value ?? '{}') as JsonObject & { time: string };
      expect(event.data).to.deep.equal(data);
      expect(Date.parse(event.time ?? '')).to.equal(Date.parse(time));
      for (const [name, value] of Object.entries(attributes)) expect(event[name], name).to.equal(value);
    }
  });
});
