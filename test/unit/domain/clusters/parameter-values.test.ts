import { createRegistry, fromJson, toJson, type JsonValue as ProtoJson } from '@bufbuild/protobuf';
import {
  AnySchema,
  file_google_protobuf_duration,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt';
import { expect } from 'chai';
import { unwrapped, wrapped } from '../../../../src/domain/catalog/parameter-values.ts';
import type { JsonValue } from '../../../../src/domain/json.ts';

const GOOGLE = 'type.googleapis.com/google.protobuf.';
const registry = createRegistry(
  file_google_protobuf_wrappers,
  file_google_protobuf_timestamp,
  file_google_protobuf_duration,
);

describe('values of template parameters', () => {
  const fitting: [type: string, plain: JsonValue, stored: JsonValue][] = [
    ['BoolValue', true, true],
    ['Int32Value', -(2 ** 31), -(2 ** 31)],
    ['Int32Value', 2 ** 31 - 1, 2 ** 31 - 1],
    ['UInt32Value', 2 ** 32 - 1, 2 ** 32 - 1],
    ['Int64Value', 2 ** 53 - 1, '9007199254740991'],
    ['UInt64Value', 7, '7'],
    ['FloatValue', 0.5, 0.5],
    ['DoubleValue', 3, 3],
    ['StringValue', 'text', 'text'],
    ['BytesValue', 'AAEC', 'AAEC'],
    ['Timestamp', '2026-11-21T12:00:00Z', '2026-11-21T12:00:00Z'],
    ['Duration', '3s', '3s'],
  ];

  it('take the type of the parameter where they fit it, and are what protobuf reads', () => {
    for (const [type, plain, stored] of fitting) {
      const value = wrapped(plain, GOOGLE + type);
      expect(value, type).to.deep.equal({ '@type': GOOGLE + type, value: stored });
      const read = toJson(AnySchema, fromJson(AnySchema, value as ProtoJson, { registry }), { registry });
      expect(read, type).to.deep.equal(value);
      expect(unwrapped(value), type).to.deep.equal(plain);
    }
  });
  it('take the type of the value where they do not, so that the parameter refuses them', () => {
    const other: [string | undefined, JsonValue, string, JsonValue][] = [
      ['Int32Value', 2 ** 31, 'Int64Value', '2147483648'],
      ['UInt32Value', -1, 'Int64Value', '-1'],
      ['UInt64Value', -1, 'Int64Value', '-1'],
      ['Int64Value', 1.5, 'DoubleValue', 1.5],
      ['StringValue', true, 'BoolValue', true],
      ['BoolValue', 'true', 'StringValue', 'true'],
      ['StringValue', { a: [1] }, 'StringValue', '{"a":[1]}'],
      ['NoSuchValue', 1, 'Int64Value', '1'],
      [undefined, 1, 'Int64Value', '1'],
    ];
    for (const [type, plain, shown, stored] of other)
      expect(wrapped(plain, type === undefined ? undefined : GOOGLE + type)).to.deep.equal({
        '@type': GOOGLE + shown,
        value: stored,
      });
    expect(wrapped(1, 'other.example/Type')['@type']).to.equal(`${GOOGLE}Int64Value`);
  });
  it('stay what they are when they are written out already', () => {
    const any = { '@type': `${GOOGLE}StringValue`, value: 'x' };
    expect(wrapped(any, `${GOOGLE}Int32Value`)).to.equal(any);
    expect(unwrapped('plain')).to.equal('plain');
    expect(unwrapped({ a: 1 })).to.deep.equal({ a: 1 });
    expect(unwrapped({ '@type': `${GOOGLE}StringValue` })).to.equal(null);
    expect(unwrapped({ '@type': `${GOOGLE}Int64Value`, value: '9007199254740993' })).to.equal(
      '9007199254740993',
    );
  });
});
