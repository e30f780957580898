import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject } from '../../domain/json-tools.ts';
import { BadSchema } from './types.ts';

/** Reads what stands behind a keyword. Throws BadSchema for what the keyword does not take. */
const operandOf =
  <Operand extends JsonValue>(isTaken: (value: JsonValue) => value is Operand, words: string) =>
  (keyword: string, operand: JsonValue | undefined): Operand => {
    if (operand !== undefined && isTaken(operand)) return operand;
    throw new BadSchema(`'${keyword}' must be ${words}`);
  };

export const textOf = operandOf((value) => typeof value === 'string', 'a text');
export const numberOf = operandOf((value) => typeof value === 'number', 'a number');
export const countOf = operandOf(
  (value): value is number => Number.isInteger(value) && (value as number) >= 0,
  'a whole number that is not negative',
);
export const listOf = operandOf((value): value is JsonValue[] => Array.isArray(value), 'a list');
export const objectOf = operandOf((value): value is JsonObject => isObject(value), 'an object');

export const textsOf = (keyword: string, operand: JsonValue | undefined): readonly string[] =>
  listOf(keyword, operand).map((item) => textOf(keyword, item));
