import type { JsonObject } from '../../domain/json.ts';
import { textOf } from '../../domain/json-tools.ts';
import type { ErrorName } from '../errors.ts';
import type { OperationExample } from './examples.ts';
import { ALWAYS, PARAMETERS, jsonContent, parameterRef, type ParameterName } from './parameters.ts';
import { refusals, type Style } from './refusals.ts';

export type Verb = 'get' | 'post' | 'patch' | 'delete';

/** One operation of the document, before it is written down. */
export type Operation = {
  readonly verb: Verb;
  /** With `{id}` and the like. */
  readonly path: string;
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly anonymous?: true;
  readonly parameters?: readonly ParameterName[];
  /** Further names in the path, each with what it is. */
  readonly pathNames?: { readonly [name: string]: string };
  /** Parameters of this operation only. */
  readonly ownParameters?: readonly JsonObject[];
  readonly body?: { readonly schema: JsonObject; readonly required: boolean; readonly description?: string };
  /** By status: the answers that are no errors. */
  readonly answers: { readonly [status: string]: JsonObject };
  readonly errors: readonly ErrorName[];
  readonly style: Style;
};

/** `[path, verb, operation object]` as OpenAPI has it. */
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

const bodyExamples = (examples: readonly OperationExample[]): JsonObject =>
  Object.fromEntries(
    examples.flatMap(({ id, summary, body }) => (body === undefined ? [] : [[id, { summary, value: body }]])),
  );

/** Shared parameters by reference; one for which an example is stored is written out with it. */
const parametersOf = (
  { parameters = [], pathNames = {}, ownParameters = [] }: Operation,
  examples: readonly OperationExample[],
): JsonObject[] => {
  const shared = [...parameters, ...ALWAYS].map((name): JsonObject => {
    const parameter: JsonObject = PARAMETERS[name];
    const values = examples.flatMap(({ id, summary, parameters: given = {} }) => {
      const value = given[textOf(parameter['name'])];
      return value === undefined ? [] : [[id, { summary, value }] as const];
    });
    return values.length === 0 ? parameterRef(name) : { ...parameter, examples: Object.fromEntries(values) };
  });
  const own = Object.entries(pathNames).map(
    ([name, description]): JsonObject => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string', minLength: 1 },
      description,
    }),
  );
  return [...own, ...ownParameters, ...shared];
};
