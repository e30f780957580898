import { cause, type Cause } from '../errors.ts';
import type { JsonObject } from '../types.ts';
import { compileRules, ruleFaults } from './rules.ts';
import type { Schema } from './schema.ts';
import { prune, structuralFaults, withDefaults } from './structure.ts';

/** The schema of a custom resource, ready to use. Metadata is not its business. */
export type CompiledSchema = {
  readonly schema: Schema;
  /** Without unknown fields, with defaults; `dropped` are the paths of what was unknown. */
  admit(object: JsonObject): { readonly object: JsonObject; readonly dropped: readonly string[] };
  /** Faults of an object, and of the step from what was stored before. */
  faults(object: JsonObject, before: JsonObject | undefined): Cause[];
};

/** Faults after which the real server does not look at the rules any more. */
const BLOCKING = new Set([
  'FieldValueRequired',
  'FieldValueTypeInvalid',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueNotSupported',
]);

const NOT_CHECKED =
  'Invalid value: null: some validation rules were not checked because the object was invalid; ' +
  'correct the existing errors to complete validation';

export const compileSchema = (schema: Schema): CompiledSchema => {
  const rules = compileRules(schema);
  return {
    schema,
    admit: (object) => {
      const { apiVersion, kind, metadata, ...rest } = object;
      const dropped: string[] = [];
      const pruned = withDefaults(prune(rest, schema, '', dropped), schema) as JsonObject;
      const head = { apiVersion, kind, metadata } as JsonObject;
      return { object: { ...head, ...pruned }, dropped };
    },
    faults: (object, before) => {
      const { apiVersion: _version, kind: _kind, metadata: _metadata, ...rest } = object;
      const faults = structuralFaults(rest, schema, '');
      if (rules === undefined) return faults;
      if (faults.some(({ reason }) => BLOCKING.has(reason))) {
        return [...faults, cause('<nil>', 'FieldValueInvalid', NOT_CHECKED)];
      }
      return [...faults, ...ruleFaults(rules, object, before, '')];
    },
  };
};
