import type { z } from 'zod';
import type { ErrorName } from '../errors.ts';
import type { HeaderName, ParameterName } from './parameters.ts';

/** What a route of our own is for; its verb and path come from the route itself. A test asks for every one. */
export type Description = {
  readonly summary: string;
  readonly description?: string;
  /** Its own parameters in the query. */
  readonly query?: z.ZodObject;
  /** Default: of `/api/audit/v1` what every look, and every write, takes; none elsewhere. */
  readonly parameters?: readonly ParameterName[];
  readonly body?: z.ZodObject;
  readonly answer?: z.ZodType;
  /** Other types that the same answer comes in. */
  readonly alternatives?: { readonly [contentType: string]: z.ZodType };
  /** Of the answer. Default: 200. */
  readonly status?: 200 | 202;
  /** Instead of JSON: types of the answer. */
  readonly content?: { readonly [contentType: string]: z.ZodType };
  /** Parts of it may be fetched, and it need not be sent again. */
  readonly partial?: true;
  /** Each line, where the answer is newline-delimited JSON. */
  readonly lines?: z.ZodType;
  readonly headers?: readonly HeaderName[];
  /** Beside those of all calls of its surface, and `NOT_FOUND` where its path names something. */
  readonly errors?: readonly ErrorName[];
};

export type Descriptions = { readonly [route: string]: Description };
