import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const CLUSTERS = `${PUBLIC}/clusters`;

/** What belongs to one object, at a moment of the past; objects and lists themselves are in as-of.test.ts. */
describe('as_of of what belongs to an object', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let id = '';
  let ordered = '';
  let labelled = '';
  let early = '';

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    await user('GET', CLUSTERS);
    early = service.positions.format((await service.store.lastPosition()) ?? '');
    const spec = { template: { id: 'osac.templates.small' } };
    const made = await user('POST', CLUSTERS, { metadata: { name: 'web' }, spec });
    id = textAt(made.json, 'id');
    ordered = made.headers.get('x-ledger-position') ?? '';
    const changed = await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { a: 'b' } } });
    labelled = changed.headers.get('x-ledger-position') ?? '';
    await user('DELETE', `${CLUSTERS}/${id}`);
  });
  after(() => service.close());

  const timeline = (asOf: string, more = '', by = user): Promise<Reply> =>
    by(
      'GET',
      `${by === admin ? PRIVATE : PUBLIC}/clusters/${id}/timeline?as_of=${encodeURIComponent(asOf)}${more}`,
    );
  const types = (reply: Reply): string[] => itemsOf(reply).map((entry) => textAt(entry, 'type'));

  it('a timeline ends there, also of what was deleted since', async () => {
    expect(types(await timeline(ordered))).to.deep.equal(['ClusterOrdered']);
    for (const by of [user, admin])
      expect(types(await timeline(labelled, '', by))).to.deep.equal(['ClusterOrdered', 'ClusterLabelled']);
    expect(types(await timeline(labelled, '&limit=1'))).to.deep.equal(['ClusterOrdered']);
    expect(types(await timeline(labelled, `&after=${ordered}`))).to.deep.equal(['ClusterLabelled']);
    expect((await timeline(labelled, `&after=${labelled}`)).text).to.equal('{}');
    const now = new Date().toISOString();
    expect(types(await timeline(now))).to.include('ClusterDeleted');
  });

  it('is as absent as the object was, and as foreign as it is', async () => {
    for (const moment of [early, '1999-01-01T00:00:00Z'])
      expect((await timeline(moment)).status).to.equal(404);
    expect((await timeline(labelled, '', other)).status).to.equal(404);
    for (const bad of ['yesterday', '2999-01-01T00:00:00Z', 'elsewhere.0000000000000001'])
      expect((await timeline(bad)).status, bad).to.equal(400);
  });

  it('is no way to credentials: those of the present would pass for those of then', async () => {
    for (const what of ['kubeconfig', 'password']) {
      const reply = await user('GET', `${CLUSTERS}/${id}/${what}?as_of=${encodeURIComponent(labelled)}`);
      expect(reply.status, what).to.equal(400);
      expect(reply.text).to.contain(
        "'as_of' shows no credentials: they are read from the hub as they are now",
      );
      expect(reply.text).to.contain('"field":"as_of"');
    }
  });

  it('names the parameter wherever a moment cannot be shown, and what time it is here', async () => {
    for (const [moment, said] of [
      ['2999-01-01T00:00:00Z', /is in the future: only what has been can be shown \(here it is \d{4}-/],
      [`${labelled.slice(0, -4)}9999`, /is in the future: only what has been can be shown"/],
      ['elsewhere.0000000000000001', /of another event store/],
      ['2026-11-22T10:00:00', /with its offset from UTC/],
    ] as const) {
      const { status, text } = await user('GET', `${CLUSTERS}?as_of=${encodeURIComponent(moment)}`);
      expect(status, moment).to.equal(400);
      expect(text).to.match(said).and.to.contain('"field":"as_of"');
    }
  });
});

describe('as_of of catalogue items that were not published', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  const ITEMS = 'cluster_catalog_items';
  let serial = 0;

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  });
  after(() => service.close());

  const item = async (published: boolean) => {
    const template = { id: 'osac.templates.small' };
    const metadata = { name: `item-${(serial += 1)}` };
    const reply = await admin('POST', `${PRIVATE}/${ITEMS}`, { metadata, title: 'x', template, published });
    expect(reply.status, reply.text).to.equal(200);
    return { id: textAt(reply.json, 'id'), at: reply.headers.get('x-ledger-position') ?? '' };
  };
  const publish = async (id: string, published: boolean): Promise<string> => {
    const reply = await admin('PATCH', `${PRIVATE}/${ITEMS}/${id}`, { published });
    expect(reply.status, reply.text).to.equal(200);
    return reply.headers.get('x-ledger-position') ?? '';
  };
  const asOf = (id: string, position: string, surface = PUBLIC): Promise<Reply> =>
    (surface === PUBLIC ? user : admin)('GET', `${surface}/${ITEMS}/${id}?as_of=${position}`);

  it('does not show drafts to tenants, neither once they are published nor once they are gone', async () => {
    const draft = await item(false);
    expect((await asOf(draft.id, draft.at)).status).to.equal(404);
    const published = await publish(draft.id, true);
    expect((await asOf(draft.id, draft.at)).status).to.equal(404);
    expect((await asOf(draft.id, draft.at, PRIVATE)).status).to.equal(200);
    expect((await asOf(draft.id, published)).status).to.equal(200);
    const never = await item(false);
    expect((await admin('DELETE', `${PRIVATE}/${ITEMS}/${never.id}`)).status).to.equal(200);
    const hidden = await asOf(never.id, never.at);
    const absent = await asOf('nothing-here', never.at);
    expect(hidden.status).to.equal(404);
    expect(hidden.text.replace(never.id, 'nothing-here')).to.equal(absent.text);
  });

  it('shows what was published then, also when it is not any more', async () => {
    const { id, at } = await item(true);
    const gone = await publish(id, false);
    expect((await asOf(id, at)).text).to.contain('"published":true');
    expect((await asOf(id, gone)).status).to.equal(404);
    const listed = await user('GET', `${PUBLIC}/${ITEMS}?as_of=${at}`);
    expect(itemsOf(listed).map((each) => textAt(each, 'id'))).to.include(id);
  });

  it('shows one that is not published to those of whom something refers to it', async () => {
    const { id, at } = await item(true);
    const spec = { catalog_item: { id } };
    const ordered = await user('POST', `${PUBLIC}/clusters`, { metadata: { name: 'by-item' }, spec });
    expect(ordered.status, ordered.text).to.equal(200);
    const hidden = await publish(id, false);
    for (const position of [at, hidden]) expect((await asOf(id, position)).status).to.equal(200);
    const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
    expect((await other('GET', `${PUBLIC}/${ITEMS}/${id}?as_of=${hidden}`)).status).to.equal(404);
  });
});
