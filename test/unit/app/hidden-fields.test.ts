import { expect } from 'chai';
import fc from 'fast-check';
import { canonicalText } from '../../../src/app/audit/merkle/leaf.ts';
import { findHidden, splitOf } from '../../../src/app/log/metadata.ts';
import type { EventType } from '../../../src/domain/event-type.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { jsonObject } from '../../../src/domain/schemas.ts';
import { hidingEvents, redactedBy } from '../../support/audit/hiding-events.ts';
import { check } from '../../support/property.ts';

const SALT = '00112233445566778899aabbccddeeff';

describe('fields that only the provider may see', () => {
  const type = (providerOnly: readonly string[], audience: EventType['audience'] = 'tenant'): EventType => ({
    type: 'ThingHappened',
    version: 1,
    context: 'things',
    audience,
    providerOnly,
    schema: jsonObject,
  });
  const of = (paths: readonly string[], data: JsonObject, hub?: string) => findHidden(type(paths))(data, hub);

  it('are named place by place when an event is stored', () => {
    const data = {
      sets: { b: { image: 'i', size: 1 }, 'a/~': { image: null } },
      list: [{ x: 1 }, {}, { x: 2 }],
      other: 1,
    };
    expect(of(['sets.*.image', 'list.*.x', 'absent', 'other.deeper'], data)).to.deep.equal([
      '/data/list/0/x',
      '/data/list/2/x',
      '/data/sets/a~1~0/image',
      '/data/sets/b/image',
    ]);
  });

  it('are the hub of the metadata too', () => {
    expect(of([], {}, 'h')).to.deep.equal(['/metadata/hub']);
    expect(of(['a'], { a: 1 }, 'h')).to.deep.equal(['/data/a', '/metadata/hub']);
  });

  it('are not named where nothing is hidden, and where tenants may see nothing at all', () => {
    expect(of(['a'], { b: 1 })).to.deep.equal([]);
    expect(of([], { b: 1 })).to.deep.equal([]);
    for (const audience of ['provider', 'internal'] as const)
      expect(findHidden(type(['a'], audience))({ a: 1 }, 'h')).to.deep.equal([]);
  });

  it('are named once, and by the outermost place', () => {
    const data = { a: { b: { c: 1 }, 'b!': 2 }, 'a!': 3 };
    expect(of(['a.b.c', 'a.b', 'a.*', 'a!'], data)).to.deep.equal(['/data/a!', '/data/a/b', '/data/a/b!']);
    expect(of(['a.b', 'a', 'a'], data)).to.deep.equal(['/data/a']);
  });

  it('are in ascending order, each once, whatever is declared', () => {
    const declared = fc.array(
      fc.array(fc.constantFrom('a', 'b', '*', 'a!'), { minLength: 1, maxLength: 3 }),
      { maxLength: 4 },
    );
    check(
      fc.property(declared, hidingEvents, (places, { data }) => {
        const event = { data: JSON.parse(JSON.stringify(data)) as JsonObject, metadata: {} };
        const paths = of(
          places.map((place) => place.join('.')),
          event.data,
        );
        const split = splitOf({ ...event, metadata: { hidden: { paths: [...paths], salt: SALT } } });
        expect(split === undefined).to.equal(paths.length === 0);
      }),
    );
  });

  it('can be told again from what is stored, for every place and name', () => {
    check(
      fc.property(hidingEvents, ({ data, metadata, paths }) => {
        const split = splitOf({ data, metadata });
        const { hidden, ...visible } = metadata;
        const shown = { data: split?.data ?? null, metadata: split?.metadata ?? null };
        expect(canonicalText(shown)).to.equal(
          canonicalText(redactedBy({ data, metadata: visible as JsonObject }, paths)),
        );
        const { values, ...stated } = split?.hidden ?? {};
        expect(values).to.have.length(paths.length);
        expect(stated).to.deep.equal(hidden);
      }),
    );
  });

  it('leave the event as it was', () => {
    const event = {
      data: { a: { b: 1, c: [{ d: 2 }] } },
      metadata: { hidden: { paths: ['/data/a/c/0/d'], salt: SALT } },
    };
    const before = structuredClone(event);
    expect(splitOf(event)).to.deep.equal({
      data: { a: { b: 1, c: [{}] } },
      metadata: {},
      hidden: { paths: ['/data/a/c/0/d'], salt: SALT, values: [2] },
    });
    expect(event).to.deep.equal(before);
  });

  it('of a list leave null, so that the others keep their index', () => {
    const event = { data: { l: [1, 2, 3] }, metadata: { hidden: { paths: ['/data/l/1'], salt: SALT } } };
    expect(splitOf(event)).to.deep.include({ data: { l: [1, null, 3] } });
  });

  const data = { a: { b: 1 }, l: [1, [2]], n: null, 'x/y': 1 };
  for (const [what, hidden] of [
    ['nothing', undefined],
    ['a text', 'x'],
    ['no paths', { salt: SALT }],
    ['an empty list of paths', { paths: [], salt: SALT }],
    ['no salt', { paths: ['/data/a'] }],
    ['another salt', { paths: ['/data/a'], salt: 'x' }],
    ['a salt in capitals', { paths: ['/data/a'], salt: SALT.toUpperCase() }],
    ['one field more', { paths: ['/data/a'], salt: SALT, values: [] }],
    ['a path that is no text', { paths: [1], salt: SALT }],
    ['a path without its slash', { paths: ['data/a'], salt: SALT }],
    ['the whole data', { paths: ['/data'], salt: SALT }],
    ['everything', { paths: [''], salt: SALT }],
    ['a place that is not there', { paths: ['/data/z'], salt: SALT }],
    ['a place beside data and metadata', { paths: ['/salt/a'], salt: SALT }],
    ['itself', { paths: ['/metadata/hidden'], salt: SALT }],
    ['its own salt', { paths: ['/metadata/hidden/salt'], salt: SALT }],
    ['what every object inherits', { paths: ['/data/constructor'], salt: SALT }],
    ['the length of a list', { paths: ['/data/l/length'], salt: SALT }],
    ['another spelling of an index', { paths: ['/data/l/01'], salt: SALT }],
    ['another spelling of a key', { paths: ['/data/x~01y'], salt: SALT }],
    ['a tilde that stands for nothing', { paths: ['/data/x~2'], salt: SALT }],
    ['a path twice', { paths: ['/data/a', '/data/a'], salt: SALT }],
    ['paths in another order', { paths: ['/data/n', '/data/a'], salt: SALT }],
    ['a place within another', { paths: ['/data/a', '/data/a/b'], salt: SALT }],
    ['a place within an element', { paths: ['/data/l/1', '/data/l/1/0'], salt: SALT }],
  ] as const)
    it(`are none where the metadata names ${what}: the event is one whole`, () => {
      const metadata = hidden === undefined ? {} : ({ hidden } as unknown as JsonObject);
      expect(splitOf({ data, metadata })).to.equal(undefined);
    });
});
