import { expect } from 'chai';
import fc from 'fast-check';
import {
  canonicalHash,
  canonicalText,
  isLeafStream,
  leafBytes,
  leafHashOf,
  leafOf,
} from '../../../../src/app/audit/merkle/leaf.ts';
import { sha256 } from '../../../../src/app/audit/merkle/hashing.ts';
import type { JsonObject, JsonValue } from '../../../../src/domain/json.ts';
import { placeOfPointer } from '../../../../src/domain/document-places.ts';
import { hidingEvents, pointersOf, redactedBy } from '../../../support/audit/hiding-events.ts';
import { check } from '../../../support/property.ts';

const EVENT = {
  stream: 'cluster-1',
  revision: 3,
  id: '0190fdc2-bf52-71b8-8c36-977f348f4436',
  type: 'ClusterOrdered',
  data: { b: 1, a: ['x', { d: null, c: 1e21 }] } as JsonObject,
  metadata: { tenant: 'acme', occurredAt: '2026-11-21T12:00:00.000Z' } as JsonObject,
};

/** The value with another one at a place, without what is there, or with one more key beside it. */
const withChange = (
  node: JsonValue,
  [key = '', ...rest]: readonly string[],
  how: number,
  fresh: JsonValue,
): JsonValue => {
  const entries = Object.entries(node as JsonObject).flatMap(([each, inner]): [string, JsonValue][] => {
    const value = inner as JsonValue;
    if (each !== key) return [[each, value]];
    if (rest.length > 0) return [[each, withChange(value, rest, how, fresh)]];
    return how === 0
      ? [[each, fresh]]
      : how === 1
        ? []
        : [
            [each, value],
            [`${each} too`, fresh],
          ];
  });
  return Array.isArray(node) ? entries.map(([, value]) => value) : Object.fromEntries(entries);
};

describe('leaves of the audit tree', () => {
  it('are a fixed record in canonical form: every bit of it is part of what was signed', () => {
    const leaf = leafOf(EVENT);
    expect(leafBytes(leaf).toString()).to.equal(
      `{"data":"${canonicalHash(EVENT.data)}","id":"${EVENT.id}","metadata":"${canonicalHash(EVENT.metadata)}",` +
        '"occurredAt":"2026-11-21T12:00:00.000Z","revision":3,"stream":"cluster-1","type":"ClusterOrdered","v":1}',
    );
    expect(canonicalText(EVENT.data)).to.equal('{"a":["x",{"c":1e+21,"d":null}],"b":1}');
    expect(leaf.data).to.equal('6caecfadb3b562be48714b94ced89f0d42e56e75d1d715db71712b296f0232e3');
    expect(leafHashOf(leaf).toString('hex')).to.equal(
      '31c53f197a8e4964006d28ad68e2bcb1ae14d08ca9cc4c872e77309d08fabb4b',
    );
  });

  it('do not depend on the order of keys', () => {
    check(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (data) => {
        const reversed = Object.fromEntries(Object.entries(data).toReversed()) as JsonObject;
        expect(leafOf({ ...EVENT, data: reversed })).to.deep.equal(
          leafOf({ ...EVENT, data: data as JsonObject }),
        );
      }),
    );
  });

  it('leave out what a single store adds to the metadata, and nothing else', () => {
    const added = { ...EVENT, metadata: { ...EVENT.metadata, $correlationId: 'c', $causationId: 'd' } };
    expect(leafOf(added)).to.deep.equal(leafOf(EVENT));
    const changed = { ...EVENT, metadata: { ...EVENT.metadata, nested: { $x: 1 } } };
    expect(leafOf(changed).metadata).to.not.equal(leafOf(EVENT).metadata);
  });

  it('are there without a time in the metadata, and with names that every object inherits', () => {
    expect(leafOf({ ...EVENT, metadata: {} }).occurredAt).to.equal('');
    const hostile = JSON.parse('{"__proto__":{"a":1},"constructor":"c"}') as JsonObject;
    expect(leafOf({ ...EVENT, data: hostile }).data).to.not.equal(leafOf({ ...EVENT, data: {} }).data);
    expect(leafOf({ ...EVENT, metadata: hostile }).occurredAt).to.equal('');
    const own = JSON.parse('{"__proto__":{"occurredAt":"never"},"$x":1}') as JsonObject;
    expect(leafOf({ ...EVENT, metadata: own }).occurredAt).to.equal('');
    expect(leafOf({ ...EVENT, metadata: own }).metadata).to.equal(
      canonicalHash(JSON.parse('{"__proto__":{"occurredAt":"never"}}') as JsonObject),
    );
  });

  it('are there for values that RFC 8785 has no form for, each with its own hash', () => {
    const odd = ['{"b":"\\ud800","a":1}', '{"b":"\\ud801","a":1}', '{"\\udc00":[1e999],"a":{"d":1,"c":2}}'];
    const values = odd.map((text) => JSON.parse(text) as JsonObject);
    expect(values.map(canonicalText)).to.deep.equal([
      '{"a":1,"b":"\\ud800"}',
      '{"a":1,"b":"\\ud801"}',
      '{"a":{"c":2,"d":1},"\\udc00":[null]}',
    ]);
    expect(new Set(values.map((data) => leafOf({ ...EVENT, data }).data)).size).to.equal(3);
  });

  const HIDING = {
    ...EVENT,
    data: { name: 'n', version: { name: '4.20', releaseImage: 'quay.io/r' }, pullSecret: 'p' } as JsonObject,
    metadata: {
      ...EVENT.metadata,
      hub: 'h1',
      hidden: {
        paths: ['/data/pullSecret', '/data/version/releaseImage', '/metadata/hub'],
        salt: '00112233445566778899aabbccddeeff',
      },
    } as JsonObject,
  };

  it('are of two parts where tenants may see one: the form of `hidden` is part of what was signed', () => {
    const leaf = leafOf(HIDING);
    const data = { name: 'n', version: { name: '4.20' } };
    const hidden =
      '{"paths":["/data/pullSecret","/data/version/releaseImage","/metadata/hub"],' +
      '"salt":"00112233445566778899aabbccddeeff","values":["p","quay.io/r","h1"]}';
    expect(leafBytes(leaf).toString()).to.equal(
      `{"data":"${canonicalHash(data)}","hidden":"${sha256(hidden).toString('hex')}","id":"${EVENT.id}",` +
        `"metadata":"${canonicalHash(EVENT.metadata)}","occurredAt":"2026-11-21T12:00:00.000Z","revision":3,` +
        '"stream":"cluster-1","type":"ClusterOrdered","v":1}',
    );
    expect(leafHashOf(leaf).toString('hex')).to.equal(
      '1ba9c3b723014e966df17b4c601f7708dc7efbcca8104519e618007fe57dae59',
    );
  });

  it('of two parts are those of what a tenant is shown, with the hash of the rest', () => {
    check(
      fc.property(hidingEvents, ({ data, metadata, paths }) => {
        const leaf = leafOf({ ...EVENT, data, metadata });
        const { hidden: _hidden, ...visible } = metadata;
        const shown = redactedBy({ data, metadata: visible }, paths) as {
          data: JsonObject;
          metadata: JsonObject;
        };
        expect(leaf).to.deep.include({
          v: 1,
          data: canonicalHash(shown.data),
          metadata: canonicalHash(shown.metadata),
        });
      }),
    );
  });

  it('of two parts change with everything: what is shown, what is hidden, the salt, and where the cut is', () => {
    check(
      fc.property(
        hidingEvents,
        fc.nat(),
        fc.jsonValue({ maxDepth: 1 }),
        fc.nat(2),
        ({ data, metadata }, n, fresh, how) => {
          const whole = { data, metadata };
          const places = [...pointersOf(whole)].filter((path) => path.lastIndexOf('/') > 0);
          const place = placeOfPointer(places[n % places.length] ?? '') ?? [];
          const changed = withChange(
            whole,
            place,
            how,
            JSON.parse(JSON.stringify(fresh)) as JsonValue,
          ) as typeof whole;
          const isSame = canonicalText(changed) === canonicalText(whole);
          const [before, after] = [whole, changed].map((each) =>
            leafHashOf(leafOf({ ...EVENT, ...each })).toString('hex'),
          );
          expect(before === after, `${place.join(' / ')}: ${JSON.stringify(changed)}`).to.equal(isSame);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('of two parts differ for every cut through one event, with one salt', () => {
    const { metadata } = EVENT;
    const data = { a: { b: 1, c: 1 }, l: [1, 1], 'a/b': 1 };
    const cuts = [
      ['/data/a'],
      ['/data/a/b'],
      ['/data/a/c'],
      ['/data/a/b', '/data/a/c'],
      ['/data/a~1b'],
      ['/data/l/0'],
      ['/data/l/1'],
      ['/metadata/tenant'],
    ];
    const leaves = cuts.map((paths) => {
      const hidden = { paths, salt: '00112233445566778899aabbccddeeff' };
      return leafHashOf(leafOf({ ...EVENT, data, metadata: { ...metadata, hidden } })).toString('hex');
    });
    expect(new Set([...leaves, leafHashOf(leafOf({ ...EVENT, data })).toString('hex')]).size).to.equal(
      cuts.length + 1,
    );
  });

  it('of two parts give nobody who knows all but the salt a way to try a guess', () => {
    const again = {
      ...HIDING,
      metadata: {
        ...HIDING.metadata,
        hidden: { ...(HIDING.metadata['hidden'] as JsonObject), salt: 'f'.repeat(32) },
      },
    };
    const [one, two] = [leafOf(HIDING), leafOf(again)];
    expect({ ...one, hidden: '' }).to.deep.equal({ ...two, hidden: '' });
    expect(leafHashOf(one).equals(leafHashOf(two))).to.equal(false);
  });

  it('are of one part where what the metadata says of hidden fields has another form', () => {
    const odd = { ...HIDING, metadata: { ...HIDING.metadata, hidden: { paths: [], salt: 'x' } } };
    expect(leafOf(odd)).to.include({
      v: 1,
      data: canonicalHash(odd.data),
      metadata: canonicalHash(odd.metadata),
    });
  });

  it('are events of every stream but the bookkeeping', () => {
    expect(['cluster-1', 'sysadmin-1', 'refusal-_.2026-11-21'].every(isLeafStream)).to.equal(true);
    expect(['sys-auditTree', '$settings', '$$cluster-1'].some(isLeafStream)).to.equal(false);
  });
});
