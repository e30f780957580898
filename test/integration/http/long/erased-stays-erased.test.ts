import { expect } from 'chai';
import { AUDIT, startAuditStage, type AuditStage } from '../../../support/audit/stage.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Caller, type Json } from '../../../support/http/service.ts';

const EMAIL = 'alice@t1.example';
const MARK = { erased: true };

/** What was recorded of a person before an erasure stays erased, whatever the person does later. */
describe('erased stays erased', function () {
  this.timeout(60_000);
  let stage: AuditStage;
  let alice: Caller;
  let auditor: Caller;
  beforeEach(async () => {
    stage = await startAuditStage({ audit: { refusals: true }, provisionUsers: true });
    alice = await stage.callerFor({ user: 'alice', tenants: ['t1'], claims: { email: EMAIL } });
    auditor = stage.auditor;
  });
  afterEach(() => stage.service.close());

  const settled = async (): Promise<void> => {
    await stage.service.users.idle();
    await stage.service.refusalsStored();
    await stage.settled(false);
  };
  const eventsOf = async (subject: string): Promise<readonly Json[]> => {
    await settled();
    return itemsOf(await auditor('GET', `${AUDIT}/events?limit=500&subject=${subject}`));
  };
  const refuse = async (): Promise<void> => {
    const rejected = await alice('POST', `${PUBLIC}/clusters`, { metadata: { name: EMAIL } });
    expect(rejected.status, rejected.text).to.equal(400);
    expect((await alice('GET', `${AUDIT}/events`)).status).to.equal(403);
    expect((await alice('DELETE', `${PUBLIC}/clusters/nothing`)).status).to.equal(404);
  };
  const erase = async (subject: string): Promise<void> => {
    const body = { subject_id: subject, tenant: 't1', reason: 'asked for it' };
    const done = await stage.admin('POST', `${AUDIT}/erasures`, body);
    expect(done.status, done.text).to.equal(200);
  };
  const subjectOfAlice = async (): Promise<string> => {
    await settled();
    const ordered = itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered`));
    return textAt(ordered[0], 'actor', 'subject');
  };

  it('in events of accepted, rejected and denied calls, also after the person has come back', async () => {
    await stage.order(alice, 'before');
    await refuse();
    const subject = await subjectOfAlice();
    const before = await eventsOf(subject);
    const outcomes = new Set(before.map((event) => textAt(event, 'outcome')));
    expect(outcomes).to.deep.equal(new Set(['accepted', 'rejected', 'denied']));
    for (const event of before) {
      const what = `${textAt(event, 'type')} ${textAt(event, 'outcome')}`;
      expect(event['actor']?.['personal'], what).to.deep.equal({ user_name: 'alice', email: EMAIL });
      expect(event['source'], what).to.have.property('ip');
    }
    await erase(subject);
    const erased = await eventsOf(subject);
    expect(erased.map(({ id }) => id)).to.deep.equal(before.map(({ id }) => id));
    await stage.order(alice, 'after');
    await refuse();
    const [old, anew] = [before.length, await eventsOf(subject)];
    expect(anew.slice(0, old)).to.deep.equal(erased);
    for (const event of anew.slice(0, old)) {
      expect([event['actor']?.['personal'], event['source']], textAt(event, 'event')).to.deep.equal([
        MARK,
        MARK,
      ]);
      if (textAt(event, 'type') === 'RequestRefused') expect(event['data']?.['message']).to.deep.equal(MARK);
    }
    expect(JSON.stringify(anew.slice(0, old))).not.to.match(/alice/);
    const later = anew.slice(old);
    expect(later.map((event) => textAt(event, 'type'))).to.include.members([
      'ClusterOrdered',
      'RequestRefused',
    ]);
    for (const event of later)
      expect(event['actor']?.['personal']).to.deep.equal({ user_name: 'alice', email: EMAIL });
  });

  it('in exports that are made when the person has come back: old events reveal nothing, new ones do', async () => {
    await stage.order(alice, 'before');
    await refuse();
    const subject = await subjectOfAlice();
    const before = (await eventsOf(subject)).map((event) => textAt(event, 'id'));
    await erase(subject);
    await stage.order(alice, 'after');
    await settled();
    const who = { user: 'audrey', tenants: ['t1'], roles: ['auditor'] };
    for (const format of ['native', 'ocsf']) {
      const state = await stage.exported(auditor, { format });
      const lines = (await stage.fetched(await stage.service.token(who), state))
        .toString('utf8')
        .split('\n')
        .filter((line) => line.includes(subject));
      const old = lines.filter((line) => before.some((id) => line.includes(id)));
      expect(old.length, format).to.be.at.least(before.length);
      expect(old.join('\n'), format).not.to.match(/alice/);
      expect(
        lines.filter((line) => line.includes(EMAIL)),
        format,
      ).not.to.deep.equal([]);
    }
  });

  it('of who belongs to no tenant, too: nothing that is stored of somebody can be out of reach of an erasure', async () => {
    const olga = await stage.callerFor({
      user: 'olga',
      roles: ['auditor'],
      claims: { email: 'olga@o.example' },
    });
    expect((await olga('GET', `${AUDIT}/checkpoints`)).status).to.equal(200);
    expect((await olga('GET', `${AUDIT}/holds`)).status).to.equal(403);
    const hers = async (): Promise<readonly Json[]> => {
      await settled();
      const events = itemsOf(
        await stage.admin('GET', `${AUDIT}/events?limit=500&type=AuditRead,RequestRefused`),
      );
      return events.filter((event) => event['tenant'] === ('' as unknown as Json));
    };
    const [look] = await hers();
    const subject = textAt(look, 'actor', 'subject');
    expect(JSON.stringify(await hers())).to.include('olga@o.example');
    const erasing = { subject_id: subject, reason: 'asked for it' };
    for (const tenant of ['t1', 'shared'])
      expect((await stage.admin('POST', `${AUDIT}/erasures`, { ...erasing, tenant })).status).to.equal(404);
    const held = await stage.admin('POST', `${AUDIT}/holds`, { scope: { kind: 'all' }, reason: 'case' });
    expect((await stage.admin('POST', `${AUDIT}/erasures`, erasing)).status).to.equal(400);
    await stage.admin('DELETE', `${AUDIT}/holds/${textAt(held.json, 'id')}?reason=over`);
    const done = await stage.admin('POST', `${AUDIT}/erasures`, erasing);
    expect(done.status, done.text).to.equal(200);
    expect(done.json).to.include({ state: 'complete', tenant: '' });
    const left = (await hers()).filter((event) => textAt(event, 'actor', 'subject') === subject);
    expect(left.length).to.equal(2);
    for (const event of left) expect(event['actor']?.['personal']).to.deep.equal(MARK);
    // Who belongs to one is erased there.
    await stage.order(alice, 'hers');
    const wrong = await stage.admin('POST', `${AUDIT}/erasures`, {
      ...erasing,
      subject_id: await subjectOfAlice(),
    });
    expect(wrong.status).to.equal(404);
  });

  it('in documents: the User and who made things, as they are and as they were', async () => {
    const cluster = await stage.order(alice, 'before');
    const subject = await subjectOfAlice();
    const user = async (query = ''): Promise<string> =>
      (await stage.admin('GET', `${PRIVATE}/users/${subject}${query}`)).text;
    expect(await user()).to.include(EMAIL);
    const then = (await stage.admin('GET', `${PRIVATE}/clusters/${cluster}`)).headers;
    expect(then.get('etag')).to.be.a('string');
    await erase(subject);
    await stage.order(alice, 'after');
    await settled();
    for (const text of [
      await user(),
      (await stage.admin('GET', `${PRIVATE}/users`)).text,
      (await auditor('GET', `${PUBLIC}/clusters/${cluster}`)).text,
      (await stage.admin('GET', `${AUDIT}/resources/user/${subject}`)).text,
      (await stage.admin('GET', `${AUDIT}/resources/user/${subject}/events?type=UserAdmitted`)).text,
    ])
      expect(text).not.to.match(/alice/);
    expect(await user()).to.include('"erased"');
  });
});
