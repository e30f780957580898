import { expect } from 'chai';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller, type Json } from '../../support/http/service.ts';

/** What somebody did, asked for by the id or by the user name. */
describe('audit API: subjects by name', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  const listed = async (caller: Caller, query: string): Promise<readonly Json[]> => {
    await stage.settled(false);
    const reply = await caller('GET', `${AUDIT}/events?limit=500&${query}`);
    expect(reply.status, reply.text).to.equal(200);
    return itemsOf(reply);
  };
  const detail = async (caller: Caller, query: string): Promise<string> => {
    await stage.settled(false);
    const reply = await caller('GET', `${AUDIT}/events?${query}`);
    expect(reasonOf(reply)).to.equal('400 INVALID_ARGUMENT');
    return detailOf(reply);
  };
  const idOf = async (caller: Caller, query: string): Promise<string> =>
    textAt((await listed(caller, query)).at(-1), 'actor', 'subject');

  it('are found by the exact name as by the id, and the id alone is recorded', async () => {
    const { alice, auditor, order, callerFor, service } = stage;
    await order(alice, 'one');
    await order(await callerFor({ user: 'alicia', tenants: ['t1'] }), 'two');
    await order(alice, 'three');
    const byName = await listed(auditor, 'type=ClusterOrdered&subject=alice');
    expect(byName).to.have.length(2);
    const id = textAt(byName[0], 'actor', 'subject');
    expect(await listed(auditor, `type=ClusterOrdered&subject=${id}`)).to.deep.equal(byName);
    const reply = await auditor('GET', `${AUDIT}/events?subject=alice&limit=1`);
    expect(reply.json['subject']).to.equal(id);
    // Its cursor goes on with either.
    const cursor = textAt(reply.json, 'next_cursor');
    for (const subject of ['alice', id])
      expect((await auditor('GET', `${AUDIT}/events?subject=${subject}&cursor=${cursor}`)).status).to.equal(
        200,
      );
    for await (const event of service.store.readAll({ limit: 1_000 }))
      if (event.type === 'AuditRead')
        expect(JSON.stringify(event.data)).to.not.include('alice').and.to.not.include('"anna"');
    expect(await detail(auditor, 'subject=Alice')).to.match(
      /^query parameter 'subject': no subject has this id or user name in the history that you may read \(of t1\)\. Names are exact/,
    );
    for (const odd of ['__proto__', 'nobody', encodeURIComponent('al\u0000ice')])
      expect(await detail(auditor, `subject=${odd}`)).to.match(/no subject has this id or user name/);
  });

  it('are within reach only, and of several of one name the ids are said', async () => {
    const { admin, alice, auditor, order, callerFor } = stage;
    await order(alice, 'mine');
    await order(await callerFor({ user: 'alice', tenants: ['t2'] }), 'theirs');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'too');
    const [mine, theirs] = [
      await idOf(auditor, 'type=ClusterOrdered&subject=alice'),
      await idOf(admin, 'type=ClusterOrdered&subject=alice&tenant=t2'),
    ];
    expect(mine).to.not.equal(theirs);
    const several = await detail(admin, 'subject=alice');
    expect(several)
      .to.match(/^query parameter 'subject': 2 people have this user name; give the id of one: /)
      .and.to.include(`${mine} (t1)`)
      .and.to.include(`${theirs} (t2)`);
    // Who is there and out of reach is as unknown as who is not.
    const unknown = await detail(auditor, 'subject=nobody');
    expect(await detail(auditor, 'subject=bob')).to.equal(unknown);
    expect(await detail(auditor, `subject=${theirs}`)).to.equal(unknown);
    expect(await detail(admin, 'subject=bob&tenant=t1')).to.match(/no subject has this id or user name/);
  });

  it('are not the people of the provider for a tenant, who have no names there', async () => {
    const { admin, alice, auditor, order } = stage;
    const id = await order(alice, 'mine');
    await admin('PATCH', `/api/private/v1/clusters/${id}`, { metadata: { labels: { a: 'b' } } });
    const seen = (await listed(auditor, 'type=ClusterLabelled')).at(-1);
    expect(seen?.['actor']).to.not.have.property('personal');
    expect(await detail(auditor, 'subject=root')).to.match(/no subject has this id or user name/);
    const subject = textAt(seen, 'actor', 'subject');
    expect((await listed(auditor, `subject=${subject}`)).length).to.be.greaterThan(0);
    expect(await idOf(admin, 'subject=root&tenant=t1')).to.equal(subject);
  });

  it('who were erased are found by the id alone', async () => {
    const { admin, alice, auditor, order } = stage;
    await order(alice, 'mine');
    const id = await idOf(auditor, 'type=ClusterOrdered&subject=alice');
    const erased = await admin('POST', `${AUDIT}/erasures`, {
      subject_id: id,
      tenant: 't1',
      reason: 'asked for it',
    });
    expect(erased.status, erased.text).to.equal(200);
    expect(await detail(auditor, 'subject=alice')).to.include('an erased person is found by the id alone');
    expect(await listed(auditor, `subject=${id}&type=ClusterOrdered`)).to.have.length(1);
  });

  it('filter exports in the same way: what is asked for, and recorded, is the id', async () => {
    const { alice, auditor, exported, order, settled } = stage;
    await order(alice, 'mine');
    await settled();
    const id = await idOf(auditor, 'type=ClusterOrdered&subject=alice');
    const made = await exported(auditor, { filter: { subject: 'alice' } });
    expect(made['request']).to.deep.include({ filter: { subject: id } });
    const none = await auditor('POST', `${AUDIT}/exports`, { filter: { subject: 'nobody' } });
    expect(reasonOf(none)).to.equal('400 INVALID_ARGUMENT');
    expect(detailOf(none)).to.match(/^field 'filter\.subject': no subject has this id or user name/);
  });
});
