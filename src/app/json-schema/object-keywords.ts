import type { JsonValue } from '../../domain/json.ts';
import { isObject, own } from '../../domain/json-tools.ts';
import { countOf, objectOf, textsOf } from './operands.ts';
import { evaluate, type Keyword, type Schema } from './types.ts';

/** Keywords about objects; other values pass. */
const MAX_KEY = 64;
const shown = (key: string): string => (key.length > MAX_KEY ? `${key.slice(0, MAX_KEY)}…` : key);

const countRule =
  (
    keyword: string,
    says: (limit: number) => string,
    holds: (count: number, limit: number) => boolean,
  ): Keyword =>
  (operand) => {
    const limit = countOf(keyword, operand);
    const problem = says(limit);
    return (value, at, run) => {
      if (!isObject(value)) return undefined;
      const count = Object.keys(value).length;
      run.spend(count);
      return holds(count, limit) ? undefined : { at, problem };
    };
  };

const required: Keyword = (operand) => {
  const names = textsOf('required', operand);
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    run.spend(names.length);
    const missing = names.find((name) => !Object.hasOwn(value, name));
    return missing === undefined ? undefined : { at, problem: `must have '${shown(missing)}'` };
  };
};

const properties: Keyword = (operand, _node, reader) => {
  const schemas = Object.entries(objectOf('properties', operand)).map(
    ([name, schema]): readonly [string, Schema] => [name, reader.schema(schema)],
  );
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, schema] of schemas) {
      run.spend(1);
      const inner = own(value, name);
      const problem = inner === undefined ? undefined : evaluate(schema, inner, [...at, name], run);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
};

const patternProperties: Keyword = (operand, _node, reader) => {
  const schemas = Object.entries(objectOf('patternProperties', operand)).map(
    ([pattern, schema]) => [reader.pattern(pattern), reader.schema(schema)] as const,
  );
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, inner] of Object.entries(value))
      for (const [pattern, schema] of schemas) {
        const problem = pattern.test(name, run) ? evaluate(schema, inner, [...at, name], run) : undefined;
        if (problem !== undefined) return problem;
      }
    return undefined;
  };
};

/** Properties that neither `properties` nor `patternProperties` of the same schema speaks of. */
const additionalProperties: Keyword = (operand, node, reader) => {
  const named = new Set(isObject(node['properties']) ? Object.keys(node['properties']) : []);
  const patterns = isObject(node['patternProperties'])
    ? Object.keys(node['patternProperties']).map((pattern) => reader.pattern(pattern))
    : [];
  const schema = reader.schema(operand);
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, inner] of Object.entries(value)) {
      run.spend(1);
      if (named.has(name) || patterns.some((pattern) => pattern.test(name, run))) continue;
      if (operand === false) return { at, problem: `must not have '${shown(name)}'` };
      const problem = evaluate(schema, inner, [...at, name], run);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
};

const propertyNames: Keyword = (operand, _node, reader) => {
  const schema = reader.schema(operand);
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const name of Object.keys(value)) {
      const problem = evaluate(schema, name, at, run)?.problem;
      if (problem !== undefined) return { at, problem: `the name '${shown(name)}' ${problem}` };
    }
    return undefined;
  };
};

const dependentRequired: Keyword = (operand) => {
  const rules = Object.entries(objectOf('dependentRequired', operand)).map(
    ([name, needed]) => [name, textsOf('dependentRequired', needed)] as const,
  );
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, needed] of rules) {
      run.spend(1 + needed.length);
      const missing = Object.hasOwn(value, name)
        ? needed.find((key) => !Object.hasOwn(value, key))
        : undefined;
      if (missing !== undefined)
        return { at, problem: `must have '${shown(missing)}' beside '${shown(name)}'` };
    }
    return undefined;
  };
};

const dependentSchemas: Keyword = (operand, _node, reader) => {
  const schemas = Object.entries(objectOf('dependentSchemas', operand)).map(
    ([name, schema]: [string, JsonValue]) => [name, reader.schema(schema)] as const,
  );
  return (value, at, run) => {
    if (!isObject(value)) return undefined;
    for (const [name, schema] of schemas) {
      run.spend(1);
      const problem = Object.hasOwn(value, name) ? evaluate(schema, value, at, run) : undefined;
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
};

export const OBJECT_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['required', required],
  ['properties', properties],
  ['patternProperties', patternProperties],
  ['additionalProperties', additionalProperties],
  ['propertyNames', propertyNames],
  ['dependentRequired', dependentRequired],
  ['dependentSchemas', dependentSchemas],
  [
    'maxProperties',
    countRule(
      'maxProperties',
      (limit) => `must have at most ${limit} entries`,
      (count, limit) => count <= limit,
    ),
  ],
  [
    'minProperties',
    countRule(
      'minProperties',
      (limit) => `must have at least ${limit} entries`,
      (count, limit) => count >= limit,
    ),
  ],
];
