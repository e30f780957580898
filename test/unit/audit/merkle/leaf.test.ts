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
import type { JsonObject } from '../../../../src/domain/json.ts';
import { check } from '../../../support/property.ts';

const EVENT = {
  stream: 'cluster-1',
  revision: 3,
  id: '0190fdc2-bf52-71b8-8c36-977f348f4436',
  type: 'ClusterOrdered',
  data: { b: 1, a: ['x', { d: null, c: 1e21 }] } as JsonObject,
  metadata: { tenant: 'acme', occurredAt: '2026-11-21T12:00:00.000Z' } as JsonObject,
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

  it('are events of every stream but the bookkeeping', () => {
    expect(['cluster-1', 'sysadmin-1', 'refusal-_.2026-11-21'].every(isLeafStream)).to.equal(true);
    expect(['sys-auditTree', '$settings', '$$cluster-1'].some(isLeafStream)).to.equal(false);
  });
});
