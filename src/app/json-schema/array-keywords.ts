import type { JsonValue } from '../../domain/json.ts';
import { countOf, listOf } from './operands.ts';
import { equal, type Run } from './run.ts';
import { BadSchema, evaluate, type Keyword, type Problem, type Schema } from './types.ts';

/** Keywords about lists; other values pass. */
const countRule =
  (
    keyword: string,
    says: (limit: number) => string,
    holds: (count: number, limit: number) => boolean,
  ): Keyword =>
  (operand) => {
    const limit = countOf(keyword, operand);
    const problem = says(limit);
    return (value, at) => (!Array.isArray(value) || holds(value.length, limit) ? undefined : { at, problem });
  };

const eachItem = (
  value: readonly JsonValue[],
  from: number,
  schemaOf: (index: number) => Schema | undefined,
  at: readonly string[],
  run: Run,
): Problem | undefined => {
  for (let index = from; index < value.length; index += 1) {
    const schema = schemaOf(index);
    if (schema === undefined) return undefined;
    const problem = evaluate(schema, value[index] ?? null, [...at, String(index)], run);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** All items behind those that `prefixItems` speaks of. */
const items: Keyword = (operand, node, reader) => {
  if (Array.isArray(operand))
    throw new BadSchema("'items' must be one schema: list several under 'prefixItems'");
  const schema = reader.schema(operand);
  const first = Array.isArray(node['prefixItems']) ? node['prefixItems'].length : 0;
  return (value, at, run) =>
    Array.isArray(value) ? eachItem(value, first, () => schema, at, run) : undefined;
};

const prefixItems: Keyword = (operand, _node, reader) => {
  const schemas = listOf('prefixItems', operand).map((item) => reader.schema(item));
  return (value, at, run) =>
    Array.isArray(value) ? eachItem(value, 0, (index) => schemas[index], at, run) : undefined;
};

/** `minContains` and `maxContains` are read with it: without `contains` they ask for nothing. */
const contains: Keyword = (operand, node, reader) => {
  const schema = reader.schema(operand);
  const least = Object.hasOwn(node, 'minContains') ? countOf('minContains', node['minContains']) : 1;
  const most = Object.hasOwn(node, 'maxContains') ? countOf('maxContains', node['maxContains']) : Infinity;
  return (value, at, run) => {
    if (!Array.isArray(value)) return undefined;
    const count = value.filter((item) => evaluate(schema, item, at, run) === undefined).length;
    if (count < least) return { at, problem: `must contain at least ${least} item(s) of a certain form` };
    return count > most
      ? { at, problem: `must contain at most ${most} item(s) of a certain form` }
      : undefined;
  };
};

const uniqueItems: Keyword = (operand) => {
  if (typeof operand !== 'boolean') throw new BadSchema("'uniqueItems' must be true or false");
  if (!operand) return undefined;
  return (value, at, run) => {
    if (!Array.isArray(value)) return undefined;
    return holdsTwice(value, run) ? { at, problem: 'must not hold the same item twice' } : undefined;
  };
};

const holdsTwice = (items: readonly JsonValue[], run: Run): boolean => {
  for (const [index, item] of items.entries())
    for (let other = 0; other < index; other += 1) if (equal(item, items[other] ?? null, run)) return true;
  return false;
};

const readWithContains: Keyword = () => undefined;

export const ARRAY_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['items', items],
  ['prefixItems', prefixItems],
  ['contains', contains],
  ['minContains', readWithContains],
  ['maxContains', readWithContains],
  ['uniqueItems', uniqueItems],
  [
    'maxItems',
    countRule(
      'maxItems',
      (limit) => `must have at most ${limit} item(s)`,
      (count, limit) => count <= limit,
    ),
  ],
  [
    'minItems',
    countRule(
      'minItems',
      (limit) => `must have at least ${limit} item(s)`,
      (count, limit) => count >= limit,
    ),
  ],
];
