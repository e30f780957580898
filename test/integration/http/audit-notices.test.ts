import { expect } from 'chai';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller, type Json } from '../../support/http/service.ts';

/** Somebody who has not logged in yet. */
const OLGA = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';

/** What tenants learn of what others do with their history: grants, looks, holds. */
describe('audit API: what a tenant is told', () => {
  let stage: AuditStage;
  let theirs: Caller;
  beforeEach(async () => {
    stage = await startAuditStage();
    theirs = await stage.callerFor({ user: 'tara', tenants: ['t2'], roles: ['auditor'] });
  });
  afterEach(() => stage.service.close());

  const listed = async (caller: Caller, query: string): Promise<readonly Json[]> => {
    await stage.settled(false);
    return itemsOf(await caller('GET', `${AUDIT}/events?limit=500&${query}`));
  };
  const NOTICES = 'type=AuditGrantNoticed,AuditGrantEndNoticed';

  it('is each grant over its history and its end, by name of no other tenant, and no reason', async () => {
    const { admin, alice, auditor, callerFor, order } = stage;
    await order(alice, 'mine');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    const body = {
      subject: OLGA,
      tenants: ['t1', 't2'],
      reason: 'secret suspicion',
      expires_at: '2999-01-01T00:00:00Z',
    };
    const given = await admin('POST', `${AUDIT}/grants`, body, { 'idempotency-key': 'g' });
    expect(given.status, given.text).to.equal(200);
    const again = await admin('POST', `${AUDIT}/grants`, body, { 'idempotency-key': 'g' });
    expect(textAt(again.json, 'id')).to.equal(textAt(given.json, 'id'));
    const id = textAt(given.json, 'id');
    for (const [caller, tenant] of [
      [auditor, 't1'],
      [theirs, 't2'],
    ] as const) {
      const [notice, ...more] = await listed(caller, NOTICES);
      expect(more).to.deep.equal([]);
      expect(notice).to.include({ type: 'AuditGrantNoticed', tenant, shown: 'full' });
      expect(notice?.['data']).to.deep.include({
        grantId: id,
        subjectId: OLGA,
        expiresAt: '2999-01-01T00:00:00.000Z',
      });
      expect(JSON.stringify(notice)).not.to.match(/secret suspicion|root/);
      expect(JSON.stringify(notice)).not.to.include(tenant === 't1' ? 't2' : 't1');
    }
    const others = await stage.callerFor({ user: 'tom', tenants: ['t3'], roles: ['auditor'] });
    expect(await listed(others, NOTICES)).to.deep.equal([]);

    await admin('DELETE', `${AUDIT}/grants/${id}?reason=over`);
    await admin('DELETE', `${AUDIT}/grants/${id}?reason=over`);
    const types = (await listed(theirs, NOTICES)).map((event) => textAt(event, 'type'));
    expect(types).to.deep.equal(['AuditGrantNoticed', 'AuditGrantEndNoticed']);
  });

  it('is told before the grant counts, also when the giving broke off in between', async () => {
    const { admin, callerFor, order, settled, service } = stage;
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    const outside = await callerFor({ user: 'olga', roles: ['auditor'] });
    await outside('GET', `${AUDIT}/checkpoints`);
    await settled(false);
    const looks = itemsOf(await admin('GET', `${AUDIT}/events?type=AuditRead`));
    const subject = textAt(looks.at(-1), 'actor', 'subject');
    // As a crash behind the first event leaves it.
    const grant = {
      at: '2026-11-21T12:00:00.000Z',
      subjectId: subject,
      tenants: ['t2'],
      reason: 'audit',
    };
    await service.store.append('auditGrant-broken', 'no_stream', [
      {
        id: '0193a1b2-0000-7000-8000-0000000000bb',
        type: 'AuditGrantGiven',
        data: JSON.stringify(grant),
        metadata: JSON.stringify({ ...METADATA, command: 'GiveAuditGrant' }),
      },
    ]);
    expect(await listed(theirs, NOTICES)).to.deep.equal([]);
    expect((await listed(outside, 'type=ClusterOrdered')).length).to.equal(1);
    const [notice] = await listed(theirs, NOTICES);
    const [look] = await listed(theirs, 'type=AuditReadNoticed');
    expect(notice?.['data']).to.include({ grantId: 'broken', subjectId: subject });
    expect(look?.['data']).to.include({ subjectId: subject, what: 'events' });
    expect(Number(look?.['index'])).to.be.greaterThan(Number(notice?.['index']));
  });

  it('is every look of others that showed something of it, and under what was looked at', async () => {
    const { admin, auditor, alice, callerFor, order, settled } = stage;
    const mine = await order(alice, 'mine');
    const id = await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await settled();
    const [event] = await listed(theirs, 'type=ClusterOrdered');
    const seen = async (caller: Caller): Promise<string[]> =>
      (await listed(caller, 'type=AuditReadNoticed')).map((event) =>
        ['what', 'kind', 'resourceId']
          .filter((name) => event['data']?.[name] !== undefined)
          .map((name) => textAt(event, 'data', name))
          .join(' '),
      );
    const paths: readonly (readonly [path: string, notice: string])[] = [
      ['events?type=ClusterOrdered&tenant=t2', 'events'],
      ['events?type=ClusterOrdered', 'events'],
      [`events/${textAt(event, 'id')}`, `event cluster ${id}`],
      [`events/${textAt(event, 'id')}/proof`, `proof cluster ${id}`],
      [`resources/cluster/${id}`, `resource cluster ${id}`],
      [`resources/cluster/${id}/diff?from=2020-01-01T00:00:00Z`, `diff cluster ${id}`],
      [`resources/cluster/${id}/events?type=ClusterOrdered`, `resource events cluster ${id}`],
    ];
    const told: string[] = [];
    for (const [path, notice] of paths) {
      const before = (await seen(theirs)).length;
      const reply = await admin('GET', `${AUDIT}/${path}`);
      expect(reply.status, reply.text).to.equal(200);
      told.push(notice);
      const all = await seen(theirs);
      expect(all.slice(before), path).to.deep.equal([notice]);
    }
    expect(await seen(theirs)).to.deep.equal(told);
    // What showed nothing of it, and its own looks, it is not told of.
    for (const path of [
      `resources/cluster/${mine}`,
      'events?type=ClusterOrdered&tenant=t1',
      'events?type=HubDeregistered',
      'resources/cluster/nothing',
      'checkpoints',
      'trust.json?newest=true',
    ])
      await admin('GET', `${AUDIT}/${path}`);
    expect(await seen(theirs)).to.deep.equal(told);
    expect(await seen(auditor)).to.deep.equal(['events', `resource cluster ${mine}`, 'events']);

    const [notice] = await listed(theirs, 'type=AuditReadNoticed');
    expect(notice).not.to.have.any.keys('ticket', 'source');
    expect(notice?.['actor']).not.to.have.property('personal');
    const about = itemsOf(await theirs('GET', `${AUDIT}/resources/cluster/${id}/events?limit=500`));
    const types = about.map((each) => textAt(each, 'type'));
    expect(types).to.include.members(['ClusterOrdered', 'AuditReadNoticed']);
    expect(types.filter((type) => type === 'HubCapacityReserved')).to.deep.equal([]);
    expect(new Set(about.map((each) => textAt(each, 'id'))).size).to.equal(about.length);
  });

  it('is not that somebody read what it was told before: polling an idle service adds nothing', async () => {
    const { admin, callerFor, order, service, settled } = stage;
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await admin('POST', `${AUDIT}/grants`, { subject: OLGA, tenants: ['t2'], reason: 'audit' });
    await settled();
    const notices = async () => {
      const found: { id: string; recordedAt: string }[] = [];
      for await (const { type, id, recordedAt } of service.store.readAll({ limit: 100_000 }))
        if (type === 'AuditReadNoticed') found.push({ id, recordedAt });
      return found;
    };
    const polled = async (query: string): Promise<string[]> => {
      await settled();
      const reply = await admin('GET', `${AUDIT}/${query}`);
      expect(reply.status, reply.text).to.equal(200);
      return itemsOf(reply).map((event) => textAt(event, 'type'));
    };
    await polled('events?type=ClusterOrdered');
    const [first, ...more] = await notices();
    expect(more).to.deep.equal([]);
    const news = `events?type=ClusterOrdered,AuditRead,AuditReadNoticed&from=${first?.recordedAt}`;
    for (let poll = 0; poll < 2; poll += 1)
      expect(await polled(news))
        .to.include('AuditReadNoticed')
        .and.not.to.include('ClusterOrdered');
    for (const query of [
      'events?type=AuditGrantNoticed,AuditGrantEndNoticed',
      `events/${first?.id}`,
      `events/${first?.id}/proof`,
    ])
      await polled(query);
    expect(await notices()).to.deep.equal([first]);
  });

  it('is nothing of what only the provider may see: neither events, nor on which hub', async () => {
    const { admin, auditor, service, settled } = stage;
    const id = '0193a1b2-0000-7000-8000-0000000000dd';
    const data = {
      at: METADATA.occurredAt,
      holder: { kind: 'cluster', id: 'c1' },
      claim: { controlPlanes: 1, nodes: {} },
    };
    await service.store.append('hubCapacity-hub-secret', 'no_stream', [
      {
        id,
        type: 'HubCapacityReserved',
        data: JSON.stringify(data),
        metadata: JSON.stringify({ ...METADATA, tenant: 't1', command: 'ReserveHubCapacity' }),
      },
    ]);
    // A look of the own auditor, who reads t2, too, of which only the provider finds what was asked.
    const both = await stage.callerFor({ user: 'beth', tenants: ['t1', 't2'], roles: ['auditor'] });
    const ofT2 = '0193a1b2-0000-7000-8000-0000000000ee';
    await both('GET', `${AUDIT}/resources/cluster/${ofT2}/events`);
    await settled();
    for (const path of [
      `events/${id}`,
      `events/${id}/proof`,
      'resources/hub/hub-secret/events',
      'events?kind=hubCapacity&id=hub-secret',
      'resources/hub/sim-1',
    ])
      expect((await admin('GET', `${AUDIT}/${path}`)).status, path).to.equal(200);
    expect(await listed(auditor, 'type=AuditReadNoticed')).to.deep.equal([]);
    const found = itemsOf(await admin('GET', `${AUDIT}/resources/cluster/${ofT2}/events`));
    expect(found.map((event) => textAt(event, 'type'))).to.include('AuditRead');
    const notices = [
      ...(await listed(auditor, 'type=AuditReadNoticed')),
      ...(await listed(theirs, 'type=AuditReadNoticed')),
    ];
    expect(notices).to.have.length(1);
    expect(JSON.stringify(notices)).not.to.match(/0000000000ee|hub-secret/);
  });

  it('is that a hold covers it, and that it does not any more', async () => {
    await stage.service.close();
    stage = await startAuditStage({ provisionUsers: true });
    const { admin, alice, auditor, order, settled } = stage;
    await order(alice, 'one');
    await settled(false);
    const [event] = await listed(auditor, 'type=ClusterOrdered');
    const subject = textAt(event, 'actor', 'subject');
    const place = async (scope: object): Promise<string> => {
      const placed = await admin('POST', `${AUDIT}/holds`, { scope, reason: 'hush', ticket: 'L-1' });
      expect(placed.status, placed.text).to.equal(200);
      return textAt(placed.json, 'id');
    };
    const ids = [
      await place({ kind: 'tenant', id: 't1' }),
      await place({ kind: 'subject', id: subject }),
      await place({ kind: 'tenant', id: 't2' }),
      await place({ kind: 'all' }),
    ];
    for (const id of ids)
      expect((await admin('DELETE', `${AUDIT}/holds/${id}?reason=settled`)).status).to.equal(200);
    const holds = await listed(auditor, 'type=LegalHoldPlaced,LegalHoldReleased');
    expect(holds.map((event) => [textAt(event, 'type'), textAt(event, 'data', 'holdId')])).to.deep.equal([
      ['LegalHoldPlaced', ids[0]],
      ['LegalHoldPlaced', ids[1]],
      ['LegalHoldReleased', ids[0]],
      ['LegalHoldReleased', ids[1]],
    ]);
    expect(JSON.stringify(holds)).not.to.match(/hush|settled|L-1/);
    const person = itemsOf(await auditor('GET', `${AUDIT}/resources/user/${subject}/events?limit=500`));
    expect(person.map((each) => textAt(each, 'type'))).to.include.members([
      'LegalHoldPlaced',
      'LegalHoldReleased',
    ]);
  });
});

const METADATA = {
  tenant: '',
  project: '',
  actor: { subjectId: 'root', roles: ['admin'], authMethod: 'jwt' },
  commandId: '0193a1b2-0000-7000-8000-0000000000bc',
  requestHash: '',
  correlationId: 'c',
  causationId: 'c',
  occurredAt: '2026-11-21T12:00:00.000Z',
  schemaVersion: 1,
  instance: 'test',
};
