import { expect } from 'chai';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createEventMapper } from '../../../src/app/streams/event-records.ts';
import { NewerRelease } from '../../../src/app/streams/current-version.ts';
import type { KafkaRecord } from '../../../src/app/streams/stream.ts';
import { contextsOf, eventsTopic } from '../../../src/app/streams/topics.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { isEncrypted } from '../../../src/domain/personal.ts';
import { placesOf, valueAtPlace } from '../../../src/domain/document-places.ts';
import { createRegistry, eventTypes, registry } from '../../../src/domain/registry.ts';
import { recorded, recordedSamples } from '../../support/streams/samples.ts';

const source = 'fulfillment-ledger/store-1';
const mapped = (
  event: RecordedEvent,
  audience: 'tenant' | 'provider' = 'tenant',
  known = registry,
): readonly KafkaRecord[] =>
  contextsOf(known).flatMap((context) => {
    const map = createEventMapper({
      registry: known,
      source,
      topic: eventsTopic(context),
      context,
      audience,
    });
    return map(event) as readonly KafkaRecord[];
  });
const valueOf = (record: KafkaRecord | undefined): JsonObject =>
  JSON.parse(record?.value ?? 'null') as JsonObject;

describe('Kafka records of events', () => {
  const resized = recorded(
    'NodeSetResized',
    { at: '2026-11-21T12:00:00.000Z', name: 'workers', from: 3, to: 5 },
    { revision: 7 },
  );

  it('are structured CloudEvents with the place in the log and who caused it', () => {
    const [record, ...others] = mapped(resized);
    expect(others).to.deep.equal([]);
    expect({ ...record, value: valueOf(record) }).to.deep.equal({
      topic: 'osac.events.clusters.v1',
      key: 'c1',
      headers: {
        'content-type': 'application/cloudevents+json; charset=utf-8',
        osacstream: 'cluster-c1',
        osacrevision: '7',
      },
      value: {
        specversion: '1.0',
        id: 'cluster-c1@7',
        source,
        type: 'osac.clusters.NodeSetResized.v1',
        time: '2026-11-21T12:00:00.123Z',
        datacontenttype: 'application/json',
        osacstream: 'cluster-c1',
        osacrevision: 7,
        osacposition: '00000000000000000008',
        osaccorrelation: 'correlation-1',
        osaccausation: 'causation-1',
        osacactor: 'subject-1',
        osactenant: 't1',
        osacproject: 'p1',
        osacresourceid: 'c1',
        osacresourcetype: 'cluster',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
        osacaudience: 'tenant',
        data: { at: '2026-11-21T12:00:00.000Z', name: 'workers', from: 3, to: 5 },
      },
    });
  });

  it('say for whom it was done, where that is another', () => {
    const actor = { subjectId: 'system', authMethod: 'internal', roles: [], onBehalfOf: 'subject-1' };
    const value = valueOf(mapped({ ...resized, metadata: { ...resized.metadata, actor } })[0]);
    expect(value).to.include({ osacactor: 'system', osaconbehalfof: 'subject-1' });
  });

  it('leave out what is empty, and take the time of the store where the event has none', () => {
    const bare = { ...resized, metadata: { schemaVersion: 1, tenant: '' } };
    const value = valueOf(mapped(bare)[0]);
    expect(value['time']).to.equal('2026-11-21T12:00:01.000Z');
    expect(value).to.include.keys('osacstream', 'osacrevision', 'osacposition');
    expect(value).not.to.have.any.keys(
      'osactenant',
      'osacproject',
      'osacactor',
      'osaconbehalfof',
      'osaccorrelation',
      'traceparent',
    );
  });

  it('come from every event that is not internal, on the topic of its context alone', () => {
    for (const event of recordedSamples()) {
      const entry = registry.get(event.type);
      const topics = mapped(event).map(({ topic }) => topic);
      const expected = entry?.audience === 'internal' ? [] : [`osac.events.${entry?.context}.v1`];
      expect(topics, event.type).to.deep.equal(expected);
    }
  });

  it("hold no field that only the provider may see, unless the event or the topic is the provider's", () => {
    let hidden = 0;
    for (const event of recordedSamples()) {
      const entry = registry.get(event.type);
      if (entry?.audience !== 'tenant') continue;
      const [forTenants, forProvider] = [valueOf(mapped(event)[0]), valueOf(mapped(event, 'provider')[0])];
      expect(forTenants, event.type).not.to.have.property('osacsite');
      expect(forProvider, event.type).to.include({ osacsite: 'hub-east' });
      for (const path of entry.providerOnly ?? []) {
        hidden += placesOf(forProvider['data'] as JsonObject, path).length;
        expect(placesOf(forTenants['data'] as JsonObject, path), `${event.type} ${path}`).to.deep.equal([]);
      }
    }
    expect(hidden).to.be.greaterThan(10);
    const [hub] = recordedSamples().filter(({ type }) => type === 'HubRegistered');
    expect(valueOf(mapped(hub ?? resized)[0])).to.include({ osacaudience: 'provider', osacsite: 'hub-east' });
  });

  it('never say what is hidden of an event, nor the salt that it is hidden with', () => {
    const hidden = { paths: ['/data/hub'], salt: '00112233445566778899aabbccddeeff' };
    for (const event of recordedSamples())
      for (const audience of ['tenant', 'provider'] as const)
        for (const record of mapped({ ...event, metadata: { ...event.metadata, hidden } }, audience))
          for (const kept of [hidden.salt, '/data/hub'])
            expect(JSON.stringify(record), event.type).not.to.include(kept);
  });

  it('hold nothing that somebody wrote as a reason of a hold, an erasure or a grant, or asked of the history', () => {
    const types = [
      'AuditRead',
      'LegalHoldPlaced',
      'LegalHoldReleased',
      'ErasureBegun',
      'SubjectKeyDestroyed',
      'AuditGrantGiven',
      'AuditGrantWithdrawn',
    ];
    const samples = recordedSamples().filter(({ type }) => types.includes(type));
    expect(new Set(samples.map(({ type }) => type)).size).to.equal(types.length);
    for (const event of samples) {
      const shown = valueOf(mapped(event)[0])['data'] as JsonObject;
      expect(shown, event.type).not.to.have.any.keys('reason', 'ticket', 'query');
      expect(shown, event.type).to.include.keys('at');
    }
  });

  it('hold personal data as ciphertext', () => {
    let seen = 0;
    for (const event of recordedSamples()) {
      for (const path of registry.get(event.type)?.personal ?? []) {
        const data = valueOf(mapped(event, 'provider')[0])['data'] as JsonObject;
        for (const place of placesOf(data, path)) {
          seen += 1;
          expect(isEncrypted(valueAtPlace(data, place)), `${event.type} ${path}`).to.equal(true);
        }
      }
    }
    expect(seen).to.be.greaterThan(0);
  });

  it('are of the current version, whatever version was stored', () => {
    const lifting = createRegistry(
      eventTypes.map((entry) =>
        entry.type === resized.type
          ? { ...entry, version: 2, upcast: { 1: (data) => ({ ...data, by: 2 }) } }
          : entry,
      ),
    );
    const value = valueOf(mapped(resized, 'tenant', lifting)[0]);
    expect(value).to.include({ type: 'osac.clusters.NodeSetResized.v2' });
    expect(value['data']).to.include({ from: 3, by: 2 });
  });

  it('are not made of an event that a newer release wrote', () => {
    const newer = { ...resized, metadata: { ...resized.metadata, schemaVersion: 2 } };
    expect(() => mapped(newer)).to.throw(
      'NodeSetResized is of version 2; this release knows it up to version 1',
    );
    expect(() => mapped({ ...resized, type: 'NodeSetPainted' })).to.throw(NewerRelease, 'NodeSetPainted');
    const own = { ...resized, stream: 'sys-something', type: 'SomethingNoted' };
    expect(mapped(own), 'the service tells nothing of itself').to.deep.equal([]);
  });
});
