import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { isObject } from '../../domain/json-tools.ts';
import { BadSchema } from './types.ts';

/** What stands behind a keyword, checked to be what the keyword takes. All throw BadSchema. */
export const textOf = (keyword: string, operand: JsonValue | undefined): string => {
  if (typeof operand === 'string') return operand;
  throw new BadSchema(`'${keyword}' must be a text`);
};

export const numberOf = (keyword: string, operand: JsonValue | undefined): number => {
  if (typeof operand === 'number') return operand;
  throw new BadSchema(`'${keyword}' must be a number`);
};

/** A whole number that is not negative. */
export const countOf = (keyword: string, operand: JsonValue | undefined): number => {
  if (typeof operand === 'number' && Number.isInteger(operand) && operand >= 0) return operand;
  throw new BadSchema(`'${keyword}' must be a whole number that is not negative`);
};

export const listOf = (keyword: string, operand: JsonValue | undefined): readonly JsonValue[] => {
  if (Array.isArray(operand)) return operand;
  throw new BadSchema(`'${keyword}' must be a list`);
};

export const textsOf = (keyword: string, operand: JsonValue | undefined): readonly string[] =>
  listOf(keyword, operand).map((item) => textOf(keyword, item));

export const objectOf = (keyword: string, operand: JsonValue | undefined): JsonObject => {
  if (isObject(operand)) return operand;
  throw new BadSchema(`'${keyword}' must be an object`);
};
