import type { JsonValue } from '../../domain/json.ts';
import { countOf, listOf } from './operands.ts';
import { equal, type Run } from './run.ts';
import { BadSchema, evaluate, firstProblem, ruleOf, type Keyword } from './types.ts';

/** Keywords about lists; other values pass. */
const ofLists = ruleOf((value): value is JsonValue[] => Array.isArray(value));

/** All items behind those that `prefixItems` speaks of. */
const items: Keyword = (operand, node, reader) => {
  if (Array.isArray(operand))
    throw new BadSchema("'items' must be one schema: list several under 'prefixItems'");
  const schema = reader.schema(operand);
  const first = Array.isArray(node['prefixItems']) ? node['prefixItems'].length : 0;
  return ofLists((value, at, run) =>
    firstProblem(value.slice(first).entries(), ([index, item]) =>
      evaluate(schema, item, [...at, String(first + index)], run),
    ),
  );
};

const prefixItems: Keyword = (operand, _node, reader) => {
  const schemas = listOf('prefixItems', operand).map((item) => reader.schema(item));
  return ofLists((value, at, run) =>
    firstProblem(schemas.slice(0, value.length).entries(), ([index, schema]) =>
      evaluate(schema, value[index] ?? null, [...at, String(index)], run),
    ),
  );
};

/** `minContains` and `maxContains` are read with it: without `contains` they ask for nothing. */
const contains: Keyword = (operand, node, reader) => {
  const schema = reader.schema(operand);
  const least = Object.hasOwn(node, 'minContains') ? countOf('minContains', node['minContains']) : 1;
  const most = Object.hasOwn(node, 'maxContains') ? countOf('maxContains', node['maxContains']) : Infinity;
  return ofLists((value, at, run) => {
    const count = value.filter((item) => evaluate(schema, item, at, run) === undefined).length;
    if (count < least) return { at, problem: `must contain at least ${least} item(s) of a certain form` };
    return count > most
      ? { at, problem: `must contain at most ${most} item(s) of a certain form` }
      : undefined;
  });
};

const uniqueItems: Keyword = (operand) => {
  if (typeof operand !== 'boolean') throw new BadSchema("'uniqueItems' must be true or false");
  if (!operand) return undefined;
  return ofLists((value, at, run) =>
    holdsTwice(value, run) ? { at, problem: 'must not hold the same item twice' } : undefined,
  );
};

const holdsTwice = (items: readonly JsonValue[], run: Run): boolean =>
  items.some((item, index) => items.slice(0, index).some((other) => equal(item, other, run)));

const readWithContains: Keyword = () => undefined;

export const ARRAY_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['items', items],
  ['prefixItems', prefixItems],
  ['contains', contains],
  ['minContains', readWithContains],
  ['maxContains', readWithContains],
  ['uniqueItems', uniqueItems],
];
