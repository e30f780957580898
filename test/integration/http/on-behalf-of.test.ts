import { expect } from 'chai';
import { subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { AUDIT, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import {
  ISSUER,
  itemsOf,
  PRIVATE,
  PUBLIC,
  textAt,
  type Caller,
  type Json,
} from '../../support/http/service.ts';

/**
 * Tokens that speak for somebody else (RFC 8693 §4.1): the rights are those of `sub`, and only those; the history names
 * who acts, and on whose behalf.
 */
describe('calls on behalf of somebody', () => {
  let stage: AuditStage;
  let alice: string;
  let portal: Caller;
  const ALICE = { user: 'alice', tenants: ['t1'], claims: { email: 'alice@t1.example' } };
  const PORTAL = { sub: 'portal-7', preferred_username: 'csp-portal' };

  beforeEach(async () => {
    stage = await startAuditStage({ audit: { refusals: true } });
    portal = await acting(PORTAL);
    await stage.order(await stage.callerFor(ALICE), 'herself');
    alice = textAt(await newest('type=ClusterOrdered'), 'actor', 'subject');
  });
  afterEach(() => stage.service.close());

  const acting = (act: unknown, more: object = {}): Promise<Caller> =>
    stage.callerFor({ ...ALICE, ...more, claims: { ...ALICE.claims, act } });
  const found = async (query: string): Promise<readonly Json[]> => {
    await stage.service.refusalsStored();
    await stage.settled(false);
    return itemsOf(await stage.auditor('GET', `${AUDIT}/events?limit=500&${query}`));
  };
  const newest = async (query: string): Promise<Json | undefined> => (await found(query)).at(-1);

  it('are those of the subject, and name who acts by id and name', async () => {
    const id = await stage.order(portal, 'for-her');
    const event = await newest('type=ClusterOrdered');
    expect(event?.['actor']).to.include({ on_behalf_of: alice, auth_method: 'jwt' });
    expect(event?.['actor']?.['personal']).to.deep.equal({ user_name: 'csp-portal' });
    const subject = textAt(event, 'actor', 'subject');
    expect(subject)
      .to.match(/^[0-9a-f-]{36}$/)
      .and.not.to.equal(alice);
    const shown = await stage.admin('GET', `${PRIVATE}/clusters/${id}`);
    expect(textAt(shown.json, 'metadata', 'creator')).to.equal(alice);
    // Found by who acted, and under the person for whom it was.
    expect(await found(`subject=${subject}`)).to.have.length(1);
    const hers = await found(`kind=user&id=${alice}`);
    expect(hers.map((each) => textAt(each, 'id'))).to.include(textAt(event, 'id'));
    expect(JSON.stringify(event)).not.to.include('alice@');
  });

  it('are refused as hers are, and the refusal names the same two', async () => {
    expect((await portal('GET', `${AUDIT}/events`)).status).to.equal(403);
    expect((await portal('POST', `${PRIVATE}/tenants`, { metadata: { name: 'x' } })).status).to.equal(403);
    const refusals = await found('type=RequestRefused');
    expect(refusals).to.have.length(2);
    for (const refusal of refusals) {
      expect(refusal['actor']).to.include({ on_behalf_of: alice });
      expect(refusal['actor']?.['personal']).to.deep.equal({ user_name: 'csp-portal' });
      expect(refusal['data']?.['subjectId']).to.equal(textAt(refusal, 'actor', 'subject'));
    }
  });

  it('have no right more from whoever acts, now or before', async () => {
    const powerful = { sub: 'root', groups: ['admins'], realm_access: { roles: ['auditor'] } };
    for (const act of [powerful, { sub: 'portal-7', act: powerful }]) {
      const caller = await acting(act);
      expect((await caller('GET', `${PRIVATE}/hubs`)).status).to.equal(403);
      expect((await caller('GET', `${AUDIT}/events`)).status).to.equal(403);
    }
    const foreign = await acting({ sub: 'bob', organization: ['t2'] });
    const listed = await foreign('GET', `${PUBLIC}/clusters`);
    expect(itemsOf(listed)).to.have.length(1);
  });

  it('of an auditor are looks of both, and what was asked for is the auditor’s', async () => {
    const auditor = { tenants: ['t1'], roles: ['auditor'], user: 'audrey' };
    const tool = await acting({ sub: 'siem' }, auditor);
    const state = await stage.exported(tool, {});
    const requested = await newest('type=AuditExportRequested');
    const audrey = textAt(requested, 'actor', 'on_behalf_of');
    expect(textAt(state, 'requested_by')).to.equal(audrey);
    expect((await stage.auditor('GET', `${AUDIT}/exports/${textAt(state, 'id')}`)).status).to.equal(200);
    const completed = await newest('type=AuditExportCompleted');
    expect(completed?.['actor']).to.include({ subject: 'system', on_behalf_of: audrey });
  });

  it('can be erased by either: hers stay hers', async () => {
    await stage.order(portal, 'for-her');
    const [own, delegated] = await found('type=ClusterOrdered');
    const subject = textAt(delegated, 'actor', 'subject');
    const erased = await stage.admin('POST', `${AUDIT}/erasures`, {
      subject_id: subject,
      tenant: 't1',
      reason: 'gone',
    });
    expect(erased.status, erased.text).to.equal(200);
    const [hers, theirs] = await found('type=ClusterOrdered');
    expect(hers?.['actor']).to.deep.equal(own?.['actor']);
    expect(theirs?.['actor']?.['personal']).to.deep.equal({ erased: true });
    expect(theirs?.['source']).to.deep.equal({ erased: true });
  });

  it('are refused where nobody can say who acts', async () => {
    const many = (depth: number): object => (depth === 0 ? {} : { sub: `s${depth}`, act: many(depth - 1) });
    const six = {
      sub: 'a',
      act: { sub: 'b', act: { sub: 'c', act: { sub: 'd', act: { sub: 'e', act: { sub: 'f' } } } } },
    };
    for (const act of [
      null,
      'portal',
      [],
      {},
      { sub: '' },
      { sub: 7 },
      { sub: 'x'.repeat(256) },
      six,
      many(2),
    ]) {
      const refused = await (await acting(act))('GET', `${PUBLIC}/clusters`);
      expect(refused.status, JSON.stringify(act)).to.equal(401);
      expect(textAt(refused.json, 'message')).to.match(/^token is not valid: claim 'act/);
    }
    const five = { sub: 'a', act: { sub: 'b', act: { sub: 'c', act: { sub: 'd', act: { sub: 'e' } } } } };
    expect((await (await acting(five))('GET', `${PUBLIC}/clusters`)).status).to.equal(200);
  });

  it('given a token that names who acts by another issuer, when it is used, then nobody of that issuer has acted', async () => {
    const iss = 'https://other.example';
    await stage.order(await acting({ sub: 'bob', iss, preferred_username: 'Bob' }), 'named');
    const actor = (await newest('type=ClusterOrdered'))?.['actor'];
    expect(actor).to.include({ on_behalf_of: alice, vouched_by: ISSUER });
    expect(actor?.['personal']).to.deep.equal({ user_name: 'Bob', issuer: iss });
    const subject = textAt(actor, 'subject');
    // Neither who comes with a token of that issuer, nor the one of that name of the issuer that vouches.
    expect([subjectIdOf('t1', iss, 'bob'), subjectIdOf('t1', ISSUER, 'bob')]).not.to.include(subject);
    // The same one every time; another one by the word of the same issuer is another.
    await stage.order(await acting({ sub: 'bob', iss }), 'again');
    expect(textAt(await newest('type=ClusterOrdered'), 'actor', 'subject')).to.equal(subject);
    await stage.order(await acting({ sub: 'bob', iss: 'https://third.example' }), 'third');
    expect(textAt(await newest('type=ClusterOrdered'), 'actor', 'subject')).not.to.equal(subject);
    // Of the token's own issuer nothing need be said.
    await stage.order(await acting({ sub: 'bob', iss: ISSUER }), 'own');
    const own = (await newest('type=ClusterOrdered'))?.['actor'];
    expect(own).to.include({ subject: subjectIdOf('t1', ISSUER, 'bob') });
    expect(own).not.to.have.property('vouched_by');
    expect(own?.['personal']).to.deep.equal({ user_name: 'bob' });
    // Of a refusal it is told, too.
    await (await acting({ sub: 'bob', iss }))('GET', `${PRIVATE}/hubs`);
    expect((await newest('type=RequestRefused'))?.['actor']).to.include({ subject, vouched_by: ISSUER });
  });

  it('of who acts for itself are its own', async () => {
    const self = await acting({ sub: 'alice' });
    await stage.order(self, 'self');
    const event = await newest('type=ClusterOrdered');
    expect(textAt(event, 'actor', 'subject')).to.equal(alice);
    expect(event?.['actor']).not.to.have.property('on_behalf_of');
  });
});
