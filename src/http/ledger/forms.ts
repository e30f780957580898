import { z } from 'zod';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { own } from '../../domain/json-tools.ts';
import { invalid } from '../errors.ts';
import { onlyOne } from '../osac/query.ts';
import { readRfc3339 } from '../times.ts';

/**
 * Words of the schemas of our own routes. Each schema is written once: requests are read by it, the OpenAPI document shows
 * it, and its type is that of the answer here and in the command line. Messages go on behind the name of the field.
 */
export const TEXT = z.string({ error: 'must be a text' });
export const COUNT = z.int().min(0);
export const FLAG = z.boolean({ error: 'must be true or false' });
export const TIME = z.string().meta({ format: 'date-time' });
export const SECONDS = z.number().min(0);
/** Nothing is read by these: what is in them is made by others. */
export const JSON_VALUE = z.unknown() as unknown as z.ZodType<JsonValue>;
export const OPEN = z.record(z.string(), JSON_VALUE, { error: 'must be an object' });

export const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).readonly();
export const mapOf = <Value extends z.ZodType>(value: Value) => z.record(z.string(), value);
/** Fields that may be absent. */
export const maybe = <Fields extends z.ZodRawShape>(fields: Fields) => z.object(fields).partial().shape;
/** All of a list in one answer. */
export const itemsOf = <Item extends z.ZodType>(item: Item) => z.strictObject({ items: listOf(item) });

/** What has no parameters of its own is sent without a body, or with an empty object. */
export const NO_BODY = z.object({});
export const NO_QUERY = z.strictObject({});

/** `without`: what there is without it. An empty value is most often a variable that was not set. */
const orEmpty = (without: string | undefined, wrong: string, needed?: string) => ({
  error: ({ input }: { readonly input?: unknown }) => {
    if (needed !== undefined && (input === undefined || input === '')) return `is needed: ${needed}`;
    return input === '' && without !== undefined ? emptyText(without) : wrong;
  },
});
const emptyText = (without: string): string => `must not be empty; leave it out for ${without}`;

export const flagIn = (without: string) => z.boolean(orEmpty(without, 'must be true or false'));

/** `needed`: what it is, where it has to be given. */
export const wholeNumber = (least: number, most: number, without?: string, needed?: string) => {
  const error = `must be a whole number from ${least} to ${most}`;
  return z
    .int(orEmpty(without, error, needed))
    .min(least, { error })
    .max(most, { error });
};

export const oneOf = <const Name extends string>(
  names: readonly Name[],
  without?: string,
  error = `must be ${names.length === 2 ? names.join(' or ') : `one of ${names.filter(Boolean).join(', ')}`}`,
) => z.enum(names, orEmpty(without, error));

export const filled = (without: string, most = 1_000) =>
  shortText(most).min(1, { error: emptyText(without) });

export const shortText = (most: number) => TEXT.max(most, { error: `may have at most ${most} characters` });

/** A text that has to be given; `what`: said of it where it is not. */
export const neededText = (most = 1_000, what = '') => {
  const error = what === '' ? 'is needed' : `is needed: ${what}`;
  return z
    .string({ error: ({ input }) => (input === undefined ? error : 'must be a text') })
    .min(1, { error })
    .max(most, { error: `may have at most ${most} characters` })
    .refine((text) => text.trim() !== '', { error });
};

/** A time of RFC 3339, read as ISO in UTC. */
export const timeIn = (without?: string) =>
  TIME.transform((text, context) => {
    const ms = readRfc3339(text);
    if (ms !== undefined) return new Date(ms).toISOString();
    const wrong = 'must be a time such as 2026-11-01T00:00:00Z';
    context.addIssue(text === '' && without !== undefined ? emptyText(without) : wrong);
    return z.NEVER;
  });

/** What a query asks for, by the schema that documents it. Throws ApiError 400 that names the parameter. */
export const readQuery = <Query extends z.ZodObject>(
  query: URLSearchParams,
  schema: Query,
): z.output<Query> => {
  const names = [...new Set(query.keys())];
  const given = names.map((name) => [name, valueOf(query, name, own(schema.shape, name))] as const);
  return read(Object.fromEntries(given), schema, 'query parameter');
};

/** The same of a body. */
export const readBody = <Body extends z.ZodObject>(body: JsonObject, schema: Body): z.output<Body> =>
  read(body, schema, 'field');

type Wrapped = { readonly type: string; readonly innerType?: z.core.$ZodType; readonly in?: z.core.$ZodType };

/** The schema within defaults and the like. */
const innermost = (schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined => {
  const { innerType, in: source } = (schema?._zod.def ?? {}) as Wrapped;
  const inner = innerType ?? source;
  return inner === undefined ? schema : innermost(inner);
};

/** A text as what its schema takes; one that is no such value stays as it is, and is refused by the schema. */
const valueOf = (query: URLSearchParams, name: string, schema: z.core.$ZodType | undefined): unknown => {
  const type = innermost(schema)?._zod.def.type;
  if (type === 'array') {
    const all = query.getAll(name);
    return all.includes('') ? [] : all.flatMap((text) => text.split(',').filter((part) => part !== ''));
  }
  const text = schema === undefined ? '' : (onlyOne(query, name) ?? '');
  if (type === 'number' && /^\d{1,10}$/.test(text)) return Number(text);
  return type === 'boolean' && /^(true|false)$/.test(text) ? text === 'true' : text;
};

const read = <Schema extends z.ZodObject>(given: unknown, schema: Schema, what: string): z.output<Schema> => {
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  // A name that nobody reads explains why another one is missing.
  const unknown = error.issues.find(({ code }) => code === 'unrecognized_keys');
  if (unknown !== undefined) throw unknownName(unknown as z.core.$ZodIssueUnrecognizedKeys, schema, what);
  const { path = [], message = '' } = error.issues[0] ?? {};
  const index = path.findIndex((part) => typeof part === 'number');
  const name = path.slice(0, index < 0 ? path.length : index).join('.');
  throw invalid(`${what} '${name}' ${message}`, name);
};

const unknownName = (
  { path, keys }: z.core.$ZodIssueUnrecognizedKeys,
  schema: z.ZodObject,
  what: string,
): Error => {
  const name = [...path, ...keys.slice(0, 1)].join('.').slice(0, 100);
  const inner = path.reduce<z.core.$ZodType | undefined>(
    (of, part) => own(shapeOf(of), String(part)),
    schema,
  );
  const names = Object.keys(shapeOf(inner));
  const known = names.length === 0 ? 'this route takes none' : `this route takes ${names.join(', ')}`;
  return invalid(`unknown ${what} '${name}'; ${known}`, name);
};

type Shape = { readonly [name: string]: z.core.$ZodType };

const shapeOf = (schema: z.core.$ZodType | undefined): Shape => {
  const inner = innermost(schema);
  return inner instanceof z.ZodObject ? inner.shape : {};
};

/** Names of the fields of a body, dotted. */
export const fieldsOf = (schema: z.core.$ZodType): readonly string[] =>
  Object.entries(shapeOf(schema)).flatMap(([name, field]) => {
    const inner = innermost(field);
    const parts = inner instanceof z.ZodUnion ? inner.options : [field];
    const within = [...new Set(parts.flatMap(fieldsOf))];
    return within.length === 0 ? [name] : within.map((each) => `${name}.${each}`);
  });

type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** An answer under the names that its values have here: `last_reason` as `lastReason`. */
export type InOurWords<Answer> = Answer extends readonly (infer Item)[]
  ? readonly InOurWords<Item>[]
  : Answer extends object
    ? {
        readonly [Name in keyof Answer as Name extends string ? Camel<Name> & string : Name]: InOurWords<
          Answer[Name]
        >;
      }
    : Answer;

/** A value of ours as an answer shows it: what its schema names, and nothing else. */
export const rendered = <Schema extends z.ZodType>(
  schema: Schema,
  value: InOurWords<z.output<Schema>>,
): z.output<Schema> => inForm(schema, value) as z.output<Schema>;

const inForm = (schema: z.core.$ZodType, value: unknown): unknown => {
  const inner = innermost(schema);
  if (inner instanceof z.ZodArray)
    return (value as readonly unknown[]).map((item) => inForm(inner.element, item));
  if (!(inner instanceof z.ZodObject)) return value;
  return Object.fromEntries(
    Object.entries(inner.shape as Shape).flatMap(([name, part]) => {
      const found = (value as Readonly<Record<string, unknown>>)[camelCase(name)];
      return found === undefined ? [] : [[name, inForm(part, found)]];
    }),
  );
};

export const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const camelCase = (name: string): string =>
  name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
