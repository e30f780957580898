import type { JsonObject } from '../../domain/json.ts';

export const TEXT: JsonObject = { type: 'string' };
export const COUNT: JsonObject = { type: 'integer', minimum: 0 };
export const FLAG: JsonObject = { type: 'boolean' };
export const TIME: JsonObject = { type: 'string', format: 'date-time' };
export const OPEN: JsonObject = { type: 'object' };

export const listOf = (items: JsonObject): JsonObject => ({ type: 'array', items });
/** Every property is there but for those whose names end in `?`. */
export const record = (properties: JsonObject): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name.replace('?', ''), schema]),
  ),
  required: Object.keys(properties).filter((name) => !name.endsWith('?')),
  additionalProperties: false,
});
