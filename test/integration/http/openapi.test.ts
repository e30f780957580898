import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { kinds } from '../../../src/domain/kinds.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { allows, type AnyMethod } from '../../../src/domain/tenancy/rights.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { ledgerRoutes, type LedgerServices } from '../../../src/http/ledger/routes.ts';
import { readExamples, type OperationExample } from '../../../src/http/openapi/examples.ts';
import { withoutAuditor } from '../../../src/http/audit/routes.ts';
import { isDescribed } from '../../../src/http/openapi/ledger-operations.ts';
import { MESSAGES } from '../../../src/http/osac/messages.ts';
import { PRIVATE_PREFIX, PUBLIC_PREFIX } from '../../../src/http/osac/surfaces.ts';
import { callerOf, startTestService, type Caller, type TestService } from '../../support/http/service.ts';
import { openApi, parametersOf, requestSchemaOf, type OpenApi } from '../../support/openapi/document.ts';
import { META_SCHEMA } from '../../support/openapi/meta-schema.ts';
import { loadShippedCatalogue } from '../../support/http/shipped-catalogue.ts';

const EXAMPLES = 'fixtures/openapi';
const PREFIX = { public: PUBLIC_PREFIX, private: PRIVATE_PREFIX } as const;
/** Public versions have no image, and without one none is made (docs/osac-differences.md). */
const NEVER = 'public_ClusterVersions_Create';
/** No machine runs here: test/integration/consoles sends it. */
const OF_A_RUNNING_MACHINE = 'public_ConsoleSessions_Create';
const METHODS = ['List', 'Get', 'Create', 'Update', 'Delete'] as const;
const VERBS = { List: 'get', Get: 'get', Create: 'post', Update: 'patch', Delete: 'delete' } as const;

describe('the OpenAPI document', () => {
  let service: TestService;
  let api: OpenApi;
  let examples: readonly OperationExample[];

  before(async () => {
    service = await startTestService({ audit: {} });
    // The examples are for whoever followed the quick start.
    await loadShippedCatalogue(service);
    const reply = await callerOf(service)('GET', '/openapi.json');
    expect(reply.status).to.equal(200);
    api = openApi(reply.json as unknown as JsonObject);
    examples = await readExamples(EXAMPLES);
  });
  after(() => service.close());

  describe('is well formed', () => {
    it('fits the meta-schema', () => {
      const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
      const validate = ajv.compile(META_SCHEMA as AnySchema);
      const fits = validate(api.document) as boolean;
      expect(validate.errors ?? []).to.deep.equal([]);
      expect(fits).to.equal(true);
    });

    it('has schemas that are valid JSON Schema 2020-12 in strict mode', () => {
      const names = Object.keys(api.schemas);
      expect(names.length).to.be.greaterThan(50);
      for (const name of names) api.problemsOf({ $ref: `#/components/schemas/${name}` }, {});
    });

    it('has every reference resolved and every component used', () => {
      const texts = JSON.stringify(api.document).matchAll(/"\$ref":"([^"]+)"/g);
      const references = new Set([...texts].map(([, reference]) => reference ?? ''));
      for (const reference of references) api.resolve({ $ref: reference });
      const components = objectAt(api.document, 'components');
      const unused = ['schemas', 'parameters', 'headers']
        .flatMap((place) =>
          Object.keys(objectAt(components, place)).map((name) => `#/components/${place}/${name}`),
        )
        .filter((reference) => !references.has(reference));
      expect(unused).to.deep.equal([]);
    });

    it('names every operation once, and every name of a path', () => {
      const ids = api.operations.map(({ operation }) => stringAt(operation, 'operationId'));
      expect(new Set(ids).size).to.equal(ids.length);
      for (const operation of api.operations) {
        const inPath = parametersOf(api, operation).filter((parameter) => parameter['in'] === 'path');
        const named = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
        expect(inPath.map((parameter) => parameter['name'])).to.have.members(named);
      }
    });

    it('asks for a token everywhere but where everybody may read', () => {
      const open = api.operations
        .filter(({ operation }) => Array.isArray(operation['security']))
        .map(({ path }) => path);
      expect(open).to.have.members([
        `${PUBLIC_PREFIX}/capabilities`,
        '/healthz',
        '/readyz',
        '/openapi.json',
        '/.well-known/jwks.json',
        '/docs',
      ]);
      expect(listAt(api.document, 'security')).to.deep.equal([{ bearer: [] }]);
    });
  });

  describe('tells of what is served', () => {
    it('has every method of every declaration, and nothing beside them on the OSAC surfaces', () => {
      const wanted = (['public', 'private'] as const).flatMap((surface) =>
        kinds.flatMap((kind) =>
          MESSAGES[kind.message]?.[surface] === undefined
            ? []
            : METHODS.map((method) => {
                const one = method === 'List' || method === 'Create' ? '' : '/{id}';
                return `${VERBS[method]} ${PREFIX[surface]}/${kind.collection}${one}`;
              }),
        ),
      );
      const standard = api.operations
        .filter(({ operation }) =>
          /_(List|Get|Create|Update|Delete)$/.test(stringAt(operation, 'operationId')),
        )
        .map(({ verb, path }) => `${verb} ${path}`)
        .filter((operation) => !operation.endsWith('/capabilities'));
      expect(standard).to.have.members([...wanted, `${VERBS.Create} ${PREFIX.public}/console_sessions`]);
    });

    it('says of every method that a surface only declares that it answers 501, and of no other', () => {
      const declared = (['public', 'private'] as const).flatMap((surface) =>
        kinds.flatMap(({ message, service: name, methods }) =>
          MESSAGES[message]?.[surface] === undefined
            ? []
            : METHODS.filter((method) => !methods[surface].includes(method)).map(
                (method) => `${surface}_${name}_${method}`,
              ),
        ),
      );
      expect(declared).to.include('public_Tenants_Create');
      const told = api.operations.filter(({ operation }) => isUnimplemented(operation));
      expect(told.map(({ operation }) => stringAt(operation, 'operationId'))).to.have.members(declared);
    });

    it('has every extra and single of the tables that serve them', () => {
      const wanted = service.surfaces.flatMap(({ prefix, kinds: table, singles }) => [
        ...[...table.values()].flatMap(({ collection, extras }) =>
          [...extras.keys()].map((name) => `${prefix}/${collection}/{id}/${name}`),
        ),
        ...[...singles.keys()].map((name) => `${prefix}/${name}`),
      ]);
      expect(api.operations.map(({ path }) => path)).to.include.members(wanted);
    });

    it('has every route of our own surface, each with a description', () => {
      const told = api.operations.filter(({ path }) => path.startsWith('/api/ledger/v1/'));
      // Rows only: nothing is called.
      const routes = ledgerRoutes({} as unknown as LedgerServices);
      expect(routes.filter((route) => !isDescribed(route))).to.deep.equal([]);
      expect(told.map(({ verb, path }) => `${verb} ${path}`)).to.have.members(
        routes.map(({ verb, path }) => `${verb.toLowerCase()} /api/ledger/v1/${path}`),
      );
    });

    it('has every route of the audit surface, each with a description', () => {
      const told = api.operations.filter(({ path }) => path.startsWith('/api/audit/v1/'));
      const routes = withoutAuditor();
      expect(routes.filter((route) => !isDescribed(route, 'audit'))).to.deep.equal([]);
      expect(told.map(({ verb, path }) => `${verb} ${path}`)).to.have.members(
        routes.map(({ verb, path }) => `${verb.toLowerCase()} /api/audit/v1/${path.replace('*}', '}')}`),
      );
    });

    it('has the fields of bodies that refusals name, and refusals name all of them', () => {
      const surfaces = [
        ['/api/ledger/v1', ledgerRoutes({} as unknown as LedgerServices)],
        ['/api/audit/v1', withoutAuditor()],
      ] as const;
      for (const [prefix, routes] of surfaces)
        for (const { verb, path, fields = [] } of routes.filter((route) => route.verb === 'POST')) {
          const told = api.operations.filter((each) => each.path === `${prefix}/${path}`);
          const documented = told
            .filter((each) => each.verb === 'post')
            .flatMap((each) => Object.keys(objectAt(requestSchemaOf(each), 'properties')));
          const named = [...new Set(fields.map((name) => name.split('.')[0]))];
          expect(named, `${verb} ${prefix}/${path}`).to.have.members(documented);
        }
    });

    it('tells of no path that is not there', async () => {
      const anonymous = callerOf(service);
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      for (const { verb, path, operation } of api.operations) {
        const reply = await (isUnimplemented(operation) ? admin : anonymous)(
          verb.toUpperCase(),
          path.replaceAll(/\{\w+\}/g, 'x'),
          verb === 'post' || verb === 'patch' ? {} : undefined,
        );
        const absent = reply.status === 404 && reply.text.includes('Not Found');
        expect(absent, `${verb} ${path}: ${reply.status}`).to.equal(false);
        expect(reply.status === 501, `${verb} ${path}: ${reply.status}`).to.equal(isUnimplemented(operation));
        expect(
          api.answerProblems(verb, path, {
            status: reply.status,
            contentType: reply.headers.get('content-type') ?? '',
            text: reply.text,
          }),
          `${verb} ${path}: ${reply.status}`,
        ).to.deep.equal([]);
      }
    });
  });

  describe('examples', () => {
    it('fit the schemas that they are examples of', () => {
      for (const example of examples) {
        const operation = operationOf(api, example);
        const names = parametersOf(api, operation).map((parameter) => stringAt(parameter, 'name'));
        for (const [name, value] of Object.entries(example.parameters ?? {})) {
          expect(names, example.id).to.include(name);
          const parameter = parametersOf(api, operation).find((candidate) => candidate['name'] === name);
          expect(api.problemsOf(objectAt(parameter, 'schema'), value), `${example.id} ${name}`).to.deep.equal(
            [],
          );
        }
        if (example.body !== undefined)
          expect(api.problemsOf(requestSchemaOf(operation), example.body), example.id).to.deep.equal([]);
      }
    });

    it('of the shipped catalogue fit the schemas, too', () => {
      const files = globSync('fixtures/catalog/*.json');
      expect(files.length).to.be.greaterThan(0);
      for (const file of files) {
        const operation = api.find('post', `${PRIVATE_PREFIX}/${basename(file, '.json')}`);
        if (operation === undefined) throw new Error(`${file} is of no kind that can be created`);
        for (const object of JSON.parse(readFileSync(file, 'utf8')) as JsonObject[])
          expect(api.problemsOf(requestSchemaOf(operation), object), file).to.deep.equal([]);
      }
    });

    it('are there for everything that can be created or changed, on both surfaces', () => {
      const told = new Set(examples.filter(({ body }) => body !== undefined).map((one) => one.operationId));
      const writes = api.operations
        .filter(({ operation }) => !isUnimplemented(operation))
        .map(({ operation }) => stringAt(operation, 'operationId'))
        .filter(
          (id) =>
            /^(public|private)_.*_(Create|Update)$/.test(id) && id !== NEVER && id !== OF_A_RUNNING_MACHINE,
        );
      expect(writes.length).to.be.greaterThan(kinds.length * 2);
      expect(writes.filter((id) => !told.has(id))).to.deep.equal([]);
    });

    it('are answered with 200 by the running service, as the document says', async () => {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const user = callerOf(
        service,
        await service.token({ user: 'bill', tenants: ['initech'], roles: ['tenant-admin'] }),
      );
      const made = new Map<string, string>();
      for (const example of examples) {
        const caller = isForTenants(example) ? user : admin;
        const { status, problems, text } = await sendExample(api, example, caller, made);
        if (example.made !== undefined) made.set(example.made, stringAt(objectMade(text), 'id'));
        expect(`${example.operationId} ${example.id}: ${status} ${status === 200 ? '' : text}`).to.equal(
          `${example.operationId} ${example.id}: 200 `,
        );
        expect(problems, `${example.operationId} ${example.id}`).to.deep.equal([]);
      }
    });

    it('leave behind lists, objects and timelines that fit the document', async () => {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      let seen = 0;
      for (const { verb, path } of api.operations.filter(
        (one) => one.verb === 'get' && !one.path.includes('{'),
      )) {
        if (!path.startsWith('/api/') || path.includes('events')) continue;
        const items = listAt((await check(api, admin, verb, path)) as unknown as JsonObject, 'items');
        if (!path.startsWith('/api/ledger') && api.find('get', `${path}/x`) !== undefined)
          for (const item of items) {
            await check(api, admin, 'get', `${path}/${stringAt(item, 'id')}`);
            seen += 1;
          }
      }
      expect(seen).to.be.greaterThan(kinds.length);
    });
  });

  it('has a tag by which it is not sent twice', async () => {
    const anonymous = callerOf(service);
    const first = await anonymous('GET', '/openapi.json');
    const etag = first.headers.get('etag') ?? '';
    const again = await anonymous('GET', '/openapi.json', undefined, { 'if-none-match': etag });
    expect([again.status, again.text]).to.deep.equal([304, '']);
  });
});

/** Tenants' admins send what they may; the rest of the public surface is for admins. */
const isForTenants = ({ operationId }: OperationExample): boolean => {
  const [surface, service = '', method] = operationId.split('_');
  return surface === 'public' && allows(['tenant-admin'], service, method as AnyMethod);
};

const isUnimplemented = (operation: JsonObject): boolean => {
  const statuses = Object.keys(objectAt(operation, 'responses'));
  return statuses.includes('501') && !statuses.some((status) => status.startsWith('2'));
};

const check = async (api: OpenApi, caller: Caller, verb: string, path: string) => {
  const reply = await caller(verb.toUpperCase(), path);
  const contentType = reply.headers.get('content-type') ?? '';
  const answer = { status: reply.status, contentType, text: reply.text };
  expect(api.answerProblems(verb, path, answer), `${verb} ${path}: ${reply.text}`).to.deep.equal([]);
  return reply.json;
};

const operationOf = (api: OpenApi, { operationId, id }: OperationExample) => {
  const found = api.operations.find(({ operation }) => operation['operationId'] === operationId);
  if (found === undefined)
    throw new Error(`example '${id}' is of ${operationId}, which is not in the document`);
  return found;
};

/** Some kinds answer `{"object": …}`. */
const objectMade = (text: string): JsonObject => {
  const answer = JSON.parse(text) as JsonObject;
  return answer['object'] === undefined ? answer : objectAt(answer, 'object');
};

const sendExample = async (
  api: OpenApi,
  example: OperationExample,
  caller: Caller,
  made: ReadonlyMap<string, string>,
) => {
  const operation = operationOf(api, example);
  const query = new URLSearchParams();
  const headers: Record<string, string> = {};
  let { path } = operation;
  for (const [name, value] of Object.entries(example.parameters ?? {})) {
    const place = parametersOf(api, operation).find((parameter) => parameter['name'] === name)?.['in'];
    if (place === 'path')
      path = path.replace(`{${name}}`, encodeURIComponent(made.get(String(value)) ?? String(value)));
    else if (place === 'query') query.set(name, String(value));
    else headers[name] = String(value);
  }
  const url = query.size === 0 ? path : `${path}?${query.toString()}`;
  const reply = await caller(operation.verb.toUpperCase(), url, example.body, headers);
  const contentType = reply.headers.get('content-type') ?? '';
  const { status, text } = reply;
  return { status, text, problems: api.answerProblems(operation.verb, path, { status, contentType, text }) };
};
