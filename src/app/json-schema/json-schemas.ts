import { LRUCache } from 'lru-cache';
import type { JsonValue } from '../../domain/json.ts';
import { createRun, TooMuchWork } from './run.ts';
import { readSchema, type ReadSchema } from './schema.ts';
import { evaluate } from './types.ts';

/** Schemas as texts, and values against them. Both bounded: neither ever holds the thread (see `schema.ts`). */
export type JsonSchemas = {
  /** Why a text is not a schema that is taken, as one clause; undefined when it is. */
  readonly problemWith: (schema: string) => string | undefined;
  /** What is asked of the value that it does not fulfil, `workers.size: must be at most 10`; undefined when it fits. */
  readonly misfit: (schema: string, value: JsonValue) => string | undefined;
};

/** Steps of one evaluation: at most about ten milliseconds. */
const MAX_STEPS = 100_000;
/** Schemas that are kept read, at most 8 kB of text each. */
const REMEMBERED = 500;

export const createJsonSchemas = ({
  maxSteps = MAX_STEPS,
}: {
  readonly maxSteps?: number;
} = {}): JsonSchemas => {
  const read = new LRUCache<string, ReadSchema>({ max: REMEMBERED });

  const schemaOf = (text: string): ReadSchema => {
    const known = read.get(text);
    if (known !== undefined) return known;
    const schema = readSchema(text);
    // A refused text may be of any length.
    if (schema.ok) read.set(text, schema);
    return schema;
  };

  return {
    problemWith: (text) => {
      const schema = schemaOf(text);
      return schema.ok ? undefined : schema.problem;
    },
    misfit: (text, value) => {
      const schema = schemaOf(text);
      if (!schema.ok) return `its schema cannot be used: ${schema.problem}`;
      try {
        const found = evaluate(schema.schema, value, [], createRun(maxSteps));
        return found === undefined ? undefined : worded(found.at, found.problem);
      } catch (error) {
        if (error instanceof TooMuchWork) return error.message;
        throw error;
      }
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
