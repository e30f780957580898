import { expect } from 'chai';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../../support/audit/stage.ts';
import { callerOf, itemsOf, PUBLIC, textAt, type Caller, type Json } from '../../../support/http/service.ts';

/** What is kept from tenants, and from who may no longer read: the people of the provider, hidden events, files. */
describe('audit API: what is kept back', function () {
  this.timeout(60_000);
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  const CANARY = 'canary';

  it("are names and addresses of the provider's people, wherever a tenant reads what they did there", async () => {
    const { service, auditor, admin, alice, order, settled, exported, fetched } = stage;
    const email = `${CANARY}@provider.example`;
    const operator = callerOf(
      service,
      await service.token({ user: `${CANARY}-operator`, admin: true, claims: { email } }),
    );
    const id = await order(alice, 'one');
    const changed = await operator(
      'PATCH',
      `${PUBLIC}/clusters/${id}`,
      { metadata: { labels: { by: 'provider' } } },
      { 'user-agent': `${CANARY}-browser/7` },
    );
    expect(changed.status, changed.text).to.equal(200);
    await settled();

    const done = async (caller: Caller): Promise<Json> => {
      const reply = await caller('GET', `${AUDIT}/events?kind=cluster&id=${id}&type=ClusterLabelled`);
      const found = itemsOf(reply);
      expect(found.map(({ actor }) => actor?.['roles'])).to.deep.equal([['admin']]);
      return found[0] as Json;
    };
    const whole = await done(admin);
    expect(whole['actor']?.['personal']).to.deep.equal({ user_name: `${CANARY}-operator`, email });
    expect(whole['source']).to.include({ user_agent: `${CANARY}-browser/7` });
    expect(textAt(whole, 'source', 'ip')).to.not.equal('');
    const shown = await done(auditor);
    expect(textAt(shown, 'actor', 'subject')).to.equal(textAt(whole, 'actor', 'subject'));
    expect(shown['actor']).to.not.have.property('personal');
    expect(shown).to.not.have.property('source');

    const event = textAt(whole, 'id');
    const paths = [
      `events/${event}`,
      `events/${event}/proof`,
      'events?limit=500',
      `resources/cluster/${id}/events`,
    ];
    for (const path of paths) {
      const reply = await auditor('GET', `${AUDIT}/${path}`);
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.text, path).to.not.include(CANARY);
    }
    // Nor is anything found by such a name: it is as one that nobody has.
    const asked = async (name: string): Promise<string> => {
      const reply = await auditor('GET', `${AUDIT}/events?subject=${name}`);
      return `${reply.status} ${detailOf(reply).replaceAll(name, 'X')}`;
    };
    expect(await asked(`${CANARY}-operator`)).to.equal(await asked('nobody-has-this'));
    expect((await admin('GET', `${AUDIT}/events?subject=${CANARY}-operator`)).status).to.equal(200);

    const tokens = {
      tenant: await service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] }),
      provider: await service.token({ user: 'root', admin: true }),
    };
    for (const format of ['native', 'ocsf']) {
      const own = await fetched(tokens.tenant, await exported(auditor, { format }));
      expect(own.includes(event), format).to.equal(true);
      expect(own.includes(CANARY), format).to.equal(false);
      const theirs = await fetched(tokens.provider, await exported(admin, { format, tenant: 't1' }));
      for (const text of [email, `${CANARY}-operator`, `${CANARY}-browser/7`])
        expect(theirs.includes(text), `${format}: ${text}`).to.equal(true);
    }
  });

  it('are events that only the provider sees: their proof is not there either', async () => {
    const { auditor, admin, alice, order, settled } = stage;
    await order(alice, 'one');
    await settled();
    const [hidden] = itemsOf(await admin('GET', `${AUDIT}/events?type=NameReserved&tenant=t1`));
    const id = textAt(hidden, 'id');
    expect((await admin('GET', `${AUDIT}/events/${id}/proof`)).status).to.equal(200);
    const nothing = '0193a1b2-0000-7000-8000-00000000ffff';
    for (const path of ['', '/proof']) {
      const [of, ofNothing] = await Promise.all(
        [id, nothing].map((each) => auditor('GET', `${AUDIT}/events/${each}${path}`)),
      );
      if (of === undefined || ofNothing === undefined) throw new Error('no answers');
      expect(of.status, path).to.equal(404);
      expect(reasonOf(of)).to.equal(reasonOf(ofNothing));
      expect(detailOf(of).replaceAll(id, 'X')).to.equal(detailOf(ofNothing).replaceAll(nothing, 'X'));
    }
  });

  /** An export is as if it had never been. */
  const expectGone = async (caller: Caller, id: string): Promise<void> => {
    expect(reasonOf(await caller('GET', `${AUDIT}/exports/${id}`))).to.equal('404 NOT_FOUND');
    expect(reasonOf(await caller('GET', `${AUDIT}/exports/${id}/file`))).to.equal('404 NOT_FOUND');
    expect(reasonOf(await caller('DELETE', `${AUDIT}/exports/${id}`))).to.equal('404 NOT_FOUND');
    expect(itemsOf(await caller('GET', `${AUDIT}/exports`))).to.deep.equal([]);
  };

  it('are exports of an auditor whose grant was withdrawn, or is for others by now', async () => {
    const { admin, alice, order, settled, callerFor, exported } = stage;
    await order(alice, 'one');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'two');
    const outside = await callerFor({ user: 'olga', roles: ['auditor'] });
    expect((await outside('GET', `${AUDIT}/checkpoints`)).status).to.equal(200);
    await settled();
    const looks = itemsOf(await admin('GET', `${AUDIT}/events?type=AuditRead&limit=500`));
    const subject = textAt(looks.at(-1), 'actor', 'subject');
    const granted = async (tenants: readonly string[] | 'all'): Promise<() => Promise<void>> => {
      const { json, status, text } = await admin('POST', `${AUDIT}/grants`, {
        subject,
        tenants,
        reason: 'audit',
      });
      expect(status, text).to.equal(200);
      const path = `${AUDIT}/grants/${textAt(json, 'id')}?reason=over`;
      return async () => {
        expect((await admin('DELETE', path)).status).to.equal(200);
      };
    };
    for (const [tenants, body] of [
      [['t2'], { tenant: 't2' }],
      ['all', {}],
    ] as const) {
      const withdraw = await granted(tenants);
      const id = textAt(await exported(outside, body), 'id');
      expect((await outside('GET', `${AUDIT}/exports/${id}/file`)).status).to.equal(200);
      await withdraw();
      const other = await granted(['t1']);
      await expectGone(outside, id);
      expect((await admin('GET', `${AUDIT}/exports/${id}`)).json).to.include({ state: 'complete' });
      await other();
    }
  });

  it('are ids of others in the history of whom an export is: its auditors would read what the provider asked for', async () => {
    const { admin, alice, order, settled, callerFor } = stage;
    await order(alice, 'one');
    const bob = await callerFor({ user: 'bob', tenants: ['t2'] });
    const spec = { template: { id: 'osac.templates.small' } };
    const made = await bob('POST', `${PUBLIC}/clusters`, {
      id: 'merger-plan',
      metadata: { name: 'x' },
      spec,
    });
    expect(made.status, made.text).to.equal(200);
    await settled();
    const asked = (tenant?: string) =>
      admin('POST', `${AUDIT}/exports`, {
        ...(tenant !== undefined && { tenant }),
        filter: { kind: 'cluster', resource_id: 'merger-plan' },
      });
    const refused = await asked('t1');
    expect(refused.status, refused.text).to.equal(400);
    expect(detailOf(refused)).to.match(/^field 'filter.resource_id': nothing/);
    const person = (tenant?: string) =>
      admin('POST', `${AUDIT}/exports`, {
        ...(tenant !== undefined && { tenant }),
        filter: { subject: 'bob' },
      });
    const nobody = await person('t1');
    expect(nobody.status, nobody.text).to.equal(400);
    expect(detailOf(nobody)).to.match(/^field 'filter.subject': no subject has this id/);
    expect((await person('t2')).status).to.equal(202);
    expect((await asked('t2')).status).to.equal(202);
    expect((await asked()).status).to.equal(202);
  });

  it('are ids of what only the provider reads in the history of whom an export is, such as the hub of an order', async () => {
    const { admin, alice, auditor, service, order, settled } = stage;
    const id = await order(alice, 'one');
    const at = '2026-11-21T12:00:00.000Z';
    await service.store.append('hubCapacity-hub-secret', 'no_stream', [
      {
        id: '0193a1b2-0000-7000-8000-0000000000dd',
        type: 'HubCapacityReserved',
        data: JSON.stringify({
          at,
          holder: { kind: 'cluster', id: id },
          claim: { controlPlanes: 1, nodes: {} },
        }),
        metadata: JSON.stringify({
          schemaVersion: 1,
          tenant: 't1',
          project: '',
          actor: { subjectId: 'system', roles: [], authMethod: 'internal', via: 'process' },
          command: 'ReserveHubCapacity',
          commandId: 'c',
          requestHash: 'h',
          correlationId: 'k',
          causationId: 'c',
          occurredAt: at,
          instance: 'i',
        }),
      },
    ]);
    await settled();
    const filter = { kind: 'hub', resource_id: 'hub-secret' };
    const refused = await admin('POST', `${AUDIT}/exports`, { tenant: 't1', filter });
    expect(refused.status, refused.text).to.equal(400);
    expect(detailOf(refused)).to.match(
      /^field 'filter.resource_id': nothing that tenant 't1' may read is about a hub of this id.* leave out 'tenant'/,
    );
    // The whole log is nobody's history.
    expect((await admin('POST', `${AUDIT}/exports`, { filter })).status).to.equal(202);
    await settled();
    const told = await auditor('GET', `${AUDIT}/events?limit=500`);
    expect(told.text).to.include('ClusterOrdered').and.to.not.include('hub-secret');
  });

  it('are exports of a tenant that has left the token', async () => {
    const { alice, order, settled, callerFor, exported } = stage;
    await order(alice, 'one');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'two');
    await settled();
    const roles = ['auditor'];
    const both = await callerFor({ user: 'wanda', tenants: ['t1', 't2'], roles });
    const [of1, of2] = [await exported(both, { tenant: 't1' }), await exported(both, { tenant: 't2' })];
    const one = await callerFor({ user: 'wanda', tenants: ['t1'], roles });
    const listed = itemsOf(await one('GET', `${AUDIT}/exports`));
    expect(listed.map((each) => textAt(each, 'id'))).to.deep.equal([textAt(of1, 'id')]);
    expect(reasonOf(await one('GET', `${AUDIT}/exports/${textAt(of2, 'id')}`))).to.equal('404 NOT_FOUND');
    expect(reasonOf(await one('GET', textAt(of2, 'file')))).to.equal('404 NOT_FOUND');
  });
});
