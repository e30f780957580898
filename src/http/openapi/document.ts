import type { JsonObject } from '../../domain/json.ts';
import { kinds, kindOf } from '../../domain/kinds.ts';
import type { LedgerRoute } from '../ledger/serve.ts';
import type { SurfaceTable } from '../osac/service-table.ts';
import type { OperationExample } from './examples.ts';
import { fieldNotes } from './field-notes.ts';
import { ledgerOperations } from './ledger-operations.ts';
import { FLAG, listOf, OPEN, record, TEXT } from './ledger-schemas.ts';
import { createMessageSchemas, sharedComponents } from './message-schemas.ts';
import { type Operation, renderOperation } from './operation.ts';
import { OSAC_COMPONENTS, osacOperations } from './osac-operations.ts';
import { createOwnSchemas } from './own-schemas.ts';
import { headerRefs, jsonContent, HEADERS, PARAMETERS } from './parameters.ts';
import { EVERYBODY, ERROR_COMPONENTS, refusalComponents } from './refusals.ts';
import { watchOperation, type WatchRoute } from './watch-operations.ts';

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

const serviceOperations = (): readonly Operation[] => [
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

const SERVICE_COMPONENTS: { readonly [name: string]: JsonObject } = {
  KeySet: record({ keys: listOf(OPEN) }),
  Readiness: record({ ready: FLAG, checks: listOf(CHECK) }),
};

/** Everything that is served, as the application knows it: the document describes this and nothing else. */
export type Described = {
  readonly surfaces: readonly SurfaceTable[];
  readonly watches: readonly WatchRoute[];
  readonly ledgerPrefix: string;
  readonly ledgerRoutes: readonly LedgerRoute[];
  readonly auditPrefix: string;
  readonly auditRoutes: readonly LedgerRoute[];
  readonly version: string;
};

const INTRODUCTION = `Fulfillment service of a sovereign AI cloud, on an event log.

\`/api/fulfillment/v1\` (tenants) and \`/api/private/v1\` (providers, controllers) speak OSAC's wire protocol: snake_case
names, defaults left out, enums by name, 64-bit numbers as text, errors as \`{"code","message","details"}\`. Requests may
also write names in camelCase. \`/api/ledger/v1\` (operators) and \`/api/audit/v1\` (auditors) are our own, with RFC 9457
errors.

HEAD answers like GET, without a body. Every write takes an \`Idempotency-Key\`; 503 means that nothing was stored, 504
that the same request has to be repeated with the same key to learn what became of it. Objects of other tenants answer
like absent ones. Fields may be added to answers without notice.`;

/**
 * The OpenAPI 3.1 document, in steps between which other work may be done: all at once would hold the thread too long.
 * Pure: everything comes from the declarations and the tables of routes.
 */
export function* openApiSteps(
  served: Described,
  examples: readonly OperationExample[],
): Generator<undefined, JsonObject> {
  const notes = fieldNotes(kinds);
  yield;
  const schemas = createMessageSchemas(notes);
  const lists = new Map<string, JsonObject>();
  const operations: Operation[] = [];
  for (const some of osacOperations(served.surfaces, kindOf, schemas, lists)) {
    operations.push(...some);
    yield;
  }
  for (const watch of served.watches) {
    operations.push(watchOperation(watch, schemas));
    yield;
  }
  const own = createOwnSchemas();
  const ownRoutes = [
    ledgerOperations(served.ledgerPrefix, served.ledgerRoutes, own),
    ledgerOperations(served.auditPrefix, served.auditRoutes, own, 'audit'),
  ];
  for (const some of ownRoutes)
    for (const operation of some) {
      operations.push(operation);
      yield;
    }
  operations.push(...serviceOperations());
  yield;
  const paths = pathsOf(operations, examples);
  yield;
  return {
    openapi: '3.1.1',
    info: {
      title: 'fulfillment-ledger',
      version: served.version,
      description: INTRODUCTION,
      license: LICENSE,
    },
    servers: [{ url: '/', description: 'The service that this document comes from.' }],
    security: [{ bearer: [] }],
    tags: [...new Set(operations.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: BEARER },
      parameters: { ...PARAMETERS },
      headers: { ...HEADERS },
      responses: refusalComponents(),
      schemas: {
        ...schemas.components(),
        ...Object.fromEntries(lists),
        ...sharedComponents(),
        ...OSAC_COMPONENTS,
        ...own.components(),
        ...SERVICE_COMPONENTS,
        ...ERROR_COMPONENTS,
      },
    },
  };
}

const LICENSE: JsonObject = { name: 'Apache-2.0', identifier: 'Apache-2.0' };

const BEARER: JsonObject = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: 'A token of one of the issuers that capabilities names.',
};

const pathsOf = (operations: readonly Operation[], examples: readonly OperationExample[]): JsonObject => {
  const byOperation = Map.groupBy(examples, ({ operationId }) => operationId);
  const paths = new Map<string, JsonObject>();
  for (const operation of operations) {
    const { path, verb, operationId } = operation;
    const rendered = renderOperation(operation, byOperation.get(operationId) ?? []);
    paths.set(path, { ...paths.get(path), [verb]: rendered });
  }
  return Object.fromEntries(paths);
};
