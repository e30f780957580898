import { LRUCache } from 'lru-cache';
import type { JsonValue } from '../../domain/json.ts';
import { createRun, TooMuchWork } from './run.ts';
import { readSchema, type ReadSchema } from './schema.ts';
import { evaluate } from './types.ts';

/** Schemas as texts, and values against them. Both bounded: neither ever holds the thread (see `schema.ts`). */
export type JsonSchemas = {
  /** Reads a schema that somebody wrote. */
  readonly read: (schema: string) => SchemaOutcome;
  /**
   * Judges the values of one request: what a value does not fulfil, `workers.size: must be at most 10`; undefined when
   * it fits. All its judgements together have one bound.
   */
  readonly judge: () => (schema: string, value: JsonValue) => string | undefined;
};

export type SchemaOutcome =
  /** `patternSize`: what its patterns cost to read again, see `LIMITS.patterns` in `schema.ts`. */
  | { readonly ok: true; readonly patternSize: number }
  /** Why it is not taken, as one clause. */
  | { readonly ok: false; readonly problem: string };

/** Steps of one request: a few milliseconds, about ten when the code is cold. */
const MAX_STEPS = 100_000;
/** Schemas that are kept read, at most 8 kB of text each. */
const REMEMBERED = 500;

export const createJsonSchemas = ({
  maxSteps = MAX_STEPS,
}: {
  readonly maxSteps?: number;
} = {}): JsonSchemas => {
  const known = new LRUCache<string, Extract<ReadSchema, { ok: true }>>({ max: REMEMBERED });

  const read = (text: string): ReadSchema => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const schema = readSchema(text);
    // A refused text may be of any length.
    if (schema.ok) known.set(text, schema);
    return schema;
  };

  return {
    read,
    judge: () => {
      const run = createRun(maxSteps);
      return (text, value) => {
        const schema = read(text);
        if (!schema.ok) return `its schema cannot be used: ${schema.problem}`;
        try {
          const found = evaluate(schema.schema, value, [], run);
          return found === undefined ? undefined : worded(found.at, found.problem);
        } catch (error) {
          if (error instanceof TooMuchWork) return error.message;
          throw error;
        }
      };
    },
  };
};

const MAX_SHOWN = 200;

const worded = (at: readonly string[], problem: string): string => {
  const where = at.join('.');
  return where === ''
    ? problem
    : `${where.length > MAX_SHOWN ? `${where.slice(0, MAX_SHOWN)}…` : where}: ${problem}`;
};
