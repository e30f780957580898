import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';

/** What a condition is for one document: SQL's three values. */
export type Truth = boolean | null;

/** A filter as its text and, said as plainly as possible, what it means: nothing is shared with the code under test. */
export type NaiveFilter = { readonly text: string; readonly holds: (document: JsonObject) => Truth };

/** Server time in all of these. */
export const NOW = Date.parse('2026-06-01T00:00:00.000Z');

const NAMES = ['alpha', 'beta', 'gamma', 'α', '\u{1f600}', 'a-b', 'quo"te'];
const KEYS = ['env', 'a.b/c', 'constructor', '__proto__', 'x-y'];
const VALUES = ['dev', 'prod', '', 'de'];
const IDS = ['t1', 't2', 't3'];
const STATES = ['CLUSTER_STATE_PROGRESSING', 'CLUSTER_STATE_READY', 'CLUSTER_STATE_FAILED'];
const TIMES = [
  '2026-01-01T00:00:00Z',
  '2026-01-01T00:00:00.500Z',
  '2026-01-01T00:00:00.500001Z',
  '2026-06-01T00:00:00Z',
  '2026-12-31T23:59:59.999999999Z',
];
const SET_KEYS = ['workers', 'odd "key"', 'é'];

const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

const withoutUndefined = (value: { readonly [key: string]: JsonValue | undefined }): JsonObject => {
  const kept = Object.entries(value).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined);
  return Object.fromEntries(kept);
};

const dictionary = <T extends JsonValue>(
  keys: readonly string[],
  value: fc.Arbitrary<T>,
): fc.Arbitrary<JsonObject | undefined> =>
  fc
    .uniqueArray(fc.tuple(fc.constantFrom(...keys), value), { selector: ([key]) => key, maxLength: 3 })
    .map((entries) => (entries.length === 0 ? undefined : Object.fromEntries(entries)));

/** A cluster as its canonical JSON document; few different values, so that filters often match. */
export const clusterDocuments = (id: string): fc.Arbitrary<JsonObject> =>
  fc
    .record({
      name: optional(fc.constantFrom(...NAMES)),
      tenant: fc.constantFrom('t1', 't2', 'shared'),
      project: optional(fc.constantFrom('p', 'p.q', 'p-q')),
      creator: optional(fc.constantFrom('u1', 'u2')),
      created: fc.constantFrom(...TIMES),
      deleted: optional(fc.constantFrom(...TIMES)),
      labels: dictionary(KEYS, fc.constantFrom(...VALUES)),
      template: optional(fc.record({ id: fc.constantFrom(...IDS), name: fc.constantFrom(...NAMES) })),
      sets: dictionary(
        SET_KEYS,
        optional(fc.integer({ min: -2, max: 3 })).map((size) =>
          withoutUndefined({ size: size === 0 ? undefined : size }),
        ),
      ),
      auto: fc.boolean(),
      state: optional(fc.constantFrom(...STATES)),
      entered: optional(fc.constantFrom(...TIMES)),
    })
    .map((value) =>
      withoutUndefined({
        id,
        metadata: withoutUndefined({
          name: value.name,
          tenant: value.tenant,
          project: value.project,
          creator: value.creator,
          creation_timestamp: value.created,
          deletion_timestamp: value.deleted,
          labels: value.labels,
        }),
        spec: withoutUndefined({
          template: value.template,
          node_sets: value.sets,
          auto_external_ip_attachment: value.auto ? true : undefined,
        }),
        status: withoutUndefined({ state: value.state, state_transition_time: value.entered }),
      }),
    );

const at = (document: JsonObject, ...path: string[]): JsonValue | undefined => {
  let node: JsonValue | undefined = document;
  for (const key of path) {
    const entries: [string, JsonValue][] = Object.entries((node ?? {}) as JsonObject);
    node = entries.find(([name]) => name === key)?.[1];
  }
  return node;
};

type Scalar = string | number | bigint | boolean;
type Field = {
  readonly text: string;
  readonly read: (document: JsonObject) => Scalar | null;
  readonly literals: readonly { readonly text: string; readonly value: Scalar }[];
  readonly ofMap?: true;
  readonly isText?: true;
  /** Ordered part by part between dots. */
  readonly dotted?: true;
};

const quoted = (text: string): string => `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
const texts = (values: readonly string[]): Field['literals'] =>
  values.map((value) => ({ text: quoted(value), value }));

const textField = (
  path: readonly string[],
  values: readonly string[],
  absent: string | null = null,
): Field => ({
  text: `this.${path.join('.')}`,
  read: (document) => (at(document, ...path) as string | undefined) ?? absent,
  literals: texts(values),
  isText: true,
});

/** `2026-01-01T00:00:00.5Z` as nanoseconds. */
const nanoseconds = (time: string): bigint => {
  const [, seconds = '', fraction = ''] = /^(.*?)(?:\.(\d+))?Z$/.exec(time) ?? [];
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
};
const timeField = (...path: string[]): Field => ({
  text: `this.${path.join('.')}`,
  read: (document) => {
    const time = at(document, ...path) as string | undefined;
    return time === undefined ? null : nanoseconds(time);
  },
  literals: [{ text: 'now', value: BigInt(NOW) * 1_000_000n }],
});

const label = (key: string): Field => ({
  text: `this.metadata.labels[${quoted(key)}]`,
  read: (document) => (at(document, 'metadata', 'labels', key) as string | undefined) ?? null,
  literals: texts(VALUES),
  ofMap: true,
  isText: true,
});

const size = (key: string): Field => ({
  text: `this.spec.node_sets[${quoted(key)}].size`,
  read: (document) => (at(document, 'spec', 'node_sets', key, 'size') as number | undefined) ?? null,
  literals: [-2, -1, 0, 1, 3].map((value) => ({ text: String(value), value })),
});

const state: Field = {
  text: 'this.status.state',
  read: (document) => {
    const name = at(document, 'status', 'state') as string | undefined;
    return name === undefined ? null : STATES.indexOf(name) + 1;
  },
  literals: [
    { text: '0', value: 0 },
    { text: '2', value: 2 },
    ...STATES.map((text, i) => ({ text, value: i + 1 })),
  ],
};

const FIELDS: readonly Field[] = [
  textField(['id'], ['c0', 'c1', 'c2'], ''),
  textField(['metadata', 'name'], NAMES, ''),
  textField(['metadata', 'tenant'], ['t1', 't2'], ''),
  { ...textField(['metadata', 'project'], ['p', 'p.q', 'p-q', ''], ''), dotted: true },
  textField(['metadata', 'creator'], ['u1', ''], ''),
  textField(['spec', 'template', 'id'], IDS),
  textField(['spec', 'template', 'name'], NAMES),
  timeField('metadata', 'creation_timestamp'),
  timeField('metadata', 'deletion_timestamp'),
  timeField('status', 'state_transition_time'),
  ...KEYS.map(label),
  ...SET_KEYS.map(size),
  state,
];

const compareTexts = (left: string, right: string): number =>
  Buffer.compare(Buffer.from(left, 'utf8'), Buffer.from(right, 'utf8'));
const compareDotted = (left: string, right: string): number => {
  const [a, b] = [left.split('.'), right.split('.')];
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    if (a[i] === undefined) return -1;
    if (b[i] === undefined) return 1;
    const order = compareTexts(a[i] ?? '', b[i] ?? '');
    if (order !== 0) return order;
  }
  return 0;
};
const compare = (left: Scalar, right: Scalar, dotted = false): number => {
  if (typeof left === 'string' && typeof right === 'string')
    return dotted ? compareDotted(left, right) : compareTexts(left, right);
  return left < right ? -1 : left > right ? 1 : 0;
};

const OPERATORS: readonly (readonly [text: string, holds: (order: number) => boolean])[] = [
  ['==', (order) => order === 0],
  ['!=', (order) => order !== 0],
  ['<', (order) => order < 0],
  ['<=', (order) => order <= 0],
  ['>', (order) => order > 0],
  ['>=', (order) => order >= 0],
];

const field = fc.constantFrom(...FIELDS);

const comparisons: fc.Arbitrary<NaiveFilter> = fc
  .tuple(field, fc.nat(20), fc.constantFrom(...OPERATORS), fc.boolean())
  .map(([asked, pick, [operator, holds], turned]) => {
    const literal = asked.literals[pick % asked.literals.length]!;
    const [left, right] = turned ? [literal.text, asked.text] : [asked.text, literal.text];
    return {
      text: `${left} ${operator} ${right}`,
      holds: (document) => {
        const value = asked.read(document);
        if (value === null)
          return asked.ofMap === true && operator === '=='
            ? false
            : asked.ofMap === true && operator === '!='
              ? true
              : null;
        const order = compare(value, literal.value, asked.dotted);
        return holds(turned ? -order : order);
      },
    };
  });

const nullTests: fc.Arbitrary<NaiveFilter> = fc.tuple(field, fc.boolean()).map(([asked, equal]) => ({
  text: `${asked.text} ${equal ? '==' : '!='} null`,
  holds: (document) => (asked.read(document) === null) === equal,
}));

const memberships: fc.Arbitrary<NaiveFilter> = field
  .chain((asked) => fc.tuple(fc.constant(asked), fc.subarray([...asked.literals])))
  .filter(([, chosen]) => chosen.every(({ text }) => text !== 'now'))
  .map(([asked, chosen]) => ({
    text: `${asked.text} in [${chosen.map(({ text }) => text).join(', ')}]`,
    holds: (document) => {
      const value = asked.read(document);
      if (chosen.length === 0) return false;
      if (value === null) return asked.ofMap === true ? false : null;
      return chosen.some((literal) => compare(value, literal.value) === 0);
    },
  }));

const textTests: fc.Arbitrary<NaiveFilter> = fc
  .tuple(
    fc.constantFrom(...FIELDS.filter(({ isText }) => isText)),
    fc.constantFrom('contains', 'startsWith', 'endsWith'),
    fc.constantFrom('', 'a', 'e', 'te', 'p.', 'α', '\u{1f600}', 't1'),
  )
  .map(([asked, test, argument]) => ({
    text: `${asked.text}.${test}(${quoted(argument)})`,
    holds: (document) => {
      const value = asked.read(document);
      if (typeof value !== 'string') return null;
      if (test === 'contains') return value.split(argument).length > 1 || argument === '';
      return test === 'startsWith'
        ? value.indexOf(argument) === 0
        : value.slice(value.length - argument.length) === argument;
    },
  }));

const sums: fc.Arbitrary<NaiveFilter> = fc
  .tuple(
    fc.constantFrom(...SET_KEYS.map(size)),
    fc.constantFrom('+', '-', '*', '/', '%'),
    fc.constantFrom('0', '2', '-3', '9223372036854775807'),
    fc.constantFrom(...OPERATORS),
    fc.integer({ min: -4, max: 4 }),
  )
  .map(([asked, operator, operand, [comparator, holds], bound]) => ({
    text: `${asked.text} ${operator} ${operand} ${comparator} ${bound}`,
    holds: (document) => {
      const value = asked.read(document);
      if (value === null) return null;
      const [a, b] = [BigInt(value), BigInt(operand)];
      if (b === 0n && (operator === '/' || operator === '%')) return null;
      const result =
        operator === '+'
          ? a + b
          : operator === '-'
            ? a - b
            : operator === '*'
              ? a * b
              : operator === '/'
                ? a / b
                : a % b;
      return BigInt.asIntN(64, result) === result ? holds(compare(result, BigInt(bound))) : null;
    },
  }));

const presence: fc.Arbitrary<NaiveFilter> = fc.constantFrom<NaiveFilter>(
  { text: 'has(this.id)', holds: () => true },
  { text: 'has(this.metadata.labels)', holds: () => true },
  {
    text: 'has(this.metadata.creator)',
    holds: (document) => at(document, 'metadata', 'creator') !== undefined,
  },
  { text: 'has(this.spec.template)', holds: (document) => at(document, 'spec', 'template') !== undefined },
  { text: 'this.spec.template == null', holds: (document) => at(document, 'spec', 'template') === undefined },
  {
    text: 'this.spec.node_sets != null',
    holds: (document) => at(document, 'spec', 'node_sets') !== undefined,
  },
  {
    text: 'has(this.spec.node_sets.workers)',
    holds: (document) => at(document, 'spec', 'node_sets', 'workers') !== undefined,
  },
  {
    text: 'this.spec.node_sets["odd \\"key\\""] != null',
    holds: (document) => at(document, 'spec', 'node_sets', 'odd "key"') !== undefined,
  },
  {
    text: '"é" in this.spec.node_sets',
    holds: (document) => at(document, 'spec', 'node_sets', 'é') !== undefined,
  },
  {
    text: '"env" in this.metadata.labels',
    holds: (document) => at(document, 'metadata', 'labels', 'env') !== undefined,
  },
  {
    text: 'this.spec.template.name in this.metadata.labels',
    holds: (document) => {
      const name = at(document, 'spec', 'template', 'name') as string | undefined;
      return name === undefined ? null : at(document, 'metadata', 'labels', name) !== undefined;
    },
  },
  {
    text: 'this.spec.auto_external_ip_attachment',
    holds: (document) => at(document, 'spec', 'auto_external_ip_attachment') === true,
  },
  {
    text: 'this.spec.auto_external_ip_attachment != true',
    holds: (document) => at(document, 'spec', 'auto_external_ip_attachment') === undefined,
  },
  { text: 'true', holds: () => true },
  { text: 'false', holds: () => false },
);

const not = (truth: Truth): Truth => (truth === null ? null : !truth);

/** Filters of lists of clusters. */
export const clusterFilters: fc.Arbitrary<NaiveFilter> = fc.letrec<{ filter: NaiveFilter }>((tie) => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(comparisons, comparisons, memberships, nullTests, textTests, sums, presence),
    fc.tuple(tie('filter'), tie('filter')).map(([left, right]) => ({
      text: `(${left.text}) && (${right.text})`,
      holds: (document: JsonObject): Truth => {
        const both = [left.holds(document), right.holds(document)];
        return both.includes(false) ? false : both.includes(null) ? null : true;
      },
    })),
    fc.tuple(tie('filter'), tie('filter')).map(([left, right]) => ({
      text: `(${left.text}) || (${right.text})`,
      holds: (document: JsonObject): Truth => {
        const both = [left.holds(document), right.holds(document)];
        return both.includes(true) ? true : both.includes(null) ? null : false;
      },
    })),
    tie('filter').map((of) => ({
      text: `!(${of.text})`,
      holds: (document: JsonObject) => not(of.holds(document)),
    })),
  ),
})).filter;
