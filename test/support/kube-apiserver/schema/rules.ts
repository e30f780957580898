import { celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { isObject, own } from '../../../../src/domain/json-tools.ts';
import { cause, type Cause } from '../errors.ts';
import type { JsonValue } from '../types.ts';
import { listKey, type Rule, type Schema } from './schema.ts';

type Program = {
  readonly rule: Rule;
  readonly transition: boolean;
  run(self: Input, oldSelf: Input): boolean;
};

type Input = null | boolean | number | bigint | string | readonly Input[] | { readonly [key: string]: Input };

/** The CEL rules of a schema, compiled: the rules of this node and of what is below it. */
export type RuleTree = {
  readonly schema: Schema;
  readonly programs: readonly Program[];
  readonly properties: ReadonlyMap<string, RuleTree>;
  readonly items?: RuleTree;
};

const environment = celEnv();

/** Undefined: neither here nor below is a rule. Throws on a rule that is not CEL. */
export const compileRules = (schema: Schema): RuleTree | undefined => {
  const programs = (schema['x-kubernetes-validations'] ?? []).map(compileRule);
  const properties = new Map<string, RuleTree>();
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const tree = compileRules(inner);
    if (tree !== undefined) properties.set(name, tree);
  }
  const items = schema.items === undefined ? undefined : compileRules(schema.items);
  if (programs.length === 0 && properties.size === 0 && items === undefined) return undefined;
  return { schema, programs, properties, ...(items === undefined ? {} : { items }) };
};

const compileRule = (rule: Rule): Program => {
  const program = plan(environment, parse(rule.rule));
  return {
    rule,
    transition: /\boldSelf\b/.test(rule.rule),
    run: (self, oldSelf) => {
      const result = program({ self, oldSelf } as Parameters<typeof program>[0]);
      if (isCelError(result)) throw new Error(`rule ${rule.rule}: ${result.message}`);
      return result === true;
    },
  };
};

/**
 * What the rules say about a value. A transition rule runs only where there was a value before: that is why setting
 * a whole parent to null and then writing it anew gets around immutability (OSAC's operator).
 */
export const ruleFaults = (
  tree: RuleTree,
  value: JsonValue,
  before: JsonValue | undefined,
  path: string,
): Cause[] => {
  const faults = tree.programs
    .filter(({ transition }) => !transition || before !== undefined)
    .filter(({ run }) => !run(toInput(value, tree.schema), toInput(before ?? null, tree.schema)))
    .map(({ rule }) => ruleCause(rule, value, path));
  if (isObject(value)) {
    for (const [name, inner] of tree.properties) {
      const entry = own(value, name);
      const old = isObject(before) ? own(before, name) : undefined;
      if (entry !== undefined) faults.push(...ruleFaults(inner, entry, old, join(path, name)));
    }
  }
  if (Array.isArray(value) && tree.items !== undefined) {
    const olds = Array.isArray(before) ? (before as readonly JsonValue[]) : [];
    faults.push(...itemFaults(tree, tree.items, value as readonly JsonValue[], olds, path));
  }
  return faults;
};

/** Only elements of a `map` list have a past: those of other lists cannot be told apart. */
const itemFaults = (
  tree: RuleTree,
  items: RuleTree,
  values: readonly JsonValue[],
  olds: readonly JsonValue[],
  path: string,
): Cause[] =>
  values.flatMap((value, index) => {
    const key = listKey(tree.schema, value);
    const old = key === undefined ? undefined : olds.find((one) => listKey(tree.schema, one) === key);
    return ruleFaults(items, value, old, `${path}[${index}]`);
  });

const ruleCause = (rule: Rule, value: JsonValue, path: string): Cause => {
  const field = rule.fieldPath === undefined ? path : `${path}${rule.fieldPath}`;
  const shown = isObject(value) ? '"object"' : Array.isArray(value) ? '"array"' : JSON.stringify(value);
  const message = `Invalid value: ${shown}: ${rule.message ?? `failed rule: ${rule.rule}`}`;
  return cause(field === '' ? '<nil>' : field, rule.reason ?? 'FieldValueInvalid', message);
};

/** Integers are `int` in CEL, which is a bigint here; which numbers are integers is said by the schema. */
const toInput = (value: JsonValue, schema: Schema | undefined): Input => {
  if (typeof value === 'number') {
    return schema?.type !== 'number' && Number.isInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).map((item) => toInput(item, schema?.items));
  if (!isObject(value)) return value as null | boolean | string;
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [name, toInput(entry, own(schema?.properties, name))]),
  );
};

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
