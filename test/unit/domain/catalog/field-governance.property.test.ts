import { expect } from 'chai';
import fc from 'fast-check';
import { clusterCatalogItem } from '../../../../src/domain/catalog/cluster-catalog-item.resource.ts';
import { governedSpec } from '../../../../src/domain/catalog/field-governance.ts';
import { itemGovernance } from '../../../../src/domain/catalog/item-governance.ts';
import { CLUSTER_SPEC } from '../../../../src/domain/clusters/spec-paths.ts';
import { isRefused } from '../../../../src/domain/decider.ts';
import { sameJson } from '../../../../src/domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../../src/domain/json.ts';
import { check } from '../../../support/property.ts';

/**
 * Whatever an item defines and whatever a caller sends: only what is open is set, and what is not set is what the item
 * says. The expectations are written down anew, without the engine's helpers, over lists of keys.
 */
type Keys = readonly string[];
const NAMES = ['workers', 'workers.size', 'a', 'a.b', 'size', '__proto__', 'constructor'] as const;
const TYPES = ['Int32Value', 'Int64Value', 'StringValue'].map(
  (type) => `type.googleapis.com/google.protobuf.${type}`,
);

const mapOf = <T extends JsonValue>(value: fc.Arbitrary<T>): fc.Arbitrary<JsonObject> =>
  fc
    .uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 })
    .chain((names) =>
      fc
        .tuple(...names.map(() => value))
        .map((values) => Object.fromEntries(names.map((name, index) => [name, values[index] ?? null]))),
    );
const reference = fc.constantFrom<JsonObject>({}, { id: 'x' }, { name: 'y' }, { id: 'x', name: 'y' });
const parameter = fc.constantFrom<JsonObject>(...TYPES.map((type) => ({ '@type': type, value: '1' })), {
  '@type': TYPES[0] ?? '',
});
const spec: fc.Arbitrary<JsonObject> = fc.record(
  {
    template: reference,
    catalog_item: reference,
    template_parameters: mapOf(parameter),
    node_sets: mapOf(
      fc.record({ host_type: reference, size: fc.integer({ min: 1, max: 3 }) }, { requiredKeys: [] }),
    ),
    ssh_public_key: fc.constantFrom('', 'ssh'),
    version: reference,
    network: fc.record(
      { pod_cidr: fc.constant('10.0.0.0/14'), service_cidr: fc.constant('') },
      { requiredKeys: [] },
    ),
    auto_external_ip_attachment: fc.boolean(),
  },
  { requiredKeys: [] },
) as fc.Arbitrary<JsonObject>;

/** Paths with the keys that they mean. */
const PATHS: readonly (readonly [string, Keys, JsonValue])[] = [
  ['ssh_public_key', ['ssh_public_key'], 'default-key'],
  ['version', ['version'], { name: 'v' }],
  ['version.name', ['version', 'name'], 'v'],
  ['network', ['network'], { pod_cidr: '10.4.0.0/14' }],
  ['network.pod_cidr', ['network', 'pod_cidr'], '10.4.0.0/14'],
  ['network.service_cidr', ['network', 'service_cidr'], '10.8.0.0/16'],
  ['node_sets', ['node_sets'], { workers: { size: 2 } }],
  ['node_sets.workers', ['node_sets', 'workers'], { size: 2 }],
  ['node_sets.workers.size', ['node_sets', 'workers', 'size'], 2],
  ['node_sets.__proto__.size', ['node_sets', '__proto__', 'size'], 2],
  ['template_parameters', ['template_parameters'], { a: 1 }],
  ['template_parameters.a', ['template_parameters', 'a'], 1],
  ['template_parameters.a.b', ['template_parameters', 'a.b'], 1],
  ['template_parameters.constructor', ['template_parameters', 'constructor'], 'text'],
  ['auto_external_ip_attachment', ['auto_external_ip_attachment'], true],
];
type Drawn = {
  readonly path: string;
  readonly keys: Keys;
  readonly editable: boolean;
  readonly fallback?: JsonValue;
};
const startsWith = (keys: Keys, prefix: Keys): boolean => prefix.every((key, index) => keys[index] === key);

const definitions: fc.Arbitrary<readonly Drawn[]> = fc
  .array(fc.tuple(fc.constantFrom(...PATHS), fc.boolean(), fc.boolean()), { maxLength: 6 })
  .map((drawn) =>
    drawn
      .map(
        ([[path, keys, fallback], editable, hasDefault]): Drawn => ({
          path,
          keys,
          editable,
          ...(hasDefault || !editable ? { fallback } : {}),
        }),
      )
      .filter(
        (one, index, all) =>
          !all.slice(0, index).some(({ keys }) => startsWith(keys, one.keys) || startsWith(one.keys, keys)),
      ),
  );

const under = (value: JsonValue | undefined, keys: Keys): JsonValue | undefined =>
  keys.reduce<JsonValue | undefined>((node, key) => {
    const entries = typeof node === 'object' && node !== null ? Object.entries(node) : [];
    return entries.find(([name]) => name === key)?.[1];
  }, value);

/** Everything that was said, by the keys that lead there. */
const said = (value: JsonValue, keys: Keys = []): (readonly [Keys, JsonValue])[] => {
  const inner =
    typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
  const isParameter = keys[0] === 'template_parameters' && keys.length === 2;
  if (keys.length > 0 && (inner.length === 0 || isParameter)) return [[keys, value]];
  return inner.flatMap(([key, more]) => said(more, [...keys, key]));
};

/** What a caller would say at each path, and close by: the same fields by other keys. */
const SAYINGS: readonly (readonly [Keys, JsonValue])[] = [
  [['ssh_public_key'], 'mine'],
  [['version', 'name'], 'w'],
  [['version', 'id'], 'x'],
  [['version'], {}],
  [['network', 'pod_cidr'], '10.0.0.0/14'],
  [['network', 'service_cidr'], ''],
  [['network'], {}],
  [['node_sets', 'workers', 'size'], 4],
  [['node_sets', 'workers', 'host_type', 'id'], 'h'],
  [['node_sets', 'workers'], {}],
  [['node_sets', 'workers.size', 'size'], 4],
  [['node_sets', 'workers.size'], {}],
  [['node_sets', '__proto__', 'size'], 4],
  [['template_parameters', 'a'], { '@type': TYPES[0] ?? '', value: 3 }],
  [['template_parameters', 'a.b'], { '@type': TYPES[2] ?? '', value: 'x' }],
  [['template_parameters', 'constructor'], { '@type': TYPES[2] ?? '' }],
  [['auto_external_ip_attachment'], false],
  [['template', 'id'], 't'],
  [['catalog_item', 'name'], 'i'],
];

const saying = (sent: JsonObject, [keys, value]: readonly [Keys, JsonValue]): JsonObject => {
  const [head = '', ...rest] = keys;
  const before = under(sent, [head]);
  const inner = typeof before === 'object' && before !== null && !Array.isArray(before) ? before : {};
  const next = rest.length === 0 ? value : saying(inner, [rest, value]);
  return Object.fromEntries([...Object.entries(sent).filter(([key]) => key !== head), [head, next]]);
};

/** An item, and a caller who keeps to it for the most part. */
const meeting: fc.Arbitrary<readonly [JsonObject, readonly Drawn[]]> = definitions.chain((drawn) => {
  const open = SAYINGS.filter(([keys]) => drawn.some(({ keys: path }) => startsWith(keys, path)));
  const within = open.length === 0 ? fc.constant([]) : fc.array(fc.constantFrom(...open), { maxLength: 4 });
  const beside = fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...SAYINGS), { maxLength: 1 }) },
  );
  return fc
    .tuple(within, beside)
    .map(([kept, strayed]) => [[...kept, ...strayed].reduce<JsonObject>(saying, {}), drawn] as const);
});

const template = {
  document: { parameters: NAMES.map((name, index) => ({ name, type: TYPES[index % TYPES.length] ?? '' })) },
};
const itemOf = (drawn: readonly Drawn[]): JsonObject => ({
  title: 'x',
  field_definitions: drawn.map(({ path, editable, fallback }) => ({
    path,
    ...(editable ? { editable } : {}),
    ...(fallback === undefined ? {} : { default: fallback }),
  })),
});
const govern = (sent: JsonObject, drawn: readonly Drawn[]) =>
  governedSpec(
    sent,
    itemGovernance(CLUSTER_SPEC, { name: 'i', document: itemOf(drawn) }, template, () => undefined),
  );

/** A default as it stands in a spec: plain, but for parameters. */
const standing = ({ keys, fallback }: Drawn, value: JsonValue | undefined): boolean => {
  if (keys[0] !== 'template_parameters') return sameJson(value, fallback);
  const plain = keys.length === 2 ? fallback : under(fallback, ['a']);
  const any = keys.length === 2 ? value : under(value, ['a']);
  const shown = under(any, ['value']);
  // 64-bit numbers are texts.
  const same = sameJson(shown, plain) || shown === JSON.stringify(plain);
  return same && typeof under(any, ['@type']) === 'string';
};

describe('field governance, whatever is defined and sent (fast-check)', () => {
  it('draws items that can be stored', () => {
    check(
      fc.property(definitions, (drawn) => {
        const facts = {
          id: 'i',
          at: '2026-11-21T12:00:00.000Z',
          tenant: 't',
          project: '',
          name: 'i',
          creator: 'c',
        };
        const decision = clusterCatalogItem.decider.decide(clusterCatalogItem.decider.initialState(), {
          type: 'CreateDocument',
          ...facts,
          document: itemOf(drawn),
        });
        expect(isRefused(decision), JSON.stringify(decision)).to.equal(false);
      }),
    );
  });

  it('accepts exactly what is open and complete', () => {
    check(
      fc.property(fc.oneof(meeting, fc.tuple(spec, definitions)), ([sent, drawn]) => {
        const closed = said(sent).filter(
          ([keys]) =>
            keys[0] !== 'template' &&
            keys[0] !== 'catalog_item' &&
            !drawn.some((definition) => definition.editable && startsWith(keys, definition.keys)),
        );
        const missing = drawn.filter(
          ({ keys, fallback }) => fallback === undefined && under(sent, keys) === undefined,
        );
        const result = govern(sent, drawn);
        expect(isRefused(result), JSON.stringify({ sent, drawn, result })).to.equal(
          closed.length > 0 || missing.length > 0,
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it('keeps what the caller said and fills in what the item says', () => {
    check(
      fc.property(meeting, ([given, drawn]) => {
        const result = govern(given, drawn);
        if (isRefused(result)) return;
        for (const [keys, value] of said(given)) expect(sameJson(under(result, keys), value)).to.equal(true);
        for (const definition of drawn) {
          if (definition.fallback === undefined || under(given, definition.keys) !== undefined) continue;
          expect(
            standing(definition, under(result, definition.keys)),
            JSON.stringify({ definition, result }),
          ).to.equal(true);
        }
        const invented = said(result).filter(
          ([keys]) =>
            under(given, keys) === undefined && !drawn.some(({ keys: path }) => startsWith(keys, path)),
        );
        expect(invented).to.deep.equal([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it('says no to everything when the item defines nothing', () => {
    check(
      fc.property(spec, (sent) => {
        const free = said(sent).every(([keys]) => keys[0] === 'template' || keys[0] === 'catalog_item');
        expect(isRefused(govern(sent, []))).to.equal(!free);
      }),
    );
  });
});
