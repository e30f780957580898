import { Ajv2020, type AnySchema, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';

/** The document as specs use it: look up operations, check bodies against it. */
export type OpenApi = ReturnType<typeof openApi>;

export type DocumentedOperation = {
  readonly path: string;
  readonly verb: string;
  readonly operation: JsonObject;
};

const addFormats = formats as unknown as (ajv: Ajv2020) => void;

const strictAjv = (): Ajv2020 => {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    allowUnionTypes: true,
    allErrors: true,
  });
  addFormats(ajv);
  // Annotations in the document; the bounds of the numbers are written out beside them.
  ajv.addFormat('int32', true);
  ajv.addFormat('int64', true);
  return ajv;
};

export const openApi = (document: JsonObject) => {
  const ajv = strictAjv();
  const schemas = objectAt(objectAt(document, 'components'), 'schemas');
  // Each by itself: what is part of another schema is compiled again for each reference to it.
  for (const [name, schema] of Object.entries(schemas))
    ajv.addSchema(moved(schema as JsonObject) as AnySchema, `component:${name}`);
  const compiled = new Map<string, ValidateFunction>();

  const operations: readonly DocumentedOperation[] = Object.entries(objectAt(document, 'paths')).flatMap(
    ([path, item]) =>
      Object.entries(item as JsonObject).map(([verb, operation]) => ({
        path,
        verb,
        operation: operation as JsonObject,
      })),
  );

  /** Follows `$ref` inside the document. */
  const resolve = (value: JsonValue | undefined): JsonObject => {
    if (!isObject(value)) throw new Error('nothing to resolve');
    const reference = stringAt(value, '$ref');
    if (reference === '') return value;
    const target = reference
      .slice(2)
      .split('/')
      .reduce<JsonValue | undefined>((node, key) => (isObject(node) ? node[key] : undefined), document);
    if (target === undefined) throw new Error(`the document has no ${reference}`);
    return resolve(target);
  };

  /** Problems of a value with a schema of the document; empty when it fits. */
  const problemsOf = (schema: JsonObject, value: unknown): readonly string[] => {
    const key = JSON.stringify(schema);
    let validate = compiled.get(key);
    if (validate === undefined) {
      validate = ajv.compile(moved(schema) as AnySchema);
      compiled.set(key, validate);
    }
    if (validate(value)) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  };

  const find = (verb: string, pathname: string): DocumentedOperation | undefined => {
    const wanted = pathname.split('/');
    const fits = operations.filter(
      (candidate) => candidate.verb === verb.toLowerCase() && fitsTemplate(candidate.path, wanted),
    );
    // A literal segment wins over a name: `…/events/watch` over `…/events/{id}`.
    return fits.toSorted((left, right) => left.path.split('{').length - right.path.split('{').length)[0];
  };

  /** What an answer has that the document does not tell of; empty when all is told. */
  const answerProblems = (
    verb: string,
    pathname: string,
    answer: { readonly status: number; readonly contentType: string; readonly text: string },
  ): readonly string[] => {
    const found = find(verb, pathname);
    if (found === undefined) return [`${verb} ${pathname} is not in the document`];
    const declared = objectAt(found.operation, 'responses')[String(answer.status)];
    if (declared === undefined) return [`${verb} ${found.path} has no answer ${answer.status}`];
    const content = objectAt(resolve(declared), 'content');
    const type = answer.contentType.split(';')[0]?.trim() ?? '';
    if (Object.keys(content).length === 0) return answer.text === '' ? [] : ['a body that is not declared'];
    if (!Object.hasOwn(content, type)) return [`content type '${type}' is not declared`];
    const schema = objectAt(objectAt(content, type), 'schema');
    if (type === 'application/x-ndjson')
      return answer.text
        .split('\n')
        .filter((line) => line !== '')
        .flatMap((line) => problemsOf(schema, JSON.parse(line)));
    return problemsOf(schema, contentOf(type, answer.text));
  };

  return { document, schemas, operations, resolve, problemsOf, find, answerProblems };
};

/** What a schema of an answer is about: text means itself in no format but plain text. */
const contentOf = (type: string, text: string): unknown => {
  if (type.endsWith('json')) return JSON.parse(text);
  return type.endsWith('yaml') ? parse(text) : text;
};

const fitsTemplate = (template: string, wanted: readonly string[]): boolean => {
  const segments = template.split('/');
  return (
    segments.length === wanted.length &&
    segments.every((segment, i) => segment === wanted[i] || (segment.startsWith('{') && wanted[i] !== ''))
  );
};

/** Components as Ajv finds them. */
const moved = (schema: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', 'component:')) as JsonObject;

export const requestSchemaOf = ({ operation }: DocumentedOperation): JsonObject =>
  objectAt(objectAt(objectAt(objectAt(operation, 'requestBody'), 'content'), 'application/json'), 'schema');

/** Names of the parameters of an operation, with where they go. */
export const parametersOf = (api: OpenApi, { operation }: DocumentedOperation): readonly JsonObject[] =>
  listAt(operation, 'parameters').map((parameter) => api.resolve(parameter));
