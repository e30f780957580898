import { expect } from 'chai';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, PRIVATE, textAt, type Caller, type Reply } from '../../support/http/service.ts';

const NOBODY = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';

/** A hold, an erasure or a grant over what is not there would be believed in, and do nothing. */
describe('audit API: holds, erasures and grants of what is not there', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  const fieldsOf = (reply: Reply): string[] =>
    ((reply.json['errors'] ?? []) as unknown as { field: string }[]).map(({ field }) => field);
  const hold = (scope: object): ReturnType<Caller> =>
    stage.admin('POST', `${AUDIT}/holds`, { scope, reason: 'case 4711' });
  const subjectOf = async (type: string): Promise<string> => {
    await stage.settled(false);
    const [event] = itemsOf(await stage.admin('GET', `${AUDIT}/events?type=${type}&limit=1`));
    return textAt(event, 'actor', 'subject');
  };

  it('refuses a hold over a tenant of which there is no history', async () => {
    for (const id of ['acme-misspelt', 'T1', '__proto__']) {
      const refused = await hold({ kind: 'tenant', id });
      expect(reasonOf(refused), id).to.equal('400 TENANT_NOT_FOUND');
      expect(fieldsOf(refused)).to.deep.equal(['scope.id']);
      expect(detailOf(refused)).to.equal(
        `field 'scope.id': tenant '${id}' has no history: give the name of a tenant`,
      );
    }
    expect(itemsOf(await stage.admin('GET', `${AUDIT}/holds`))).to.deep.equal([]);
    expect((await hold({ kind: 'tenant', id: 't1' })).status).to.equal(200);
  });

  it('accepts one over a tenant in which nothing happened yet but that it was made', async () => {
    const made = await stage.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'fresh' } });
    expect(made.status, made.text).to.equal(200);
    expect((await hold({ kind: 'tenant', id: 'fresh' })).status).to.equal(200);
  });

  it('refuses a hold over a subject that nobody knows, with nothing recorded but the refusal', async () => {
    for (const id of [NOBODY, 'alice', '__proto__', 'system']) {
      const refused = await hold({ kind: 'subject', id });
      expect(reasonOf(refused), id).to.equal('400 SUBJECT_NOT_FOUND');
      expect(fieldsOf(refused)).to.deep.equal(['scope.id']);
      expect(detailOf(refused)).to.match(/^field 'scope.id' names no subject .*: give the id of a User, or/);
    }
    expect(itemsOf(await stage.admin('GET', `${AUDIT}/holds`))).to.deep.equal([]);
    expect(stage.service.rejections.at(-1)).to.include({ code: 'SUBJECT_NOT_FOUND', outcome: 'rejected' });
  });

  it('accepts one over who has acted, and over a User who never has', async () => {
    await stage.order(stage.alice, 'one');
    expect((await hold({ kind: 'subject', id: await subjectOf('ClusterOrdered') })).status).to.equal(200);
    const admitted = await stage.admin('POST', `${PRIVATE}/users`, {
      metadata: { name: 'quiet', tenant: 't1' },
      spec: { username: 'quiet' },
    });
    expect(admitted.status, admitted.text).to.equal(200);
    expect((await hold({ kind: 'subject', id: textAt(admitted.json, 'id') })).status).to.equal(200);
  });

  it('refuses an erasure of somebody unknown, or in a tenant that is not there, by the field', async () => {
    await stage.order(stage.alice, 'one');
    const subject = await subjectOf('ClusterOrdered');
    const erase = (subjectId: string, tenant: string): ReturnType<Caller> =>
      stage.admin('POST', `${AUDIT}/erasures`, { subject_id: subjectId, tenant, reason: 'asked for it' });
    const unknown = await erase(NOBODY, 't1');
    expect(reasonOf(unknown)).to.equal('404 SUBJECT_NOT_FOUND');
    expect(fieldsOf(unknown)).to.deep.equal(['subject_id']);
    expect(detailOf(unknown)).to.match(/nothing was erased.*give the id of a User/);
    // The service acts in every tenant, but is nobody.
    expect(reasonOf(await erase('system', 't1'))).to.equal('404 SUBJECT_NOT_FOUND');
    const elsewhere = await erase(subject, 'misspelt');
    expect(reasonOf(elsewhere)).to.equal('404 TENANT_NOT_FOUND');
    expect(fieldsOf(elsewhere)).to.deep.equal(['tenant']);
    expect(itemsOf(await stage.admin('GET', `${AUDIT}/erasures`))).to.deep.equal([]);
  });

  it('keeps a grant of somebody who has not logged in yet, and says so; a name is no id', async () => {
    await stage.order(stage.alice, 'one');
    const grant = (subject: string): ReturnType<Caller> =>
      stage.admin('POST', `${AUDIT}/grants`, { subject, tenants: ['t1'], reason: 'yearly audit' });
    const early = await grant(NOBODY);
    expect(early.status, early.text).to.equal(200);
    expect(early.json).to.include({ subject: NOBODY, subject_seen: false });
    const known = await grant(await subjectOf('ClusterOrdered'));
    expect(known.json).to.include({ subject_seen: true });
    for (const name of ['olga', 'olga@t2.example', '__proto__', 'system']) {
      const refused = await grant(name);
      expect(reasonOf(refused), name).to.equal('400 INVALID_ARGUMENT');
      expect(fieldsOf(refused)).to.deep.equal(['subject']);
      expect(detailOf(refused)).to.match(/^field 'subject' must be the id of a subject, a UUID.*not a name/);
    }
    expect(itemsOf(await stage.admin('GET', `${AUDIT}/grants`))).to.have.length(2);
  });
});
