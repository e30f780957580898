import { fromBinary, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import { expect } from 'chai';
import fc from 'fast-check';
import { sameJson, withoutEmpty } from '../../../src/domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { ClusterSchema } from '../../../src/gen/osac/private/v1/clusters_pb.ts';
import { canonicalDocument } from '../../../src/http/osac/messages.ts';
import { applyDifference, withoutEmptyMessages } from '../../../src/http/osac/whole-update.ts';
import { check } from '../../support/property.ts';

const host = { id: 'fc430', name: 'fc430' };
const asRead: JsonObject = {
  metadata: {
    name: 'c',
    labels: { env: 'dev' },
    annotations: { note: 'N' },
    finalizers: ['a', 'b'],
    description: 'text',
  },
  spec: {
    template: { id: 't' },
    node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 1 } },
    network: { pod_cidr: '10.0.0.0/14', service_cidr: '172.30.0.0/16' },
  },
  status: { conditions: [{ type: 'CLUSTER_CONDITION_TYPE_READY', reason: 'A' }] },
};

type Changes = { readonly [part in 'metadata' | 'spec' | 'status']?: Record<string, JsonValue | undefined> };
/** Copies of what was read, with some values other ones; undefined takes one away. */
const edited = (changes: Changes): JsonObject => {
  const copy = structuredClone(asRead) as Record<string, Record<string, JsonValue>>;
  for (const [part, values] of Object.entries(changes))
    for (const [key, value] of Object.entries(values)) {
      const target = (copy[part] ??= {});
      if (value === undefined) delete target[key];
      else target[key] = value;
    }
  return copy as JsonObject;
};

/** What arrives of a document that is sent as protobuf. */
const received = (document: JsonObject): JsonObject => {
  const message = fromJson(ClusterSchema, document as never);
  const arrived = fromBinary(ClusterSchema, toBinary(ClusterSchema, message));
  return toJson(ClusterSchema, arrived, { useProtoFieldName: true }) as JsonObject;
};

const merged = (sent: JsonObject, stored: JsonObject, read = asRead): JsonObject =>
  canonicalDocument(
    ClusterSchema,
    applyDifference(ClusterSchema, withoutEmptyMessages(ClusterSchema, read), received(sent), stored),
  );

describe('update by a whole object that was read', () => {
  const cases: readonly (readonly [what: string, sent: Changes, stored: Changes, result: Changes])[] = [
    [
      'given nothing that was changed, when others changed all, then theirs stays',
      {},
      {
        metadata: { labels: { team: 'x' }, finalizers: ['c'] },
        spec: { node_sets: { workers: { host_type: host, size: 9 } } },
      },
      {
        metadata: { labels: { team: 'x' }, finalizers: ['c'] },
        spec: { node_sets: { workers: { host_type: host, size: 9 } } },
      },
    ],
    [
      'given the last label taken away, then no label is left',
      { metadata: { labels: {} } },
      {},
      {
        metadata: { labels: undefined },
      },
    ],
    [
      'given the last label taken away, when others added one, then theirs stays',
      {
        metadata: { labels: {} },
      },
      { metadata: { labels: { env: 'dev', team: 'x' } } },
      { metadata: { labels: { team: 'x' } } },
    ],
    [
      'given a text cleared, then it is gone',
      { metadata: { description: '' } },
      {},
      {
        metadata: { description: undefined },
      },
    ],
    [
      'given another label, when others scaled, then both are there',
      {
        metadata: { labels: { env: 'prod' } },
      },
      { spec: { node_sets: { workers: { host_type: host, size: 9 } } } },
      {
        metadata: { labels: { env: 'prod' } },
        spec: { node_sets: { workers: { host_type: host, size: 9 } } },
      },
    ],
    [
      'given a size, when others gave another one, then what was sent wins',
      {
        spec: { node_sets: { workers: { host_type: host, size: 5 } } },
      },
      { spec: { node_sets: { workers: { host_type: host, size: 9 } } } },
      {
        spec: { node_sets: { workers: { host_type: host, size: 5 } } },
      },
    ],
    [
      'given one size, when others gave another set a size, then both are there',
      {
        spec: { node_sets: { workers: { host_type: host, size: 5 }, infra: { host_type: host, size: 1 } } },
      },
      {
        spec: { node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 7 } } },
      },
      {
        spec: { node_sets: { workers: { host_type: host, size: 5 }, infra: { host_type: host, size: 7 } } },
      },
    ],
    [
      'given a size of 0, which protobuf leaves out, then the set is scaled to nothing',
      {
        spec: { node_sets: { workers: { host_type: host, size: 0 }, infra: { host_type: host, size: 1 } } },
      },
      {},
      {
        spec: { node_sets: { workers: { host_type: host }, infra: { host_type: host, size: 1 } } },
      },
    ],
    [
      'given a set scaled, when others removed it, then it comes back whole',
      {
        spec: { node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 4 } } },
      },
      { spec: { node_sets: { workers: { host_type: host, size: 3 } } } },
      {
        spec: { node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 4 } } },
      },
    ],
    [
      'given a set removed, when others scaled it, then it is gone',
      {
        spec: { node_sets: { workers: { host_type: host, size: 3 } } },
      },
      {
        spec: { node_sets: { workers: { host_type: host, size: 3 }, infra: { host_type: host, size: 4 } } },
      },
      { spec: { node_sets: { workers: { host_type: host, size: 3 } } } },
    ],
    [
      'given a message taken away, when others changed it, then it is gone',
      {
        spec: { network: undefined },
      },
      { spec: { network: { pod_cidr: '10.1.0.0/16' } } },
      { spec: { network: undefined } },
    ],
    [
      'given the last finalizer of one controller removed, when another one added its own, then that one stays',
      {
        metadata: { finalizers: ['b'] },
      },
      { metadata: { finalizers: ['a', 'b', 'c'] } },
      { metadata: { finalizers: ['b', 'c'] } },
    ],
    [
      'given all finalizers removed, then none is left',
      { metadata: { finalizers: [] } },
      {},
      {
        metadata: { finalizers: undefined },
      },
    ],
    [
      'given another condition, when others wrote the state, then both are there',
      {
        status: { conditions: [{ type: 'CLUSTER_CONDITION_TYPE_FAILED' }] },
      },
      { status: { state: 'CLUSTER_STATE_READY' } },
      {
        status: {
          state: 'CLUSTER_STATE_READY',
          conditions: [{ type: 'CLUSTER_CONDITION_TYPE_FAILED' }],
        },
      },
    ],
  ];
  for (const [what, sent, stored, result] of cases)
    it(what, () => expect(merged(edited(sent), edited(stored))).to.deep.equal(edited(result)));

  it('given a reference changed, then it is replaced as a whole', () => {
    const read = edited({ spec: { version: { id: 'v1', name: '4.17.0' } } });
    const sent = edited({ spec: { version: { id: 'v2' } } });
    expect(merged(sent, read, read)).to.deep.equal(sent);
  });

  it('given an empty message that was read, when it is not sent, then what others put there stays', () => {
    const read = edited({ spec: { network: {} } });
    const stored = edited({ spec: { network: { pod_cidr: '10.1.0.0/16' } } });
    expect(merged(edited({ spec: { network: undefined } }), stored, read)).to.deep.equal(stored);
  });

  it('given a label named __proto__, then it is a label like any other', () => {
    const labels = JSON.parse('{"__proto__":"x","env":"dev"}') as JsonObject;
    const result = applyDifference(ClusterSchema, asRead, edited({ metadata: { labels } }), asRead);
    expect(JSON.stringify(result['metadata'])).to.contain('{"env":"dev","__proto__":"x"}');
  });

  /** Small values, so that readers and writers often meet. */
  const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'));
  const nodeSet = fc.record({
    host_type: fc.constantFrom(host, { id: 'gpu', name: 'gpu' }),
    size: fc.nat(2),
  });
  const object = fc.record({
    labels,
    key: fc.constantFrom('', 'k1', 'k2'),
    sets: fc.dictionary(fc.constantFrom('x', 'y'), nodeSet),
    finalizers: fc.subarray(['f', 'g', 'h']),
    network: fc.option(
      fc.record({
        pod_cidr: fc.constantFrom<string>('p1', 'p2'),
        service_cidr: fc.constantFrom<string>('', 's1'),
      }),
    ),
  });
  type Model = typeof object extends fc.Arbitrary<infer Value> ? Value : never;
  const documentOf = ({ labels: texts, key, sets, finalizers, network }: Model): JsonObject =>
    canonicalDocument(ClusterSchema, {
      metadata: { name: 'n', labels: texts, finalizers },
      spec: withoutEmpty({
        ssh_public_key: key,
        node_sets: sets as unknown as JsonObject,
        network: withoutEmpty(network ?? {}),
      }),
    });

  const pick = <Value>(read: Value, sent: Value, stored: Value): Value =>
    sameJson(read, sent) ? stored : sent;
  /** A message that was cleared, or that others took away, is one value; of any other each field is one. */
  const pickFields = <Value extends object>(
    empty: Value,
    read: Value | undefined,
    sent: Value | undefined,
    stored: Value | undefined,
  ): Value | undefined => {
    if (sent === undefined || stored === undefined) return pick(read, sent, stored);
    const fields = Object.keys(empty) as (keyof Value)[];
    const picked = fields.map((name) => [name, pick((read ?? empty)[name], sent[name], stored[name])]);
    return Object.fromEntries(picked) as Value;
  };
  const byKey = <Value>(
    maps: readonly [Record<string, Value>, Record<string, Value>, Record<string, Value>],
    choose: (...values: (Value | undefined)[]) => Value | undefined,
  ): Record<string, Value> =>
    Object.fromEntries(
      [...new Set(maps.flatMap(Object.keys))].flatMap((key) => {
        const value = choose(...maps.map((map) => map[key]));
        return value === undefined ? [] : [[key, value]];
      }),
    );
  /** The three-way merge, value by value, without any schema. */
  const model = (read: Model, sent: Model, stored: Model): Model => ({
    labels: byKey([read.labels, sent.labels, stored.labels], (...values) =>
      pick(values[0], values[1], values[2]),
    ),
    key: pick(read.key, sent.key, stored.key),
    sets: byKey([read.sets, sent.sets, stored.sets], (...values) =>
      pickFields({ host_type: { id: '', name: '' }, size: 0 }, values[0], values[1], values[2]),
    ),
    finalizers: ['f', 'g', 'h'].filter((one) =>
      pick(read.finalizers.includes(one), sent.finalizers.includes(one), stored.finalizers.includes(one)),
    ),
    network:
      pickFields(
        { pod_cidr: '', service_cidr: '' },
        read.network ?? undefined,
        sent.network ?? undefined,
        stored.network ?? undefined,
      ) ?? null,
  });
  const ordered = (document: JsonObject): JsonObject => {
    const { metadata, ...rest } = withoutEmptyMessages(ClusterSchema, document);
    const { finalizers = [], ...others } = metadata as JsonObject;
    return { ...rest, metadata: { ...others, finalizers: [...(finalizers as string[])].toSorted() } };
  };

  it('property: is the three-way merge of what was read, what is sent and what is stored', () =>
    check(
      fc.property(object, object, object, (read, sent, stored) => {
        const result = merged(documentOf(sent), documentOf(stored), documentOf(read));
        expect(ordered(result)).to.deep.equal(ordered(documentOf(model(read, sent, stored))));
      }),
      { numRuns: 500 },
    ));
});

describe('a message without a field', () => {
  it('is left out, and an entry of a map is not', () =>
    expect(
      withoutEmptyMessages(ClusterSchema, {
        metadata: {},
        spec: { version: {}, network: { pod_cidr: 'p' }, node_sets: { workers: { host_type: {} } } },
        status: { conditions: [{}] },
      }),
    ).to.deep.equal({
      spec: { network: { pod_cidr: 'p' }, node_sets: { workers: {} } },
      status: { conditions: [{}] },
    }));
});
