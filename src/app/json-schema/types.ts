import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Pattern } from './patterns.ts';
import type { Run } from './run.ts';

/** Where a value does not fit and what is asked of it there. Never holds the value itself: it may be a secret. */
export type Problem = { readonly at: readonly string[]; readonly problem: string };
export type Rule = (value: JsonValue, at: readonly string[], run: Run) => Problem | undefined;

/** What a schema says, ready to be evaluated: every rule must hold. */
export type Schema = readonly Rule[];

/** What rules need while a schema is read. */
export type Reader = {
  readonly schema: (value: JsonValue | undefined) => Schema;
  readonly pattern: (text: string) => Pattern;
  /** The value itself; throws BadSchema when it is nested too deeply. */
  readonly shallow: (value: JsonValue) => JsonValue;
};

/** Reads one keyword; undefined when it asks for nothing. Throws BadSchema. */
export type Keyword = (operand: JsonValue, node: JsonObject, reader: Reader) => Rule | undefined;

/** Ends reading from deep inside; it never leaves this folder. */
export class BadSchema extends Error {
  override readonly name = 'BadSchema';
}

/** A rule about values of one type; others pass. */
export const ruleOf =
  <Value extends JsonValue>(isOne: (value: JsonValue) => value is Value) =>
  (rule: (value: Value, at: readonly string[], run: Run) => Problem | undefined): Rule =>
  (value, at, run) =>
    isOne(value) ? rule(value, at, run) : undefined;

export const firstProblem = <Item>(
  items: Iterable<Item>,
  find: (item: Item) => Problem | undefined,
): Problem | undefined => {
  for (const item of items) {
    const problem = find(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
};

/** The first rule that does not hold. */
export const evaluate = (
  schema: Schema,
  value: JsonValue,
  at: readonly string[],
  run: Run,
): Problem | undefined => {
  run.spend(1);
  return firstProblem(schema, (rule) => {
    run.spend(1);
    return rule(value, at, run);
  });
};
