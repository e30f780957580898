import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { callerOf, PRIVATE, PUBLIC, type Json } from '../../support/http/service.ts';
import { openApi, parametersOf, requestSchemaOf, type OpenApi } from '../../support/openapi/document.ts';

/** An empty value is most often a variable that was not set: taken for none it would be a wider answer, or another one. */
describe('audit API: conditions that are empty', () => {
  let stage: AuditStage;
  let api: OpenApi;
  before(async () => {
    stage = await startAuditStage();
    api = openApi((await callerOf(stage.service)('GET', '/openapi.json')).json as unknown as JsonObject);
  });
  after(() => stage.service.close());

  const fieldsOf = (reply: { json: Json }): string[] =>
    (reply.json['errors'] as unknown as { field: string }[]).map(({ field }) => field);

  it('are refused in every parameter of every route that shows something, with what to do', async () => {
    const tried: string[] = [];
    for (const operation of api.operations) {
      if (operation.verb !== 'get' || !operation.path.startsWith(AUDIT)) continue;
      const path = operation.path.replace('{kind}', 'cluster').replaceAll(/\{[^}]+\}/g, 'x');
      const parameters = parametersOf(api, operation).filter(({ in: place }) => place === 'query');
      const needed = parameters.filter(({ required }) => required === true);
      for (const parameter of parameters) {
        const name = stringAt(parameter, 'name');
        const others = needed
          .filter((each) => each !== parameter)
          .map((each) => `&${stringAt(each, 'name')}=1`);
        const reply = await stage.admin('GET', `${path}?${name}=${others.join('')}`);
        const what = `${path} ${name}`;
        expect(reasonOf(reply), what).to.equal('400 INVALID_ARGUMENT');
        expect(fieldsOf(reply), what).to.deep.equal([name]);
        expect(detailOf(reply), what).to.match(
          parameter['required'] === true
            ? new RegExp(`^query parameter '${name}' is needed: a`)
            : new RegExp(`^query parameter '${name}' must not be empty; leave it out for \\S`),
        );
        expect(api.problemsOf(objectAt(parameter, 'schema'), ''), what).not.to.deep.equal([]);
        tried.push(what);
      }
    }
    // Both lists of events, an object, its differences, heads, their consistency, what to pin.
    expect(tried.length).to.be.at.least(12 + 9 + 1 + 2 + 2 + 2 + 1);
    for (const query of ['type=,', 'tenant=t1&tenant=', 'tenant=,']) {
      const reply = await stage.admin('GET', `${AUDIT}/events?${query}`);
      expect(detailOf(reply), query).to.match(
        /^query parameter '(type|tenant)' must not be empty; leave it out/,
      );
    }
  });

  it('are refused in every field of the body that asks for an export', async () => {
    const asking = api.find('POST', `${AUDIT}/exports`);
    if (asking === undefined) throw new Error('nobody may ask for an export');
    const schema = requestSchemaOf(asking);
    const whole = objectAt(schema, 'properties');
    const filter = objectAt(objectAt(whole, 'filter'), 'properties');
    const tried = [
      ...Object.entries(whole).map(([name, field]) => [name, '', field] as const),
      ...Object.entries(filter).map(([name, field]) => [name, 'filter.', field] as const),
    ].filter(([name]) => !['filter', 'pins'].includes(name));
    expect(tried).to.have.length(9);
    for (const [name, where, field] of tried) {
      const nothing = stringAt(field as JsonObject, 'type') === 'array' ? [] : '';
      const body = where === '' ? { [name]: nothing } : { filter: { [name]: nothing } };
      const reply = await stage.admin('POST', `${AUDIT}/exports`, body);
      expect(reasonOf(reply), name).to.equal('400 INVALID_ARGUMENT');
      expect(fieldsOf(reply), name).to.deep.equal([`${where}${name}`]);
      expect(detailOf(reply), name).to.match(
        new RegExp(`^field '${where.replace('.', '\\.')}${name}' must not be empty; leave it out for \\S`),
      );
      expect(api.problemsOf(field as JsonObject, nothing), name).not.to.deep.equal([]);
    }
    expect((await stage.admin('GET', `${AUDIT}/exports`)).json['items']).to.deep.equal([]);
  });

  it('are refused in the end of a grant, which would have none', async () => {
    const subject = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';
    const body = { subject, tenants: 'all', reason: 'r', expires_at: '' };
    const reply = await stage.admin('POST', `${AUDIT}/grants`, body);
    expect(detailOf(reply)).to.equal(
      "field 'expires_at' must not be empty; leave it out for a grant until it is withdrawn",
    );
    expect((await stage.admin('GET', `${AUDIT}/grants`)).json['items']).to.deep.equal([]);
  });

  it("are refused in 'as_of' of OSAC's surfaces, and stay what they are for OSAC in all that is OSAC's", async () => {
    const id = await stage.order(stage.alice, 'one');
    const shown = ['', `/${id}`, `/${id}/timeline`];
    const paths = { [PUBLIC]: [...shown, `/${id}/kubeconfig`], [PRIVATE]: shown };
    for (const [prefix, each] of Object.entries(paths))
      for (const end of each) {
        const path = `clusters${end}`;
        const reply = await stage.admin('GET', `${prefix}/${path}?as_of=`);
        expect(reply.status, path).to.equal(400);
        expect(reply.json['message'], path).to.equal(
          "query parameter 'as_of' must not be empty; leave it out for the present",
        );
      }
    const osacs = 'filter=&order=&offset=&limit=';
    const [plain, empty] = await Promise.all(
      ['', `?${osacs}`].map((query) => stage.alice('GET', `${PUBLIC}/clusters${query}`)),
    );
    expect(empty?.status).to.equal(200);
    expect(empty?.json).to.deep.equal(plain?.json);
  });
});
