import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { PUBLIC_PREFIX } from '../../../src/http/osac/surfaces.ts';
import { callerOf, startTestService, type Caller, type TestService } from '../../support/http/service.ts';
import {
  openApi,
  parametersOf,
  type DocumentedOperation,
  type OpenApi,
} from '../../support/openapi/document.ts';
import { loadShippedCatalogue } from '../../support/http/shipped-catalogue.ts';

/**
 * "Try it out" of /docs, as somebody does who just followed the quick start. Swagger UI fills every parameter with its
 * `example`, or with the first of its `examples`, optional ones too; and the body with the first of its examples.
 */
describe('what /docs prefills', () => {
  let service: TestService;
  let api: OpenApi;
  let alice: Caller;
  let admin: Caller;

  before(async () => {
    service = await startTestService();
    await loadShippedCatalogue(service);
    alice = callerOf(service, await service.token({ user: 'alice', tenants: ['acme'] }));
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    api = openApi((await alice('GET', '/openapi.json')).json as unknown as JsonObject);
  });
  after(() => service.close());

  const operationOf = (id: string): DocumentedOperation => {
    const found = api.operations.find(({ operation }) => operation['operationId'] === id);
    if (found === undefined) throw new Error(`the document has no ${id}`);
    return found;
  };
  const firstOf = (examples: JsonObject): JsonObject => {
    const [first] = Object.keys(examples);
    if (first === undefined) throw new Error('no examples');
    return objectAt(examples, first);
  };
  const bodiesOf = ({ operation }: DocumentedOperation): JsonObject =>
    objectAt(
      objectAt(objectAt(objectAt(operation, 'requestBody'), 'content'), 'application/json'),
      'examples',
    );
  /** Sends what stands in the form: the path's names, and a body unless none is declared. */
  const execute = (caller: Caller, id: string, body?: JsonObject) => {
    const operation = operationOf(id);
    const path = parametersOf(api, operation)
      .filter((parameter) => parameter['in'] === 'path')
      .reduce(
        (url, parameter) =>
          url.replace(
            `{${stringAt(parameter, 'name')}}`,
            stringAt(firstOf(objectAt(parameter, 'examples')), 'value'),
          ),
        operation.path,
      );
    return caller(operation.verb.toUpperCase(), path, body);
  };

  it('is no optional parameter, except with its default', () => {
    const prefilled = api.operations.flatMap((operation) =>
      parametersOf(api, operation)
        .filter((parameter) => parameter['required'] !== true)
        .filter((parameter) =>
          [parameter, objectAt(parameter, 'schema')].some(
            (place) => Object.hasOwn(place, 'example') || Object.hasOwn(place, 'examples'),
          ),
        )
        .map((parameter) => `${operation.verb} ${operation.path} ${stringAt(parameter, 'name')}`),
    );
    expect(prefilled).to.deep.equal([]);
  });

  it('leaves examples of optional parameters where they can be read', () => {
    const told = (id: string, name: string): string =>
      stringAt(
        parametersOf(api, operationOf(id)).find((parameter) => parameter['name'] === name),
        'description',
      );
    expect(told('public_Clusters_List', 'filter')).to.include("`this.metadata.labels['env'] == 'test'");
    expect(told('public_Clusters_Update', 'update_mask')).to.include('`spec.node_sets.workers.size`');
    expect(told('public_Clusters_Create', 'X-Dry-Run')).to.include('`true`');
    const dryRun = objectAt(bodiesOf(operationOf('public_Clusters_Create')), 'dryRun');
    expect(stringAt(dryRun, 'description')).to.include('`X-Dry-Run: true`');
  });

  it('orders a cluster that is stored, whichever body is chosen, beside the one of the quick start', async () => {
    const quickStart = { metadata: { name: 'my-cluster' }, spec: { template: { name: 'ocp-small' } } };
    expect((await alice('POST', `${PUBLIC_PREFIX}/clusters`, quickStart)).status).to.equal(200);
    const bodies = bodiesOf(operationOf('public_Clusters_Create'));
    expect(Object.keys(bodies)).to.include.members(['order', 'orderFromCatalog', 'dryRun']);
    for (const name of Object.keys(bodies)) {
      const value = objectAt(objectAt(bodies, name), 'value');
      const { status, text } = await execute(alice, 'public_Clusters_Create', value);
      expect(`${name}: ${status} ${status === 200 ? '' : text}`).to.equal(`${name}: 200 `);
      const id = stringAt(JSON.parse(text) as JsonObject, 'id');
      expect((await alice('GET', `${PUBLIC_PREFIX}/clusters/${id}`)).status, name).to.equal(200);
    }
  });

  it('changes that cluster, reads its history and gives it back', async () => {
    const bodies = bodiesOf(operationOf('public_Clusters_Update'));
    const scale = await execute(alice, 'public_Clusters_Update', objectAt(firstOf(bodies), 'value'));
    expect(scale.status, scale.text).to.equal(200);
    const history = await execute(alice, 'public_Clusters_GetTimeline');
    expect(history.status, history.text).to.equal(200);
    const deleted = await execute(alice, 'public_Clusters_Delete');
    expect(deleted.status, deleted.text).to.equal(200);
  });

  it('orders for a tenant of the catalogue on the private surface and changes that order', async () => {
    const first = firstOf(bodiesOf(operationOf('private_Clusters_Create')));
    const ordered = await execute(admin, 'private_Clusters_Create', objectAt(first, 'value'));
    expect(ordered.status, ordered.text).to.equal(200);
    const annotate = firstOf(bodiesOf(operationOf('private_Clusters_Update')));
    const changed = await execute(admin, 'private_Clusters_Update', objectAt(annotate, 'value'));
    expect(changed.status, changed.text).to.equal(200);
  });
});
