import type { JsonObject } from '../../domain/json.ts';
import type { ErrorName } from '../errors.ts';
import type { HeaderName, ParameterName } from './parameters.ts';

/** What a route of `/api/ledger/v1` is for; its verb and path come from the route itself. A test asks for every one. */
export type Description = {
  readonly summary: string;
  readonly description?: string;
  readonly ownParameters?: readonly JsonObject[];
  /** Default: of `/api/audit/v1` what every look, and every write, takes; none elsewhere. */
  readonly parameters?: readonly ParameterName[];
  readonly body?: JsonObject;
  /** Name of the component of the answer, or its schema. */
  readonly answer?: string | JsonObject;
  /** Other types that the same answer comes in, with their schemas. */
  readonly alternatives?: { readonly [contentType: string]: JsonObject };
  /** Of the answer. Default: 200. */
  readonly status?: 200 | 202;
  /** Instead of JSON: types of the answer, with their schemas. */
  readonly content?: { readonly [contentType: string]: JsonObject };
  /** Parts of it may be fetched, and it need not be sent again. */
  readonly partial?: true;
  /** Component of each line, where the answer is newline-delimited JSON. */
  readonly lines?: string;
  readonly headers?: readonly HeaderName[];
  /** Beside those of all calls of its surface, and `NOT_FOUND` where its path names something. */
  readonly errors?: readonly ErrorName[];
};

export const TEXT: JsonObject = { type: 'string' };
export const COUNT: JsonObject = { type: 'integer', minimum: 0 };
export const FLAG: JsonObject = { type: 'boolean' };
export const TIME: JsonObject = { type: 'string', format: 'date-time' };
export const OPEN: JsonObject = { type: 'object' };

export const query = (name: string, schema: JsonObject, description: string): JsonObject => ({
  name,
  in: 'query',
  schema,
  description,
});
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

/** What has no parameters of its own is sent without a body, or with an empty object. */
export const NO_BODY: JsonObject = { type: 'object' };
