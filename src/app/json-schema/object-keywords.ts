import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject, own } from '../../domain/json-tools.ts';
import { objectOf, textsOf } from './operands.ts';
import { evaluate, firstProblem, ruleOf, type Keyword, type Reader, type Schema } from './types.ts';

/** Keywords about objects; other values pass. */
const MAX_KEY = 64;
const shown = (key: string): string => (key.length > MAX_KEY ? `${key.slice(0, MAX_KEY)}…` : key);

const ofObjects = ruleOf((value): value is JsonObject => isObject(value));

const required: Keyword = (operand) => {
  const names = textsOf('required', operand);
  return ofObjects((value, at, run) => {
    run.spend(names.length);
    const missing = names.find((name) => !Object.hasOwn(value, name));
    return missing === undefined ? undefined : { at, problem: `must have '${shown(missing)}'` };
  });
};

const schemasByName = (
  keyword: string,
  operand: JsonValue,
  reader: Reader,
): readonly (readonly [string, Schema])[] =>
  Object.entries(objectOf(keyword, operand)).map(([name, schema]) => [name, reader.schema(schema)]);

const properties: Keyword = (operand, _node, reader) => {
  const schemas = schemasByName('properties', operand, reader);
  return ofObjects((value, at, run) =>
    firstProblem(schemas, ([name, schema]) => {
      run.spend(1);
      const inner = own(value, name);
      return inner === undefined ? undefined : evaluate(schema, inner, [...at, name], run);
    }),
  );
};

const patternProperties: Keyword = (operand, _node, reader) => {
  const schemas = Object.entries(objectOf('patternProperties', operand)).map(
    ([pattern, schema]) => [reader.pattern(pattern), reader.schema(schema)] as const,
  );
  return ofObjects((value, at, run) =>
    firstProblem(Object.entries(value), ([name, inner]) =>
      firstProblem(schemas, ([pattern, schema]) =>
        pattern.test(name, run) ? evaluate(schema, inner, [...at, name], run) : undefined,
      ),
    ),
  );
};

/** Properties that neither `properties` nor `patternProperties` of the same schema speaks of. */
const additionalProperties: Keyword = (operand, node, reader) => {
  const named = new Set(isObject(node['properties']) ? Object.keys(node['properties']) : []);
  const patterns = isObject(node['patternProperties'])
    ? Object.keys(node['patternProperties']).map((pattern) => reader.pattern(pattern))
    : [];
  const schema = reader.schema(operand);
  return ofObjects((value, at, run) =>
    firstProblem(Object.entries(value), ([name, inner]) => {
      run.spend(1);
      if (named.has(name) || patterns.some((pattern) => pattern.test(name, run))) return undefined;
      if (operand === false) return { at, problem: `must not have '${shown(name)}'` };
      return evaluate(schema, inner, [...at, name], run);
    }),
  );
};

const propertyNames: Keyword = (operand, _node, reader) => {
  const schema = reader.schema(operand);
  return ofObjects((value, at, run) =>
    firstProblem(Object.keys(value), (name) => {
      const problem = evaluate(schema, name, at, run)?.problem;
      return problem === undefined ? undefined : { at, problem: `the name '${shown(name)}' ${problem}` };
    }),
  );
};

const dependentRequired: Keyword = (operand) => {
  const rules = Object.entries(objectOf('dependentRequired', operand)).map(
    ([name, needed]) => [name, textsOf('dependentRequired', needed)] as const,
  );
  return ofObjects((value, at, run) =>
    firstProblem(rules, ([name, needed]) => {
      run.spend(1 + needed.length);
      if (!Object.hasOwn(value, name)) return undefined;
      const missing = needed.find((key) => !Object.hasOwn(value, key));
      if (missing === undefined) return undefined;
      return { at, problem: `must have '${shown(missing)}' beside '${shown(name)}'` };
    }),
  );
};

const dependentSchemas: Keyword = (operand, _node, reader) => {
  const schemas = schemasByName('dependentSchemas', operand, reader);
  return ofObjects((value, at, run) =>
    firstProblem(schemas, ([name, schema]) => {
      run.spend(1);
      return Object.hasOwn(value, name) ? evaluate(schema, value, at, run) : undefined;
    }),
  );
};

export const OBJECT_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ['required', required],
  ['properties', properties],
  ['patternProperties', patternProperties],
  ['additionalProperties', additionalProperties],
  ['propertyNames', propertyNames],
  ['dependentRequired', dependentRequired],
  ['dependentSchemas', dependentSchemas],
];
