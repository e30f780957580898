import type { JsonValue } from '../../domain/json.ts';
import { codePoints, isObject } from '../../domain/json-tools.ts';
import { countOf, numberOf } from './operands.ts';
import type { Run } from './run.ts';
import type { Keyword } from './types.ts';

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

export const BOUND_KEYWORDS = BOUNDS.map((row): readonly [string, Keyword] => [row[0], bound(...row)]);
