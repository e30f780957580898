/**
 * The parts of OpenAPI 3.1 that our document uses, as a closed JSON Schema: whatever is not named here does not belong
 * into the document. The whole official schema is checked by `npm run test:real`.
 */
const text = { type: 'string' };
const ref = (name: string) => ({ $ref: `#/$defs/${name}` });
const mapOf = (schema: object, pattern = '^[A-Za-z0-9._@-]+$') => ({
  type: 'object',
  propertyNames: { pattern },
  additionalProperties: schema,
});
const record = (properties: object, required: readonly string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const referenceOr = (place: string, schema: object) => ({
  anyOf: [record({ $ref: { type: 'string', pattern: `^#/components/${place}/` } }, ['$ref']), schema],
});
const examples = mapOf(record({ summary: text, description: text, value: {} }, ['value']));
const content = {
  type: 'object',
  propertyNames: { pattern: '^[a-z]+/[a-z0-9.+-]+$' },
  additionalProperties: record({ schema: ref('schema'), examples }, ['schema']),
  minProperties: 1,
};

export const META_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...record(
    {
      openapi: { const: '3.1.1' },
      info: record(
        {
          title: text,
          version: { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+' },
          description: text,
          license: record({ name: text, identifier: text }, ['name']),
        },
        ['title', 'version'],
      ),
      servers: { type: 'array', items: record({ url: text, description: text }, ['url']) },
      security: ref('security'),
      tags: { type: 'array', items: record({ name: text, description: text }, ['name']) },
      paths: {
        type: 'object',
        propertyNames: { pattern: '^/' },
        additionalProperties: {
          type: 'object',
          propertyNames: { enum: ['get', 'post', 'patch', 'delete'] },
          additionalProperties: ref('operation'),
          minProperties: 1,
        },
      },
      components: record(
        {
          securitySchemes: mapOf(
            record({ type: { const: 'http' }, scheme: text, bearerFormat: text, description: text }, [
              'type',
              'scheme',
            ]),
          ),
          parameters: mapOf(ref('parameter')),
          headers: mapOf(ref('header')),
          responses: mapOf(ref('response')),
          schemas: mapOf(ref('schema')),
        },
        ['schemas'],
      ),
    },
    ['openapi', 'info', 'paths', 'components'],
  ),
  $defs: {
    // What a schema itself may be is checked by compiling it.
    schema: { type: 'object' },
    security: { type: 'array', items: mapOf({ type: 'array', maxItems: 0 }) },
    header: record({ schema: ref('schema'), description: text }, ['schema']),
    parameter: {
      ...record(
        {
          name: text,
          in: { enum: ['path', 'query', 'header'] },
          required: { type: 'boolean' },
          schema: ref('schema'),
          description: text,
          examples,
        },
        ['name', 'in', 'schema', 'description'],
      ),
      // A part of the path is never left out.
      anyOf: [
        { properties: { in: { const: 'path' }, required: { const: true } }, required: ['required'] },
        { properties: { in: { enum: ['query', 'header'] } } },
      ],
    },
    response: record(
      {
        description: { type: 'string', minLength: 1 },
        headers: mapOf(referenceOr('headers', ref('header'))),
        content,
      },
      ['description'],
    ),
    operation: record(
      {
        tags: { type: 'array', items: text, minItems: 1 },
        operationId: { type: 'string', pattern: '^[a-z]+_[A-Za-z_]+$' },
        summary: { type: 'string', minLength: 1 },
        description: text,
        security: ref('security'),
        parameters: { type: 'array', items: referenceOr('parameters', ref('parameter')), uniqueItems: true },
        requestBody: record({ description: text, required: { type: 'boolean' }, content }, ['content']),
        responses: {
          type: 'object',
          propertyNames: { pattern: '^[1-5]\\d\\d$' },
          additionalProperties: referenceOr('responses', ref('response')),
          minProperties: 1,
        },
      },
      ['tags', 'operationId', 'summary', 'responses'],
    ),
  },
};
