import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  textAt,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from './ordering.ts';

/** Who could read an object is told that it was deleted; to everybody else it never was. */
describe('an object that was deleted', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let order: Ordering['order'];
  const unknown = '01a1fdbf-0000-7000-8000-000000000000';
  const byId = [
    ['GET', '', undefined],
    ['PATCH', '', { metadata: { labels: { a: 'b' } } }],
    ['DELETE', '', undefined],
    ['GET', '/kubeconfig', undefined],
    ['GET', '/password', undefined],
  ] as const;

  before(async () => {
    ({ service, admin, user, other, order } = await startOrdering());
  });
  after(() => service.close());

  const deletedCluster = async (): Promise<string> => {
    const { id } = await order();
    expect((await user('DELETE', `${CLUSTERS}/${id}`)).status).to.equal(200);
    return id;
  };

  it('is 404 and says so, with the time and where its timeline is', async () => {
    const id = await deletedCluster();
    for (const [verb, suffix, body] of byId) {
      const reply = await user(verb, `${CLUSTERS}/${id}${suffix}`, body);
      expect(reply.status, `${verb} ${suffix}`).to.equal(404);
      expect(reply.json['code']).to.equal(5);
      const { reason, metadata } = (reply.json['details'] as unknown as readonly Info[])[0] as Info;
      expect(reason).to.equal('DELETED');
      expect(reply.headers.get('x-ledger-reason')).to.equal('DELETED');
      const { deleted_at: at = '', timeline = '' } = metadata;
      expect(Date.parse(at)).to.be.closeTo(Date.now(), 60_000);
      expect(timeline).to.equal(`${CLUSTERS}/${id}/timeline`);
      expect(reply.json['message']).to.equal(
        `object with identifier '${id}' not found: it was deleted at ${at}; its timeline is GET ${timeline}`,
      );
      expect((await user('GET', timeline)).status).to.equal(200);
    }
    const asAdmin = await admin('GET', `${PRIVATE}/clusters/${id}`);
    expect(asAdmin.text).to.contain(`${PRIVATE}/clusters/${id}/timeline`);
  });

  it('is absent to everybody else, word for word as what never was', async () => {
    const id = await deletedCluster();
    for (const [verb, suffix, body] of byId) {
      const foreign = await other(verb, `${CLUSTERS}/${id}${suffix}`, body);
      const absent = await other(verb, `${CLUSTERS}/${unknown}${suffix}`, body);
      expect(foreign.status, `${verb} ${suffix}`).to.equal(404);
      expect(foreign.text.replaceAll(id, 'ID')).to.equal(absent.text.replaceAll(unknown, 'ID'));
      expect(foreign.headers.get('x-ledger-reason')).to.equal(absent.headers.get('x-ledger-reason'));
    }
  });

  it('may be of any kind; one without a timeline names none', async () => {
    const made = await user('POST', `${PUBLIC}/secrets`, { metadata: { name: 'gone' }, data: { k: 'dg==' } });
    const path = `${PUBLIC}/secrets/${textAt(made.json, 'id')}`;
    await user('DELETE', path);
    const reply = await user('GET', path);
    expect([reply.status, reply.json['message']]).to.satisfy(
      ([status, message]: [number, string]) =>
        status === 404 && /not found: it was deleted at [^;]*$/.test(message),
    );
    expect((await other('GET', path)).text).not.to.contain('deleted');
  });

  it('as an item that tenants never saw stays absent to them', async () => {
    const template = { name: 'small' };
    const draft = { metadata: { name: 'draft' }, title: 'Draft', template, published: false };
    const made = await admin('POST', `${PRIVATE}/cluster_catalog_items`, draft);
    expect(made.status, made.text).to.equal(200);
    const id = textAt(made.json, 'id');
    await admin('DELETE', `${PRIVATE}/cluster_catalog_items/${id}`);
    expect((await user('GET', `${PUBLIC}/cluster_catalog_items/${id}`)).text).not.to.contain('deleted');
  });

  it('answers a repeated key as before, and says in a header that it was deleted since', async () => {
    const headers = { 'idempotency-key': '"once-and-again"' };
    const body = { metadata: { name: 'once-and-again' }, spec: SMALL };
    const made = await user('POST', CLUSTERS, body, headers);
    const path = `${CLUSTERS}/${textAt(made.json, 'id')}`;
    const label = { metadata: { labels: { a: 'b' } } };
    const patched = await user('PATCH', path, label, { 'idempotency-key': '"label-it"' });
    expect((await user('POST', CLUSTERS, body, headers)).headers.has('x-ledger-deleted-at')).to.equal(false);
    await user('DELETE', path);
    for (const [first, again] of [
      [made, await user('POST', CLUSTERS, body, headers)],
      [patched, await user('PATCH', path, label, { 'idempotency-key': '"label-it"' })],
    ] as const) {
      expect(again.status).to.equal(200);
      expect(again.json).to.deep.equal(first.json);
      expect(Date.parse(again.headers.get('x-ledger-deleted-at') ?? '')).to.be.closeTo(Date.now(), 60_000);
    }
    expect(made.headers.has('x-ledger-deleted-at')).to.equal(false);
    const stranger = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    expect((await stranger('GET', path)).headers.has('x-ledger-deleted-at')).to.equal(false);
  });
});

type Info = { readonly reason: string; readonly metadata: Readonly<Record<string, string>> };
