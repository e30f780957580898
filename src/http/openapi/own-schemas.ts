import { z } from 'zod';
import type { JsonObject } from '../../domain/json.ts';

/** Schemas of our own routes as JSON Schema 2020-12; those that have an id are components, made on first use. */
export type OwnSchemas = {
  readonly of: (schema: z.ZodType) => JsonObject;
  readonly components: () => { readonly [name: string]: JsonObject };
};

export const createOwnSchemas = (): OwnSchemas => {
  const components: { [name: string]: JsonObject } = {};
  return {
    of: (schema) => {
      const made = JSON.stringify(z.toJSONSchema(schema, { io: 'input', override: plainly }));
      const {
        $schema: _draft,
        $defs,
        ...form
      } = JSON.parse(made.replaceAll('"#/$defs/', '"#/components/schemas/')) as JsonObject & {
        readonly $defs?: { readonly [name: string]: JsonObject };
      };
      Object.assign(components, $defs);
      return form;
    },
    components: () => components,
  };
};

/** Leaves out what goes without saying, and what types of ours mean by `readonly`. */
const plainly = ({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void => {
  delete jsonSchema.readOnly;
  delete jsonSchema.propertyNames;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
};
