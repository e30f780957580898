import { expect } from 'chai';
import fc from 'fast-check';
import type { RecordedEvent as StoredEvent } from '@eventstore/db-client';
import {
  CorruptEvent,
  knownPosition,
  parsePosition,
  positionOf,
  prepare,
  toRecorded,
} from '../../../src/adapters/event-store/eventstoredb/convert.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { check } from '../../support/property.ts';

describe('EventStoreDB adapter: events and positions', () => {
  const given = (fields: Partial<Parameters<typeof prepare>[0]> = {}) => ({
    id: '6b1f6d3e-9a51-4b0e-8e0c-1d5b7d0c8a11',
    type: 'Placed',
    data: '{}',
    metadata: '{}',
    ...fields,
  });
  /** What the library makes of the bytes that went out. */
  const stored = (prepared: ReturnType<typeof prepare>): StoredEvent =>
    ({
      streamId: 'order-1',
      revision: 3n,
      id: prepared.id,
      type: prepared.type,
      isJson: true,
      created: new Date(0),
      position: { commit: 7n, prepare: 5n },
      data: JSON.parse(Buffer.from(prepared.data).toString()) as JsonObject,
      metadata: JSON.parse(Buffer.from(prepared.metadata).toString()) as JsonObject,
    }) as StoredEvent;
  const word = fc.string({ maxLength: 20 });
  const json = fc.dictionary(
    word.filter((key) => !key.startsWith('$') && key !== '__proto__'),
    fc.jsonValue(),
  );

  it('a position sorts as the log does, over the whole range of a log, and comes back', () => {
    const half = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
    const ordered = fc.property(half, half, half, half, (c1, p1, c2, p2) => {
      const [one, two] = [positionOf(c1, p1), positionOf(c2, p2)];
      expect(one).to.match(/^\d{40}$/);
      expect(parsePosition(one)).to.deep.equal({ commit: c1, prepare: p1 });
      const before = c1 < c2 || (c1 === c2 && p1 < p2);
      expect(one < two).to.equal(before);
    });
    check(ordered);
  });

  it('2^63 and more is no position, whoever says so', () => {
    const half = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const beyond = fc.bigInt({ min: 2n ** 63n, max: 2n ** 64n - 1n });
    const refused = fc.property(half, beyond, fc.boolean(), (one, other, first) => {
      const [commit, prepare] = first ? [other, one] : [one, other];
      expect(knownPosition({ commit, prepare })).to.equal(undefined);
      expect(() => parsePosition(positionOf(commit, prepare))).to.throw(RangeError, 'not a position');
    });
    check(refused);
  });

  it('data and metadata come back as they were given, with and without correlation', () => {
    const ids = fc.record({ correlationId: word, causationId: word }, { requiredKeys: [] });
    const roundTrip = fc.property(json, json, ids, (data, rest, reserved) => {
      const metadata = { ...rest, ...reserved };
      const prepared = prepare(given({ data: JSON.stringify(data), metadata: JSON.stringify(metadata) }));
      const raw = JSON.parse(Buffer.from(prepared.metadata).toString()) as JsonObject;
      expect(raw['$correlationId']).to.equal(reserved.correlationId);
      expect(raw['$causationId']).to.equal(reserved.causationId);
      const recorded = toRecorded(stored(prepared));
      expect(JSON.stringify(recorded.data)).to.equal(JSON.stringify(data));
      expect(JSON.stringify(recorded.metadata)).to.equal(JSON.stringify(metadata));
      expect(recorded).to.include({ position: positionOf(7n, 5n), stream: 'order-1', revision: 3 });
    });
    check(roundTrip);
  });

  it('correlation that is no text is left where it is', () => {
    const metadata = '{ "correlationId" : 5, "x":1 }';
    expect(Buffer.from(prepare(given({ metadata })).metadata).toString()).to.equal(metadata);
    expect(Buffer.from(prepare(given({ metadata: ' { } ' })).metadata).toString()).to.equal(' { } ');
  });

  it('event types of the store itself, and none at all, are refused', () => {
    for (const type of ['', '$metadata']) expect(() => prepare(given({ type }))).to.throw(TypeError);
  });

  it('an event without a position, or of another content type, is corrupt', () => {
    const good = stored(prepare(given()));
    const { position: _position, ...without } = good;
    for (const bad of [without, { ...good, isJson: false, data: new Uint8Array() }])
      expect(() => toRecorded(bad as StoredEvent)).to.throw(CorruptEvent, /event 3 of stream order-1/);
  });
});
