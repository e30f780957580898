import { expect } from 'chai';
import { canonicalHash, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import { shownTo } from '../../../src/app/audit/shown-event.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { commandMetadata } from '../../../src/app/log/metadata.ts';
import { eventSamples } from '../../support/domain/event-samples.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
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
      stored: { data: event({}).data, metadata: event({}).metadata },
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
      stored: { data: stored.data, metadata: stored.metadata },
    });
  });

  describe('of which tenants may see a part', () => {
    const SALT = '00112233445566778899aabbccddeeff';
    const selected = (paths: readonly string[], more: JsonObject = {}): RecordedEvent => ({
      ...event({ hub: 'sim-east-1', hidden: { paths: [...paths], salt: SALT } }),
      type: 'HubNotAccepting',
      data: { hub: 'sim-east-1', since: '2026-11-21T12:00:00.000Z', ...more },
    });
    const part = { data: { since: '2026-11-21T12:00:00.000Z' }, metadata: event({}).metadata };
    const whole = selected(['/data/hub', '/metadata/hub']);

    it('is that part for them, in the form in which the leaf is of it', () => {
      expect(shownTo(whole, 'tenant', words)).to.deep.equal({ shown: 'redacted', ...part, stored: part });
    });
    it('is all of it for the provider, the salt too: without it the leaf could not be checked', () => {
      const { data, metadata } = whole;
      expect(shownTo(whole, 'provider', words)).to.deep.equal({
        shown: 'full',
        data,
        metadata,
        stored: { data, metadata },
      });
    });
    it('is not proven where less may be seen today than when it was stored, and holds neither paths nor salt', () => {
      for (const paths of [['/data/hub'], ['/metadata/hub']])
        expect(shownTo(selected(paths), 'tenant', words)).to.deep.equal({ shown: 'redacted', ...part });
    });
    it('is less than may be seen today where more was hidden then: only that is what the leaf is of', () => {
      const more = selected(['/data/hub', '/data/since', '/metadata/hub']);
      expect(shownTo(more, 'tenant', words)).to.deep.equal({
        shown: 'redacted',
        ...part,
        stored: { data: {}, metadata: part.metadata },
      });
    });
    it('is not proven where what is said of hidden fields is not in order', () => {
      const odd = {
        ...whole,
        metadata: { ...whole.metadata, hidden: { paths: ['/data/absent'], salt: SALT } },
      };
      expect(shownTo(odd, 'tenant', words)).to.deep.equal({ shown: 'redacted', ...part });
    });
  });

  it('is proven to tenants, of every type of which they may see a part', () => {
    const { codec } = words;
    const context = commandMetadata(fakeContext('c-1'), 'DoThing', '2026-11-21T10:00:00.000Z', 'i-1');
    const inPart: string[] = [];
    for (const { type, data } of samplesOfToday()) {
      const entry = codec.encode({ type, data }, 'e-1', context);
      const stored = {
        ...event({}),
        type,
        data: JSON.parse(entry.data) as JsonObject,
        metadata: JSON.parse(entry.metadata) as JsonObject,
      };
      const leaf = leafOf(stored);
      const seen = shownTo(stored, 'tenant', words);
      expect(leaf.hidden !== undefined, type).to.equal(seen?.shown === 'redacted');
      if (seen === undefined) continue;
      expect(canonicalHash(seen.stored?.data ?? {}), type).to.equal(leaf.data);
      expect(canonicalHash(seen.stored?.metadata ?? {}), type).to.equal(leaf.metadata);
      expect(seen.stored?.data, type).to.deep.equal(seen.data);
      if (seen.shown === 'redacted') inPart.push(type);
    }
    expect(inPart).to.include.members(['ClusterOrdered', 'HubSelected', 'AuditRead', 'LegalHoldPlaced']);
  });
});

/** A stored sample of every type, at its current version. */
const samplesOfToday = (): { readonly type: string; readonly data: JsonObject }[] =>
  eventSamples.filter(({ type, version }) => registry.get(type)?.version === version);
