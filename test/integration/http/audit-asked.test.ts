import { expect } from 'chai';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller, type Json } from '../../support/http/service.ts';

/** What the recorded looks say of what was read: to the reader's own tenant, and to those who are told of a look. */
describe('audit API: what a look asked for', () => {
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
  /** What the last look but that for it says. */
  const asked = async (caller: Caller, path: string): Promise<unknown> => {
    await stage.settled(false);
    await caller('GET', `${AUDIT}/${path}`);
    return (await listed(caller, 'type=AuditRead')).at(-1)?.['data']?.['asked'];
  };
  const FROM = '2020-01-01T00:00:00.000Z';

  it('is told to the auditors of the own tenant: kind, object, event, types, outcome and times', async () => {
    const { alice, auditor, order } = stage;
    const id = await order(alice, 'mine');
    const [ordered] = await listed(auditor, 'type=ClusterOrdered');
    const subject = textAt(ordered, 'actor', 'subject');
    for (const [path, says] of [
      ['events', undefined],
      ['consistency?from=1&to=2', undefined],
      ['checkpoints?after=1', undefined],
      ['exports/0190fdc2-bf52-71b8-8c36-977f348f4436', undefined],
      [`events?type=ClusterOrdered&from=${FROM}`, { types: ['ClusterOrdered'], from: FROM }],
      ['events?subject=alice&outcome=accepted', { subject, outcome: 'accepted' }],
      [`events?kind=clusters&id=${id}`, { kind: 'cluster', resource_id: id }],
      ['events?kind=cluster', { kind: 'cluster' }],
      [`events/cluster-${id}@0`, { event: `cluster-${id}@0` }],
      [`events/${textAt(ordered, 'id')}/proof`, { event: textAt(ordered, 'id') }],
      [`resources/cluster/${id}`, { kind: 'cluster', resource_id: id }],
      [`resources/cluster/${id}/diff?from=${FROM}`, { kind: 'cluster', resource_id: id, from: FROM }],
      [`resources/clusters/${id}/events`, { kind: 'cluster', resource_id: id }],
    ] as const)
      expect(await asked(auditor, path), path).to.deep.equal(says);
  });

  it('repeats no text that somebody has only typed: it may be anybody’s name', async () => {
    const { alice, auditor, order, service } = stage;
    await order(alice, 'mine');
    for (const path of [
      'resources/cluster/Alice.Smith',
      'events?kind=user&id=Alice.Smith',
      'events/Alice.Smith',
      'events/cluster-Alice.Smith@0',
      // Asked for before it is found by its name, and has not happened all the same.
      'resources/cluster/Alice.Smith',
      'events?kind=user&id=Alice.Smith',
    ])
      expect(JSON.stringify((await asked(auditor, path)) ?? {}), path).to.not.include('Alice');
    await listed(auditor, 'subject=alice');
    for await (const { type, data } of service.store.readAll({ limit: 1_000 }))
      if (type === 'AuditRead') expect(JSON.stringify(data['asked'] ?? {})).to.not.match(/alice/i);
  });

  it('does not tell whether an id that somebody typed is there in the history of others', async () => {
    const { alice, auditor, callerFor, order } = stage;
    await order(alice, 'mine');
    const id = await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await stage.settled(false);
    expect(await asked(theirs, `resources/cluster/${id}`)).to.deep.equal({
      kind: 'cluster',
      resource_id: id,
    });
    expect(await asked(auditor, `resources/cluster/${id}`)).to.deep.equal({ kind: 'cluster' });
    expect(await asked(auditor, `events?kind=cluster&id=${id}`)).to.deep.equal({ kind: 'cluster' });
    expect(await asked(auditor, `events/cluster-${id}@0`)).to.equal(undefined);
  });

  it('names nothing of others to the tenant of a reader who may read more than it', async () => {
    const { admin, alice, auditor, callerFor, order } = stage;
    await order(alice, 'mine');
    const id = await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await listed(auditor, 'type=ClusterOrdered');
    const look = (await listed(auditor, 'type=AuditRead')).at(-1);
    const subject = textAt(look, 'actor', 'subject');
    await admin('POST', `${AUDIT}/grants`, { subject, tenants: ['t2'], reason: 'audit' });
    expect(await asked(auditor, `events?kind=cluster&id=${id}&type=ClusterOrdered`)).to.deep.equal({
      types: ['ClusterOrdered'],
    });
    expect(await asked(auditor, `resources/cluster/${id}`)).to.equal(undefined);
    expect(await asked(auditor, `events/cluster-${id}@0`)).to.equal(undefined);
  });

  it('is told to those of whom a look showed something, as far as they may know it', async () => {
    const { admin, callerFor, order, settled } = stage;
    const id = await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await settled();
    const [ordered] = await listed(theirs, 'type=ClusterOrdered');
    const subject = textAt(ordered, 'actor', 'subject');
    const told = async (path: string): Promise<object> => {
      const reply = await admin('GET', `${AUDIT}/${path}`);
      expect(reply.status, reply.text).to.equal(200);
      const {
        at: _at,
        subjectId: _by,
        ...says
      } = ((await listed(theirs, 'type=AuditReadNoticed')).at(-1)?.['data'] ?? {}) as {
        [name: string]: unknown;
      };
      return says;
    };
    const types = 'type=ClusterOrdered,NameReserved';
    expect(await told(`events?tenant=t2&tenant=t1&subject=bob&${types}`)).to.deep.equal({
      what: 'events',
      asked: { subject, types: ['ClusterOrdered'] },
    });
    expect(await told('events?kind=cluster&tenant=t2')).to.deep.equal({ what: 'events', kind: 'cluster' });
    expect(await told(`resources/cluster/${id}?as_of=${new Date().toISOString()}`))
      .to.deep.include({ what: 'resource', kind: 'cluster', resourceId: id })
      .and.to.have.nested.property('asked.as_of');
    expect(await told(`events/cluster-${id}@0`)).to.deep.equal({
      what: 'event',
      kind: 'cluster',
      resourceId: id,
      asked: { event: `cluster-${id}@0` },
    });
    // What the provider alone finds events by is told to nobody.
    await told('events?kind=hub&tenant=t2&limit=500');
    await told('events?kind=hub&limit=500');
    expect(JSON.stringify(await listed(theirs, 'type=AuditReadNoticed'))).to.not.include('hub');
    // Everything about a person has the looks at what it did.
    const about = await listed(theirs, `kind=user&id=${subject}&type=AuditReadNoticed`);
    expect(about).to.have.length(1);
  });
});
