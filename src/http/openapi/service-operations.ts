import type { JsonObject } from '../../domain/json.ts';
import type { Operation } from './operation.ts';
import { FLAG, listOf, OPEN, record, TEXT } from './ledger-schemas.ts';
import { headerRefs, jsonContent } from './parameters.ts';
import { EVERYBODY } from './refusals.ts';

const open = (
  path: string,
  operationId: string,
  summary: string,
  answers: Operation['answers'],
): Operation => ({
  verb: 'get',
  path,
  operationId: `service_${operationId}`,
  tag: 'service',
  summary,
  anonymous: true,
  answers,
  errors: EVERYBODY,
  style: 'osac',
});

const answer = (description: string, content?: JsonObject): JsonObject => ({
  description,
  headers: headerRefs(),
  ...(content === undefined ? {} : { content }),
});

const HTML: JsonObject = { 'text/html': { schema: TEXT } };

export const serviceOperations = (): readonly Operation[] => [
  open('/healthz', 'Health', 'The process lives', { 200: answer('It does; the body is empty.') }),
  open('/readyz', 'Readiness', 'Whether this instance should get traffic', {
    200: answer('It should.', jsonContent('Readiness')),
    503: answer('It should not; `checks` say why.', jsonContent('Readiness')),
  }),
  open('/openapi.json', 'OpenApi', 'This document', {
    200: { ...answer('OpenAPI 3.1.', jsonContent({ type: 'object' })), headers: headerRefs('ETag') },
    304: { description: 'You have it as it is.', headers: headerRefs('ETag') },
  }),
  open('/.well-known/jwks.json', 'Keys', "Keys of the service's own signer", {
    200: answer('A JSON Web Key Set.', jsonContent('KeySet')),
  }),
  open('/docs', 'Docs', 'This document, to browse', { 200: answer('A page.', HTML) }),
];

const CHECK = record({
  name: TEXT,
  ok: FLAG,
  'message?': TEXT,
  'warning?': { ...TEXT, description: 'Warnings; traffic may come all the same.' },
});

export const SERVICE_COMPONENTS: { readonly [name: string]: JsonObject } = {
  KeySet: record({ keys: listOf(OPEN) }),
  Readiness: record({ ready: FLAG, checks: listOf(CHECK) }),
};
