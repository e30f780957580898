import { expect } from 'chai';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Caller, type Json } from '../../support/http/service.ts';

/** Somebody who has not logged in yet. */
const OLGA = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';

/** Who may read whose history, that every look is written down, and cursors. */
describe('audit API: reach', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  const typesOf = async (caller: Caller, query: string): Promise<string[]> =>
    itemsOf(await caller('GET', `${AUDIT}/events?${query}`)).map((event) => textAt(event, 'type'));
  const tenantsOf = async (caller: Caller, query = ''): Promise<Set<string>> =>
    new Set(itemsOf(await caller('GET', `${AUDIT}/events?${query}`)).map((event) => textAt(event, 'tenant')));

  it('lets in auditors and admins only, and admins alone hold, erase and grant', async () => {
    const { alice, auditor } = stage;
    expect(reasonOf(await alice('GET', `${AUDIT}/events`))).to.equal('403 PERMISSION_DENIED');
    const answers = await Promise.all([
      auditor('GET', `${AUDIT}/grants`),
      auditor('GET', `${AUDIT}/holds`),
      auditor('GET', `${AUDIT}/erasures`),
      auditor('POST', `${AUDIT}/grants`, { subject: 's', tenants: ['t2'], reason: 'r' }),
      auditor('POST', `${AUDIT}/holds`, { scope: { kind: 'all' }, reason: 'r' }),
      auditor('POST', `${AUDIT}/erasures`, { subject_id: 's', tenant: 't1', reason: 'r' }),
      auditor('GET', `${AUDIT}/tile/0/000`),
      auditor('POST', `${AUDIT}/exports`, { tenant: 't2' }),
      auditor('POST', `${AUDIT}/exports`, { tenant: 'nobody' }),
    ]);
    expect(answers.map(reasonOf)).to.deep.equal(Array(9).fill('403 PERMISSION_DENIED'));
    expect(detailOf(answers[7] as never)).to.equal(detailOf(answers[8] as never).replaceAll('nobody', 't2'));
  });

  it('widens by a grant, until it is withdrawn, and shows tenants no more than tenants see', async () => {
    const { admin, callerFor, order, settled } = stage;
    await order(stage.alice, 'mine');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    const outside = await callerFor({ user: 'olga', roles: ['auditor'] });
    expect((await outside('GET', `${AUDIT}/checkpoints`)).status).to.equal(200);
    await settled();
    const looks = itemsOf(await admin('GET', `${AUDIT}/events?type=AuditRead`));
    const subject = textAt(looks.at(-1), 'actor', 'subject');

    const given = await admin('POST', `${AUDIT}/grants`, { subject, tenants: ['t2'], reason: 'audit' });
    expect(given.status, given.text).to.equal(200);
    expect(await tenantsOf(outside)).to.deep.equal(new Set(['t2']));
    expect(reasonOf(await outside('GET', `${AUDIT}/events?tenant=t1`))).to.equal('403 PERMISSION_DENIED');
    expect(await typesOf(outside, 'type=ClusterOrdered')).to.deep.equal(['ClusterOrdered']);
    expect(await typesOf(outside, 'type=NameReserved')).to.deep.equal([]);
    expect(await typesOf(admin, 'type=NameReserved&tenant=t2')).to.include('NameReserved');

    const path = `${AUDIT}/grants/${textAt(given.json, 'id')}`;
    expect(reasonOf(await admin('DELETE', path))).to.equal('400 INVALID_ARGUMENT');
    expect((await admin('DELETE', `${path}?reason=over`)).json).to.include({ status: 'withdrawn' });
    expect(reasonOf(await outside('GET', `${AUDIT}/events`))).to.equal('403 PERMISSION_DENIED');
    expect(
      itemsOf(await admin('GET', `${AUDIT}/grants`)).map((each) => textAt(each, 'status')),
    ).to.deep.equal(['withdrawn']);

    await admin('POST', `${AUDIT}/grants`, { subject, tenants: 'all', reason: 'audit of all' });
    expect([...(await tenantsOf(outside, 'limit=500'))]).to.include.members(['t1', 't2', 'shared']);
    const soon = { subject: OLGA, tenants: 'all', reason: 'r', expires_at: '2020-01-01T00:00:00Z' };
    expect(reasonOf(await admin('POST', `${AUDIT}/grants`, soon))).to.equal('400 EXPIRED');
    const misspelt = await admin('POST', `${AUDIT}/grants`, { ...soon, expires_at: undefined, expires: 'x' });
    expect(detailOf(misspelt)).to.match(/^unknown field 'expires'/);
  });

  it('is not widened over a tenant that is not there: its name is misspelt, and nobody would be told', async () => {
    const { admin, alice, order } = stage;
    await order(alice, 'mine');
    for (const name of ['t1', 't-1', '__proto__', 'T1', 'a.b', 'x'.repeat(2_000)]) {
      const body = { subject: OLGA, tenants: ['t1', name], reason: 'audit' };
      const given = await admin('POST', `${AUDIT}/grants`, body);
      if (name === 't1') expect(given.status, given.text).to.equal(200);
      else {
        expect(reasonOf(given), name).to.equal('400 INVALID_ARGUMENT');
        expect(detailOf(given))
          .to.include(`'${name.slice(0, 100)}'`)
          .and.to.include("field 'tenants'");
        expect(detailOf(given).length).to.be.lessThan(300);
      }
    }
    expect(itemsOf(await admin('GET', `${AUDIT}/grants`))).to.have.length(1);
    // One in which nothing has happened yet but that it was made.
    const made = await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'fresh' } });
    expect(made.status, made.text).to.equal(200);
    const body = { subject: OLGA, tenants: ['fresh'], reason: 'audit' };
    expect((await admin('POST', `${AUDIT}/grants`, body)).status).to.equal(200);
  });

  it('writes down every look before it is answered, also of what is not there', async () => {
    const { auditor, service } = stage;
    const paths = ['events?kind=cluster&id=a', 'events/nothing', 'resources/cluster/nothing', 'trust.json'];
    const looksOf = async (look: () => Promise<unknown>): Promise<Json[]> => {
      const before = await service.store.lastPosition();
      await look();
      const written: Json[] = [];
      for await (const event of service.store.readAll({ after: before ?? '', limit: 100 }))
        if (event.type === 'AuditRead') written.push(event as unknown as Json);
      return written;
    };
    for (const path of paths) {
      const [written, ...more] = await looksOf(() => auditor('GET', `${AUDIT}/${path}`));
      expect(more, path).to.deep.equal([]);
      expect(textAt(written, 'stream')).to.match(/^auditAccess-t1\.\d{4}-\d\d-\d\d$/);
      expect(written?.['data']?.['tenants']).to.deep.equal(['t1']);
    }
    expect(await looksOf(() => stage.alice('GET', `${AUDIT}/events`))).to.deep.equal([]);
    expect(service.rejections.at(-1)).to.include({ outcome: 'denied', command: 'GET /audit.v1/events' });
  });

  it('pages through one moment, with cursors that are good for nothing else', async () => {
    const { auditor, admin, alice, order, settled, callerFor } = stage;
    for (const name of ['a', 'b', 'c']) await order(alice, name);
    await settled();
    const all = await typesOf(auditor, 'limit=500');
    const first = await auditor('GET', `${AUDIT}/events?limit=2`);
    await order(alice, 'later');
    await settled();
    const seen = itemsOf(first).map((event) => textAt(event, 'type'));
    for (let page = first; page.json['next_cursor'] !== undefined; ) {
      page = await auditor('GET', `${AUDIT}/events?limit=2&cursor=${textAt(page.json, 'next_cursor')}`);
      expect(page.status).to.equal(200);
      expect(itemsOf(page).length).to.be.at.most(2);
      seen.push(...itemsOf(page).map((event) => textAt(event, 'type')));
    }
    expect(seen).to.deep.equal([...all, 'AuditRead'].slice(0, seen.length));
    expect(seen.length).to.be.at.least(all.length);

    const cursor = textAt(first.json, 'next_cursor');
    const bob = await callerFor({ user: 'bea', tenants: ['t2'], roles: ['auditor'] });
    const foreign = await bob('GET', `${AUDIT}/events?cursor=${cursor}`);
    expect(reasonOf(foreign)).to.equal('400 CURSOR_MISMATCH');
    expect(detailOf(foreign)).to.match(/^this cursor belongs to a list over other tenants/);
    expect(reasonOf(await admin('GET', `${AUDIT}/events?cursor=${cursor}`))).to.equal('400 CURSOR_MISMATCH');
    const another = await auditor('GET', `${AUDIT}/events?type=ClusterOrdered&cursor=${cursor}`);
    expect(detailOf(another)).to.match(/^this cursor belongs to another query/);
    const made = Buffer.from(
      Buffer.from(cursor, 'base64url')
        .toString()
        .replace(/"after":\d+/, '"after":0'),
    ).toString('base64url');
    for (const forged of ['x', made, ''.padEnd(40, 'A')])
      expect(reasonOf(await auditor('GET', `${AUDIT}/events?cursor=${forged}`))).to.equal(
        '400 CURSOR_INVALID',
      );
  });

  it('lists nothing of times before the first event and in the future, and goes on nowhere', async () => {
    const { alice, auditor, order, settled } = stage;
    await order(alice, 'one');
    await settled(false);
    for (const query of [
      'to=2020-01-01T00:00:00Z',
      'from=2019-01-01T00:00:00Z&to=2020-01-01T00:00:00Z',
      'from=2999-01-01T00:00:00Z',
      'type=HubDeregistered',
    ]) {
      const { status, json } = await auditor('GET', `${AUDIT}/events?${query}`);
      expect([status, json['items'], json['next_cursor']], query).to.deep.equal([200, [], undefined]);
    }
    expect(await typesOf(auditor, 'type=ClusterOrdered&to=2999-01-01T00:00:00Z')).to.have.length(1);
  });

  it('refuses what it cannot understand, by name', async () => {
    const { auditor } = stage;
    const detail = async (query: string): Promise<string> =>
      detailOf(await auditor('GET', `${AUDIT}/events?${query}`));
    expect(await detail('outcome=maybe')).to.match(/^query parameter 'outcome' must be one of accepted/);
    expect(await detail('from=yesterday')).to.equal(
      "query parameter 'from' must be a time such as 2026-11-01T00:00:00Z",
    );
    expect(await detail('from=2026-02-31T00:00:00Z')).to.equal(
      "query parameter 'from' must be a time such as 2026-11-01T00:00:00Z",
    );
    expect(await detail('id=x')).to.match(/^query parameter 'id' needs 'kind'/);
    expect(await detail('limit=1&limit=2')).to.match(/'limit'/);
    const mosts = { events: 500, 'resources/cluster/x/events': 500, checkpoints: 1_000 };
    for (const [path, most] of Object.entries(mosts))
      for (const limit of ['0', 'x', '-1', '1.5', '1e2', `${most + 1}`])
        expect(
          detailOf(await auditor('GET', `${AUDIT}/${path}?limit=${limit}`)),
          `${path} ${limit}`,
        ).to.equal(`query parameter 'limit' must be a whole number from 1 to ${most}`);
    expect(await detail('resource_id=x')).to.match(/^query parameter 'resource_id' needs 'kind'/);
    expect(await detail('kind=cluster&id=x&resource_id=y')).to.match(/are the same/);
    expect(await detail('from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z')).to.match(/must not be later/);
  });

  it('refuses types and kinds that do not exist, and says what was meant', async () => {
    const { auditor, admin } = stage;
    const detail = async (query: string, caller = auditor): Promise<string> =>
      detailOf(await caller('GET', `${AUDIT}/events?${query}`));
    expect(await detail('type=ClusterOrderd')).to.equal(
      "query parameter 'type': unknown event type 'ClusterOrderd'; did you mean ClusterOrdered or ClusterAborted?",
    );
    expect(await detail('type=ClusterOrdered,clusterordered')).to.match(/'clusterordered'; did you mean Cl/);
    expect(await detail('type=__proto__')).to.match(/unknown event type '__proto__'$/);
    expect(await detail(`type=${'x'.repeat(500)}`)).to.match(/unknown event type 'x{100}'$/);
    // What the provider alone sees is not suggested to tenants, and exists all the same.
    expect(await detail('type=NameReservd')).to.not.include('NameReserved');
    expect(await detail('type=NameReservd', admin)).to.include('did you mean NameReserved');
    expect(await detail('kind=clusterz')).to.match(
      /^query parameter 'kind': unknown kind 'clusterz'; did you mean cluster( or |\?)/,
    );
    expect(await detail('kind=zebra')).to.match(
      /unknown kind 'zebra'; known are bareMetalInstance, bareMetalInstanceCatalogItem, /,
    );
    for (const known of [
      'kind=refusal',
      'kind=auditAccess',
      'kind=host_types',
      'type=HubRegistered,NameReserved',
    ])
      expect((await auditor('GET', `${AUDIT}/events?${known}`)).status, known).to.equal(200);
    const exported = async (filter: object): Promise<string> =>
      detailOf(await auditor('POST', `${AUDIT}/exports`, { filter }));
    expect(await exported({ types: ['ClusterOrderd'] })).to.match(
      /^field 'filter.types': unknown event type 'ClusterOrderd'; did you mean/,
    );
    expect(await exported({ kind: 'clusterz' })).to.match(/^field 'filter.kind': unknown kind 'clusterz'/);
    expect(await exported({ outcome: 'deny' })).to.match(/^field 'filter.outcome' must be one of accepted/);
  });

  it('refuses parameters that a route does not have, on every route that shows something', async () => {
    const { admin, service } = stage;
    const shows = (service.audit?.api.routes ?? []).filter(({ verb }) => verb === 'GET');
    expect(shows.length).to.be.greaterThan(15);
    for (const { path } of shows) {
      const asked = `${AUDIT}/${path.replaceAll(/\{[^}]+\}/g, 'x')}`;
      const reply = await admin('GET', `${asked}?foo=1`);
      expect(reasonOf(reply), asked).to.equal('400 INVALID_ARGUMENT');
      expect(detailOf(reply), asked).to.match(/^unknown query parameter 'foo'; this route takes/);
    }
    expect(detailOf(await admin('GET', `${AUDIT}/resources/cluster/x/events?id=y`))).to.match(
      /^unknown query parameter 'id'/,
    );
  });

  it('finds the events of one object by its id as events show it, or by id', async () => {
    const { alice, auditor, order, settled } = stage;
    const id = await order(alice, 'mine');
    await order(alice, 'other');
    await settled();
    const of = async (query: string): Promise<string[]> =>
      itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered&kind=cluster&${query}`)).map(
        (event) => textAt(event, 'resource_id'),
      );
    expect(new Set(await of(`resource_id=${id}`))).to.deep.equal(new Set([id]));
    expect(await of(`id=${id}`)).to.deep.equal(await of(`resource_id=${id}`));
  });

  it('fills pages although not everything in between may be seen', async () => {
    const { alice, auditor, admin, order, settled } = stage;
    for (const name of ['a', 'b', 'c', 'd']) await order(alice, name);
    await settled();
    const all = await typesOf(admin, 'limit=500&tenant=t1');
    const visible = await typesOf(auditor, 'limit=500&tenant=t1');
    expect(all.length, 'there is something that t1 may not see').to.be.greaterThan(visible.length);
    for (const limit of [1, 2, 3]) {
      const seen: string[] = [];
      let page = await auditor('GET', `${AUDIT}/events?limit=${limit}`);
      for (;;) {
        const types = itemsOf(page).map((event) => textAt(event, 'type'));
        seen.push(...types);
        if (page.json['next_cursor'] === undefined || seen.length >= visible.length) break;
        expect(types, `a page of ${limit} that goes on`).to.have.length(limit);
        const cursor = textAt(page.json, 'next_cursor');
        page = await auditor('GET', `${AUDIT}/events?limit=${limit}&cursor=${cursor}`);
      }
      expect(seen.slice(0, visible.length)).to.deep.equal(visible);
    }
  });

  it('shows everything about one cluster: its events, its run and what was refused', async () => {
    const { admin, auditor, alice, order, settled } = stage;
    const id = await order(alice, 'one');
    await alice('DELETE', `${PUBLIC}/clusters/${id}`);
    await settled();
    const of = async (caller: Caller, kind: string): Promise<Set<string>> =>
      new Set(
        itemsOf(await caller('GET', `${AUDIT}/resources/${kind}/${id}/events`)).map((event) =>
          textAt(event, 'type'),
        ),
      );
    expect([...(await of(auditor, 'clusters'))]).to.include.members(['ClusterOrdered']);
    expect(await of(auditor, 'cluster')).to.deep.equal(await of(auditor, 'clusters'));
    expect((await of(admin, 'cluster')).size).to.be.at.least((await of(auditor, 'cluster')).size);
  });
});
