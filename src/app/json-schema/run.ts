import type { JsonValue } from '../../domain/json.ts';

/** One evaluation: what it may still cost. A step is at most about a tenth of a microsecond. */
export type Run = {
  /** Throws TooMuchWork when the evaluation has used up its steps. */
  readonly spend: (steps: number) => void;
};

/** A value that cannot be judged within the bound: refused rather than waited for. */
export class TooMuchWork extends Error {
  override readonly name = 'TooMuchWork';
}

export const createRun = (steps: number): Run => {
  let left = steps;
  return {
    spend: (used) => {
      left -= used;
      if (left < 0) throw new TooMuchWork('the value is too large to be checked');
    },
  };
};

/** Equality as JSON Schema means it; each pair of nodes that is looked at costs a step. */
export const equal = (left: JsonValue, right: JsonValue, run: Run): boolean => {
  run.spend(1);
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  const others = right as { readonly [key: string]: JsonValue };
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => {
      const other = Object.hasOwn(others, key) ? others[key] : undefined;
      return (
        other !== undefined && equal((left as { readonly [key: string]: JsonValue })[key] ?? null, other, run)
      );
    })
  );
};
