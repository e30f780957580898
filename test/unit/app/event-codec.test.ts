import { expect } from 'chai';
import fc from 'fast-check';
import { z } from 'zod';
import { completeMetadata, commandMetadata } from '../../../src/app/log/metadata.ts';
import { createEventCodec, InvalidEvent } from '../../../src/app/log/event-codec.ts';
import type { EventToAppend } from '../../../src/app/log/event-store.ts';
import { eventId } from '../../../src/app/log/identifiers.ts';
import type { EventType } from '../../../src/domain/event-type.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { anyText } from '../../support/arbitraries/any-text.ts';
import { check } from '../../support/property.ts';

const entry = (more: Partial<EventType>): EventType => ({
  type: 'ThingHappened',
  version: 1,
  context: 'things',
  audience: 'tenant',
  schema: z.strictObject({ what: z.string() }),
  ...more,
});
const metadata = commandMetadata(fakeContext('c-1'), 'DoThing', '2026-11-21T10:00:00.000Z', 'i-1');

/** As every adapter of the event store hands it out. */
const metadataOf = ({ data, metadata: text }: EventToAppend): JsonObject =>
  completeMetadata(JSON.parse(text) as JsonObject, JSON.parse(data) as JsonObject);

describe('event codec', () => {
  const codec = createEventCodec([entry({})]);

  it('writes data and metadata v1 as JSON texts', () => {
    const encoded = codec.encode({ type: 'ThingHappened', data: { what: 'ü' } }, 'id-1', metadata);
    expect(encoded).to.include({ id: 'id-1', type: 'ThingHappened', data: '{"what":"ü"}' });
    expect(metadataOf(encoded)).to.deep.equal({
      tenant: 'acme',
      project: '',
      actor: { subjectId: 'subject-1', roles: ['client'], authMethod: 'jwt', via: 'http' },
      command: 'DoThing',
      commandId: 'c-1',
      requestHash: 'hash of c-1',
      correlationId: 'c-1',
      causationId: 'c-1',
      occurredAt: '2026-11-21T10:00:00.000Z',
      schemaVersion: 1,
      instance: 'i-1',
    });
  });

  it('names what tenants may not see of an event, with a salt of its own; of all others nothing', () => {
    let made = 0;
    const hiding = createEventCodec(
      [entry({ schema: z.looseObject({}), providerOnly: ['sets.*.image'] })],
      () => {
        made += 1;
        return String(made).repeat(32);
      },
    );
    const happened = (data: JsonObject) => ({ type: 'ThingHappened', data });
    const events = [
      happened({ sets: { a: { image: 'i' } } }),
      happened({ sets: {} }),
      happened({ sets: [{ image: 'j' }] }),
    ];
    const stored = hiding.encodeAll(events, 'thing-1', metadata);
    expect(stored.map((event) => metadataOf(event)['hidden'])).to.deep.equal([
      { paths: ['/data/sets/a/image'], salt: '1'.repeat(32) },
      undefined,
      { paths: ['/data/sets/0/image'], salt: '2'.repeat(32) },
    ]);
    expect(stored.map(metadataOf)[1]).to.deep.equal({ ...metadata, schemaVersion: 1 });
    const onHub = hiding.encode(happened({}), 'id-1', { ...metadata, hub: 'h' });
    expect(metadataOf(onHub)).to.deep.include({
      hub: 'h',
      hidden: { paths: ['/metadata/hub'], salt: '3'.repeat(32) },
    });
  });

  it('draws salts by chance, 128 bits', () => {
    const hiding = createEventCodec([entry({ providerOnly: ['what'] })]);
    const salts = Array.from({ length: 600 }, () => {
      const { metadata: text } = hiding.encode({ type: 'ThingHappened', data: { what: 'x' } }, 'i', metadata);
      return /"salt":"([0-9a-f]{32})"/.exec(text)?.[1];
    });
    expect(new Set(salts).size).to.equal(600);
    expect(salts).to.not.include(undefined);
  });

  it('derives the ids of an append from command, stream and index', () => {
    const happened = { type: 'ThingHappened', data: { what: 'x' } };
    const ids = codec.encodeAll([happened, happened], 'thing-1', metadata).map((event) => event.id);
    expect(ids).to.deep.equal([eventId('c-1', 'thing-1', 0), eventId('c-1', 'thing-1', 1)]);
    expect(new Set([...ids, eventId('c-1', 'thing-2', 0), eventId('c-2', 'thing-1', 0)]).size).to.equal(4);
  });

  it('keeps event ids for ever: they are part of the storage format', () => {
    expect(eventId('c-1', 'thing-1', 0)).to.equal('d4018c28-9dd1-5367-a2ba-f0d306a01aba');
  });

  it('refuses personal data in clear, without repeating it', () => {
    const sealed = { alg: 'A256GCM', keyId: 's.1', nonce: 'n', ct: 'c', tag: 't' };
    const about = createEventCodec([
      entry({
        schema: z.strictObject({ who: z.unknown(), all: z.unknown() }),
        personal: ['who', 'all.*.name'],
      }),
    ]);
    const encode = (who: unknown, name: unknown) =>
      about.encode({ type: 'ThingHappened', data: { who, all: [{ name }] } }, 'i', metadata);
    expect(encode(sealed, sealed).data).to.include('"ct":"c"');
    for (const clear of ['Ann', '', 7, { ...sealed, alg: 'none' }, { name: 'Ann' }]) {
      expect(() => encode(clear, sealed)).to.throw(InvalidEvent, /who is personal data in clear$/);
      expect(() => encode(sealed, clear)).to.throw(InvalidEvent, /all\.0\.name is personal data in clear$/);
    }
  });

  it('refuses an unregistered type, data against its schema, and a type registered twice', () => {
    expect(() => codec.encode({ type: 'Unknown', data: {} }, 'i', metadata)).to.throw(
      InvalidEvent,
      'Unknown',
    );
    expect(() => codec.encode({ type: 'ThingHappened', data: { what: 1 } }, 'i', metadata)).to.throw(
      InvalidEvent,
      'what',
    );
    expect(() => createEventCodec([entry({}), entry({})])).to.throw(TypeError, 'twice');
  });

  const open = createEventCodec([entry({ schema: z.looseObject({}) })]);
  for (const [name, value] of [
    ['undefined', undefined],
    ['NaN', Number.NaN],
    ['a Date', new Date(0)],
    ['a bigint', 1n],
    ['a function', () => 1],
    ['a lone surrogate', 'a\ud800'],
    ['a Map', new Map()],
  ] as const) {
    it(`refuses ${name}, which would not come back from the log`, () => {
      const event = { type: 'ThingHappened', data: { list: [{ value }] } };
      expect(() => open.encode(event, 'i', metadata)).to.throw(InvalidEvent, 'data.list[0].value');
    });
  }

  it('returns any JSON as it was given', () => {
    check(
      fc.property(
        fc.dictionary(anyText({ maxLength: 8 }), fc.jsonValue({ maxDepth: 3 }), {
          maxKeys: 4,
        }),
        (value) => {
          // Negative zero is 0 in RFC 8785.
          const data = JSON.parse(JSON.stringify(value)) as JsonObject;
          if (!wellFormed(data)) return;
          const encoded = open.encode({ type: 'ThingHappened', data }, 'i', metadata);
          const stored = {
            type: encoded.type,
            data: JSON.parse(encoded.data) as JsonObject,
            metadata: metadataOf(encoded),
          };
          expect(open.decode(stored)).to.deep.equal({ type: 'ThingHappened', data });
        },
      ),
    );
  });

  it('lifts a stored event through every version to the current one, once', () => {
    const v3 = createEventCodec([
      entry({
        version: 3,
        schema: z.strictObject({ what: z.string(), where: z.string(), count: z.int() }),
        upcast: { 1: (data) => ({ ...data, where: 'here' }), 2: (data) => ({ ...data, count: 1 }) },
      }),
    ]);
    const decode = (data: JsonObject, schemaVersion?: number) =>
      v3.decode({ type: 'ThingHappened', data, metadata: schemaVersion ? { schemaVersion } : {} }).data;
    const lifted = { what: 'x', where: 'here', count: 1 };
    expect(decode({ what: 'x' }, 1)).to.deep.equal(lifted);
    expect(decode({ what: 'x' })).to.deep.equal(lifted);
    expect(decode({ what: 'x', where: 'there' }, 2)).to.deep.equal({ what: 'x', where: 'there', count: 1 });
    expect(decode({ what: 'x', where: 'there', count: 9 }, 3)).to.include({ count: 9 });
  });

  it('demands an upcaster for every older version', () => {
    const missing = entry({ version: 3, upcast: { 1: (data) => data } });
    expect(() => createEventCodec([missing])).to.throw(TypeError, 'version 2');
  });

  it('passes a type or version that only a newer release knows as it is', () => {
    const stored = { type: 'FromTheFuture', data: { a: 1 }, metadata: { schemaVersion: 7 } };
    expect(codec.decode(stored)).to.deep.equal({ type: 'FromTheFuture', data: { a: 1 } });
    expect(codec.decode({ ...stored, type: 'ThingHappened' }).data).to.deep.equal({ a: 1 });
  });
});

const wellFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => key.isWellFormed() && wellFormed(inner));
};
