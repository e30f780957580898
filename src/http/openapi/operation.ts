import type { JsonObject } from '../../domain/json.ts';
import { own, textOf } from '../../domain/json-tools.ts';
import type { ErrorName } from '../errors.ts';
import type { OperationExample } from './examples.ts';
import { ALWAYS, PARAMETERS, jsonContent, parameterRef, type ParameterName } from './parameters.ts';
import { refusals, type Style } from './refusals.ts';

export type Verb = 'get' | 'post' | 'patch' | 'delete';

export type Operation = {
  readonly verb: Verb;
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly anonymous?: true;
  readonly parameters?: readonly ParameterName[];
  readonly pathNames?: { readonly [name: string]: string };
  readonly ownParameters?: readonly JsonObject[];
  readonly body?: { readonly schema: JsonObject; readonly required: boolean; readonly description?: string };
  readonly answers: { readonly [status: string]: JsonObject };
  readonly errors: readonly ErrorName[];
  readonly style: Style;
};

export const renderOperation = (operation: Operation, examples: readonly OperationExample[]): JsonObject => {
  const { tag, operationId, summary, description, anonymous, body, answers, errors, style } = operation;
  const parameters = parametersOf(operation, examples);
  return {
    tags: [tag],
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(anonymous === true ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            ...(body.description === undefined ? {} : { description: body.description }),
            required: body.required,
            content: jsonContent(body.schema, bodyExamples(examples)),
          },
        }),
    responses: { ...answers, ...refusals(errors, style) },
  };
};

/** A body that means something else without its parameters says so: choosing it in a form fills in the body only. */
const bodyExamples = (examples: readonly OperationExample[]): JsonObject =>
  Object.fromEntries(
    examples.flatMap(({ id, summary, body, parameters = {} }): [string, JsonObject][] => {
      if (body === undefined) return [];
      const beside = Object.entries(parameters).filter(([name]) => !isRequired(name));
      const written = beside.map(([name, value]) => `\`${name}: ${value}\``).join(', ');
      return [
        [id, { summary, ...(written === '' ? {} : { description: `Sent with ${written}.` }), value: body }],
      ];
    }),
  );

const isRequired = (name: string): boolean =>
  Object.values<JsonObject>(PARAMETERS).some(
    (parameter) => parameter['name'] === name && parameter['required'] === true,
  );

/** Names in the path, what is this operation's own, then what it shares with others. */
const parametersOf = (
  { parameters = [], pathNames = {}, ownParameters = [] }: Operation,
  examples: readonly OperationExample[],
): JsonObject[] => {
  const shared = [...parameters, ...ALWAYS].map((name) => sharedParameter(name, examples));
  const named = Object.entries(pathNames).map(
    ([name, description]): JsonObject => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string', minLength: 1 },
      description,
    }),
  );
  return [...named, ...ownParameters, ...shared];
};

/**
 * By reference; written out where an example is stored.
 * Swagger UI sends the first of `examples` (and any `example`) of a parameter unless somebody empties the field, so that
 * an order would be a dry run and a list a filtered one. Examples of what may be left out are words of the description.
 */
const sharedParameter = (name: ParameterName, examples: readonly OperationExample[]): JsonObject => {
  const parameter: JsonObject = PARAMETERS[name];
  const values = examples.flatMap(({ id, summary, parameters = {} }) => {
    const value = own(parameters, textOf(parameter['name']));
    return value === undefined ? [] : [{ id, summary, value }];
  });
  if (values.length === 0) return parameterRef(name);
  if (parameter['required'] === true) {
    const named = values.map(({ id, summary, value }): [string, JsonObject] => [id, { summary, value }]);
    return { ...parameter, examples: Object.fromEntries(named) };
  }
  const lines = values.map(({ summary, value }) => `Example: \`${value}\` (${summary}).`);
  return { ...parameter, description: [textOf(parameter['description']), ...lines].join('\n\n') };
};
