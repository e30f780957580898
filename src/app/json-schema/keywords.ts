import { codePoints, isObject } from '../../domain/json-tools.ts';
import type { JsonValue, JsonObject } from '../../domain/json.ts';
import { ARRAY_KEYWORDS } from './array-keywords.ts';
import { OBJECT_KEYWORDS } from './object-keywords.ts';
import { countOf, numberOf, listOf, textOf } from './operands.ts';
import { type Run, equal } from './run.ts';
import { type Keyword, BadSchema, evaluate, firstProblem, type Reader, type Schema } from './types.ts';

/** What is measured of values of one type; others pass. */
type Measure = {
  readonly limitOf: typeof numberOf;
  readonly of: (value: JsonValue, run: Run) => number | undefined;
};

const numbers: Measure = {
  limitOf: numberOf,
  of: (value) => (typeof value === 'number' ? value : undefined),
};
const lengths: Measure = {
  limitOf: countOf,
  of: (value, run) => {
    if (typeof value !== 'string') return undefined;
    run.spend(value.length);
    return codePoints(value).length;
  },
};
const items: Measure = {
  limitOf: countOf,
  of: (value) => (Array.isArray(value) ? value.length : undefined),
};
const entries: Measure = {
  limitOf: countOf,
  of: (value, run) => {
    if (!isObject(value)) return undefined;
    const { length } = Object.keys(value);
    run.spend(length);
    return length;
  },
};

type Holds = (measured: number, limit: number) => boolean;
const atMost: Holds = (measured, limit) => measured <= limit;
const atLeast: Holds = (measured, limit) => measured >= limit;

/** `#` in the words stands for the limit. */
const bound =
  (keyword: string, { limitOf, of }: Measure, holds: Holds, words: string): Keyword =>
  (operand) => {
    const limit = limitOf(keyword, operand);
    const problem = `must ${words.replace('#', String(limit))}`;
    return (value, at, run) => {
      const measured = of(value, run);
      return measured === undefined || holds(measured, limit) ? undefined : { at, problem };
    };
  };

export const multiple = bound(
  'multipleOf',
  numbers,
  (value, of) => Number.isInteger(value / of),
  'be a multiple of #',
);

const BOUNDS: readonly (readonly [string, Measure, Holds, string])[] = [
  ['maximum', numbers, atMost, 'be at most #'],
  ['minimum', numbers, atLeast, 'be at least #'],
  ['exclusiveMaximum', numbers, (value, limit) => value < limit, 'be less than #'],
  ['exclusiveMinimum', numbers, (value, limit) => value > limit, 'be greater than #'],
  ['maxLength', lengths, atMost, 'be at most # characters'],
  ['minLength', lengths, atLeast, 'be at least # characters'],
  ['maxItems', items, atMost, 'have at most # item(s)'],
  ['minItems', items, atLeast, 'have at least # item(s)'],
  ['maxProperties', entries, atMost, 'have at most # entries'],
  ['minProperties', entries, atLeast, 'have at least # entries'],
];

const BOUND_KEYWORDS = BOUNDS.map((row): readonly [string, Keyword] => [row[0], bound(...row)]);

/** Keywords of JSON Schema by name: each makes a rule of its operand. */
const TYPES: { readonly [type: string]: (value: JsonValue) => boolean } = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  array: (value) => Array.isArray(value),
  object: (value) => isObject(value),
};

const type: Keyword = (operand) => {
  const names = (Array.isArray(operand) ? operand : [operand]).map((name) => textOf('type', name));
  const unknown = names.find((name) => !Object.hasOwn(TYPES, name));
  if (unknown !== undefined || names.length === 0)
    throw new BadSchema(`'type' must be one or more of ${Object.keys(TYPES).join(', ')}`);
  const checks = names.map((name) => TYPES[name] as (value: JsonValue) => boolean);
  const problem = `must be of type ${names.join(' or ')}`;
  return (value, at) => (checks.some((check) => check(value)) ? undefined : { at, problem });
};

const MAX_SHOWN = 200;

const oneOfValues =
  (keyword: 'enum' | 'const'): Keyword =>
  (operand, _node, reader) => {
    const values = (keyword === 'const' ? [operand] : listOf(keyword, operand)).map((value) =>
      reader.shallow(value),
    );
    const shown = JSON.stringify(values).slice(1, -1);
    const problem =
      shown.length > MAX_SHOWN
        ? 'must be one of the values that are allowed'
        : `must be ${values.length === 1 ? '' : 'one of '}${shown}`;
    return (value, at, run) =>
      values.some((allowed) => equal(allowed, value, run)) ? undefined : { at, problem };
  };

const multipleOf: Keyword = (operand, node, reader) => {
  if (numberOf('multipleOf', operand) <= 0) throw new BadSchema("'multipleOf' must be greater than 0");
  return multiple(operand, node, reader);
};

const pattern: Keyword = (operand, _node, reader) => {
  const expression = reader.pattern(textOf('pattern', operand));
  const problem = `must match the pattern '${expression.text.slice(0, MAX_SHOWN)}'`;
  return (value, at, run) =>
    typeof value !== 'string' || expression.test(value, run) ? undefined : { at, problem };
};

const alternatives =
  (keyword: 'anyOf' | 'oneOf', wrong: (matches: number, of: number) => string | undefined): Keyword =>
  (operand, _node, reader) => {
    const schemas = schemasOf(keyword, operand, reader);
    return (value, at, run) => {
      const matches = schemas.filter((schema) => evaluate(schema, value, at, run) === undefined).length;
      const problem = wrong(matches, schemas.length);
      return problem === undefined ? undefined : { at, problem };
    };
  };

const schemasOf = (keyword: string, operand: JsonValue, reader: Reader): readonly Schema[] => {
  const list = listOf(keyword, operand);
  if (list.length === 0) throw new BadSchema(`'${keyword}' must not be empty`);
  return list.map((item) => reader.schema(item));
};

const allOf: Keyword = (operand, _node, reader) => {
  const schemas = schemasOf('allOf', operand, reader);
  return (value, at, run) => firstProblem(schemas, (schema) => evaluate(schema, value, at, run));
};

const not: Keyword = (operand, _node, reader) => {
  const schema = reader.schema(operand);
  return (value, at, run) =>
    evaluate(schema, value, at, run) === undefined
      ? { at, problem: 'must not fit what is excluded' }
      : undefined;
};

/** `then` and `else` are read with it: without `if` they ask for nothing. */
const condition: Keyword = (operand, node, reader) => {
  const premise = reader.schema(operand);
  const branch = (key: 'then' | 'else'): Schema =>
    Object.hasOwn(node, key) ? reader.schema((node as JsonObject)[key]) : [];
  const [yes, no] = [branch('then'), branch('else')];
  return (value, at, run) =>
    evaluate(evaluate(premise, value, at, run) === undefined ? yes : no, value, at, run);
};

const readWithIf: Keyword = () => undefined;

export const KEYWORDS: ReadonlyMap<string, Keyword> = new Map<string, Keyword>([
  ['type', type],
  ['enum', oneOfValues('enum')],
  ['const', oneOfValues('const')],
  ['multipleOf', multipleOf],
  ['pattern', pattern],
  ['allOf', allOf],
  [
    'anyOf',
    alternatives('anyOf', (matches, of) =>
      matches > 0 ? undefined : `must fit at least one of ${of} alternatives`,
    ),
  ],
  [
    'oneOf',
    alternatives('oneOf', (matches, of) =>
      matches === 1 ? undefined : `must fit exactly one of ${of} alternatives, but fits ${matches}`,
    ),
  ],
  ['not', not],
  ['if', condition],
  ['then', readWithIf],
  ['else', readWithIf],
  ...BOUND_KEYWORDS,
  ...ARRAY_KEYWORDS,
  ...OBJECT_KEYWORDS,
]);
