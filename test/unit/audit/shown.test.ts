import { expect } from 'chai';
import { shownTo } from '../../../src/app/audit/shown.ts';
import { createEventCodec } from '../../../src/app/event-codec.ts';
import type { RecordedEvent } from '../../../src/app/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { eventTypes, registry } from '../../../src/domain/registry.ts';

describe('what auditors are shown of an event', () => {
  const words = { codec: createEventCodec(eventTypes), registry };
  const event = (metadata: JsonObject): RecordedEvent => ({
    position: '0000000000000001',
    stream: 'cluster-c1',
    revision: 3,
    id: '0193a1b2-0000-7000-8000-000000000001',
    type: 'ClusterBecameReady',
    data: { at: '2026-11-21T12:00:00.000Z' },
    metadata: { schemaVersion: 1, tenant: 'acme', ...metadata },
    recordedAt: '2026-11-21T12:00:00.000Z',
  });

  it('is everything where nothing is for the provider alone', () => {
    expect(shownTo(event({}), 'tenant', words)).to.deep.equal({
      shown: 'full',
      data: event({}).data,
      metadata: event({}).metadata,
    });
  });
  it('leaves the hub out for tenants, and says that something is left out', () => {
    const stored = event({ hub: 'sim-east-1', instance: 'i1' });
    expect(shownTo(stored, 'tenant', words)).to.deep.equal({
      shown: 'redacted',
      data: stored.data,
      metadata: event({ instance: 'i1' }).metadata,
    });
    expect(shownTo(stored, 'provider', words)).to.deep.equal({
      shown: 'full',
      data: stored.data,
      metadata: stored.metadata,
    });
  });
});
