import { expect } from 'chai';
import { AUDIT, reasonOf, startAuditStage, type AuditStage } from '../../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller } from '../../../support/http/service.ts';

/** What an auditor has fetched cannot be taken back; what lies in the service can. */
describe('audit API: exports of whom a grant was withdrawn', () => {
  let stage: AuditStage;
  let olga: Caller;
  let subject: string;

  beforeEach(async () => {
    stage = await startAuditStage();
    olga = await stage.callerFor({ user: 'olga', roles: ['auditor'] });
    await stage.order(await stage.callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await olga('GET', `${AUDIT}/checkpoints`);
    await stage.settled();
    const looks = itemsOf(await stage.admin('GET', `${AUDIT}/events?type=AuditRead`));
    subject = textAt(looks.at(-1), 'actor', 'subject');
  });
  afterEach(() => stage.service.close());

  const grant = async (tenants: 'all' | string[]): Promise<string> => {
    const given = await stage.admin('POST', `${AUDIT}/grants`, { subject, tenants, reason: 'audit' });
    expect(given.status, given.text).to.equal(200);
    return `${AUDIT}/grants/${textAt(given.json, 'id')}?reason=over`;
  };
  const listed = async (caller: Caller): Promise<string[]> =>
    itemsOf(await caller('GET', `${AUDIT}/exports`)).map((item) => textAt(item, 'id'));
  const isGone = async (id: string): Promise<void> => {
    const path = `${AUDIT}/exports/${id}`;
    expect(await listed(olga)).not.to.include(id);
    for (const [verb, of] of [
      ['GET', path],
      ['GET', `${path}/file`],
      ['DELETE', path],
    ] as const)
      expect(reasonOf(await olga(verb, of)), `${verb} ${of}`).to.equal('404 NOT_FOUND');
    expect((await stage.admin('GET', `${path}/file`)).status).to.equal(200);
    expect(await listed(stage.admin)).to.include(id);
  };

  it('are out of its reach, and again within it when there is another grant', async () => {
    const granted = await grant(['t2']);
    const id = textAt(await stage.exported(olga, { tenant: 't2' }), 'id');
    const file = `${AUDIT}/exports/${id}/file`;
    expect((await olga('GET', file)).status).to.equal(200);
    expect(await listed(olga)).to.deep.equal([id]);
    expect((await stage.admin('DELETE', granted)).status).to.equal(200);
    await isGone(id);
    await grant(['t2']);
    expect((await olga('GET', file)).status).to.equal(200);
  });

  it('are out of its reach where they show more than the grants that are left', async () => {
    const all = await grant('all');
    const id = textAt(await stage.exported(olga, { tenant: 't2' }), 'id');
    await grant(['t2']);
    expect((await stage.admin('DELETE', all)).status).to.equal(200);
    await isGone(id);
    const less = textAt(await stage.exported(olga, { tenant: 't2' }), 'id');
    expect((await olga('GET', `${AUDIT}/exports/${less}/file`)).status).to.equal(200);
    expect(await listed(olga)).to.deep.equal([less]);
  });
});
