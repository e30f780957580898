import { expect } from 'chai';
import { bodyText, MAX_JSON_DEPTH, parseJson } from '../../../src/http/body.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { decodeMessage } from '../../../src/http/osac/messages.ts';
import { ClusterSchema } from '../../../src/gen/osac/public/v1/clusters_pb.ts';
import { HubSchema } from '../../../src/gen/osac/private/v1/hubs_pb.ts';

const decode = (text: string) => decodeMessage(ClusterSchema, text).document;
const failure = (run: () => unknown): ApiError => {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
};

describe('JSON codec', () => {
  it('keeps keys that every object has', () => {
    for (const key of ['__proto__', 'constructor', 'toString']) {
      const { document } = decodeMessage(ClusterSchema, `{"spec":{"node_sets":{"${key}":{"size":1}}}}`);
      expect(JSON.stringify(document)).to.equal(`{"spec":{"node_sets":{"${key}":{"size":1}}}}`);
    }
  });

  it('accepts camelCase and snake_case and writes snake_case', () => {
    const camel = decode('{"spec":{"nodeSets":{"workers":{"hostType":{"id":"h"},"size":2}}}}');
    const snake = decode('{"spec":{"node_sets":{"workers":{"host_type":{"id":"h"},"size":2}}}}');
    expect(camel).to.deep.equal(snake);
    expect(snake).to.deep.equal({ spec: { node_sets: { workers: { host_type: { id: 'h' }, size: 2 } } } });
  });

  it('leaves out defaults but keeps optional values that were set to theirs', () => {
    expect(
      decode(
        '{"id":"","metadata":{"labels":{},"version":0},"spec":{"ssh_public_key":"","auto_external_ip_attachment":false}}',
      ),
    ).to.deep.equal({ metadata: {}, spec: { ssh_public_key: '' } });
  });

  it('takes null as absent, enums by name or number, numbers as text', () => {
    expect(decode('{"id":null,"status":{"state":2},"spec":{"node_sets":{"w":{"size":"7"}}}}')).to.deep.equal({
      status: { state: 'CLUSTER_STATE_READY' },
      spec: { node_sets: { w: { size: 7 } } },
    });
  });

  it('reads every wrapper type that a template parameter may have', () => {
    const values = {
      BoolValue: true,
      Int32Value: 5,
      Int64Value: '9007199254740993',
      DoubleValue: 1.5,
      FloatValue: 0.5,
      StringValue: 'x',
      BytesValue: 'AQI=',
      Timestamp: '2026-01-02T03:04:05Z',
      Duration: '90.500s',
    };
    for (const [type, value] of Object.entries(values)) {
      const any = { '@type': `type.googleapis.com/google.protobuf.${type}`, value };
      const body = { spec: { template_parameters: { p: any } } };
      expect(decode(JSON.stringify(body)), type).to.deep.equal(body);
    }
  });

  for (const [what, text, message, field] of [
    ['an unknown field', '{"nope":1}', 'unknown field "nope"', 'nope'],
    [
      'an unknown field deep inside',
      '{"spec":{"node_sets":{"w":{"nope":1}}}}',
      'unknown field "spec.node_sets.w.nope"',
      'spec.node_sets.w.nope',
    ],
    [
      'a private field on the public side',
      '{"status":{"hub":"h"}}',
      'unknown field "status.hub"',
      'status.hub',
    ],
    [
      'an unknown enum value',
      '{"status":{"state":"NOPE"}}',
      /^invalid value for field 'status\.state': one of CLUSTER_STATE_UNSPECIFIED, /,
      'status.state',
    ],
    [
      'a number that overflows',
      '{"spec":{"node_sets":{"w":{"size":3000000000}}}}',
      /'spec\.node_sets\.w\.size': a whole number/,
      'spec.node_sets.w.size',
    ],
    [
      'a fraction',
      '{"spec":{"node_sets":{"w":{"size":1.5}}}}',
      /'spec\.node_sets\.w\.size': a whole number/,
      'spec.node_sets.w.size',
    ],
    [
      'a wrong type',
      '{"spec":{"ssh_public_key":5}}',
      "invalid value for field 'spec.ssh_public_key': a string is expected",
      'spec.ssh_public_key',
    ],
    [
      'half of a character',
      '{"spec":{"ssh_public_key":"\\ud800"}}',
      /^invalid value for field 'spec\.ssh_public_key': it holds a lone surrogate/,
      'spec.ssh_public_key',
    ],
    [
      'half of a character in a map',
      '{"metadata":{"labels":{"\\udc00":"a"}}}',
      /'metadata\.labels': it holds a lone surrogate/,
      'metadata.labels',
    ],
    [
      'a wrong type of a map value',
      '{"metadata":{"labels":{"a":1}}}',
      /'metadata\.labels': a JSON object is expected; of each value a string/,
      'metadata.labels',
    ],
    [
      'a list for a map',
      '{"spec":{"node_sets":[]}}',
      "field 'spec.node_sets' must be a JSON object",
      'spec.node_sets',
    ],
    [
      'an object for a list',
      '{"status":{"conditions":{}}}',
      "field 'status.conditions' must be a JSON list",
      'status.conditions',
    ],
    ['a text for a message', '{"metadata":"x"}', "field 'metadata' must be a JSON object", 'metadata'],
    [
      'a bad time',
      '{"metadata":{"creation_timestamp":"yesterday"}}',
      /'metadata\.creation_timestamp': an RFC 3339 time/,
      'metadata.creation_timestamp',
    ],
    [
      'an Any without a known type',
      '{"spec":{"template_parameters":{"p":{"@type":"x"}}}}',
      /'spec\.template_parameters\.p': an object with "@type" and a fitting "value" is expected, for example \{/,
      'spec.template_parameters.p',
    ],
    [
      'a plain value for an Any',
      '{"spec":{"template_parameters":{"p":{"@type":"type.googleapis.com/google.protobuf.BoolValue","value":true},"on":true}}}',
      /'spec\.template_parameters\.on': .*\{"@type":"type\.googleapis\.com\/google\.protobuf\.BoolValue","value":true\}$/,
      'spec.template_parameters.on',
    ],
    [
      'one field under both names',
      '{"spec":{"nodeSets":{},"node_sets":{}}}',
      "field 'spec.node_sets' is set more than once",
      'spec.node_sets',
    ],
    ['a key __proto__', '{"__proto__":{"id":"x"}}', 'unknown field "__proto__"', '__proto__'],
  ] as const) {
    it(`names ${what} and where it stands`, () => {
      const error = failure(() => decode(text));
      expect(error.status).to.equal(400);
      if (typeof message === 'string') expect(error.message).to.equal(message);
      else expect(error.message).to.match(message);
      expect(error.options.violations?.[0]?.field).to.equal(field);
    });
  }

  it('refuses a key that appears twice', () => {
    expect(failure(() => decode('{"id":"a","id":"b"}')).message).to.match(/more than once|set multiple/);
  });

  it('never repeats a value of the body, since it may be a secret', () => {
    const error = failure(() => decodeMessage(HubSchema, '{"spec":{"kubeconfig":"SENTINEL not base64!"}}'));
    expect(error.message).to.match(/'spec\.kubeconfig': base64 text is expected/);
    expect(`${error.message}${JSON.stringify(error.options.violations)}`).not.to.contain('SENTINEL');
  });

  for (const [text, message] of [
    ['', /empty/],
    ['  ', /empty/],
    ['{', /unexpected end at line 1, column 2/],
    ['{"a":1,\n "b" 2}', /line 2, column/],
    ['[]', /must be a JSON object/],
    ['"x"', /must be a JSON object/],
    ['null', /must be a JSON object/],
    ['SENTINEL', /JSON at line 1, column 1$/],
    ['{"a":\n tru}', /JSON at line 2, column 2$/],
    ['{"a":"\\x"}', /JSON at line 1, column/],
    ['{"a":1}}', /JSON at line 1, column 8$/],
    ['[\n  {"id": }\n]', /JSON at line 2, column 10$/],
    ['[,]', /JSON at line 1, column 2$/],
    [']', /JSON at line 1, column 1$/],
    ['{"a":[1,2}', /JSON at line 1, column 10$/],
    ['{"a":[1,', /unexpected end at line 1, column 9$/],
  ] as const) {
    it(`refuses the body ${JSON.stringify(text)}`, () => {
      const error = failure(() => decode(text));
      expect(error.status).to.equal(400);
      expect(error.message).to.match(message).and.not.to.contain('SENTINEL');
    });
  }
});

describe('request body text', () => {
  it('is refused when it is not UTF-8', () => {
    expect(failure(() => bodyText(Buffer.from([0x7b, 0xff, 0x7d]))).message).to.match(/UTF-8/);
  });

  it('is refused when it is nested too deeply, before it is parsed', () => {
    const nested = (depth: number): Buffer => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
    expect(bodyText(nested(MAX_JSON_DEPTH))).to.have.length(2 * MAX_JSON_DEPTH);
    expect(failure(() => bodyText(nested(MAX_JSON_DEPTH + 1))).message).to.match(/nested deeper/);
    expect(failure(() => bodyText(Buffer.from('{"a":'.repeat(500_000)))).message).to.match(/nested deeper/);
  });

  it('does not count brackets inside texts', () => {
    const text = JSON.stringify({ a: '[{'.repeat(100), b: '\\"[['.repeat(50) });
    expect(parseJson(bodyText(Buffer.from(text)))).to.deep.equal(JSON.parse(text));
  });
});
