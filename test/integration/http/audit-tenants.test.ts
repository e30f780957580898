import { expect } from 'chai';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, PUBLIC, type Caller, type Reply } from '../../support/http/service.ts';

/** Tenants that are misspelt, not there or not theirs: no auditor may believe that nothing happened. */
describe('audit API: tenants out of reach', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  /** What is said, without the name that was asked for. */
  const said = (reply: Reply, name: string): string => detailOf(reply).replaceAll(`'${name}'`, '?');

  it('are refused in the same words, which say what to do, and the refusal is in the history', async () => {
    const { alice, auditor, callerFor, order, service, settled } = stage;
    await order(alice, 'mine');
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await settled();
    const [own] = itemsOf(await auditor('GET', `${AUDIT}/events?limit=1&type=ClusterOrdered`));
    const answers = async (ask: (tenant: string) => Promise<Reply>): Promise<string> => {
      const [theirs, nobody] = [await ask('t2'), await ask('nobody')];
      expect([theirs, nobody].map(reasonOf)).to.deep.equal(Array(2).fill('403 PERMISSION_DENIED'));
      expect(said(theirs, 't2').replaceAll('--tenant t2 ', '')).to.equal(
        said(nobody, 'nobody').replaceAll('--tenant nobody ', ''),
      );
      return detailOf(theirs);
    };
    const listed = await answers((tenant) => auditor('GET', `${AUDIT}/events?tenant=${tenant}`));
    expect(listed).to.match(
      /^query parameter 'tenant': you may not read the history of a tenant 't2': check its spelling; .* ledgerctl audit grant [-0-9a-f]{36} --tenant t2 --reason <why>$/,
    );
    expect(service.rejections.at(-1)).to.include({ outcome: 'denied', command: 'GET /audit.v1/events' });
    await answers((tenant) => auditor('GET', `${AUDIT}/events?tenant=t1&tenant=${tenant}`));
    await answers((tenant) => auditor('GET', `${AUDIT}/resources/cluster/x/events?tenant=${tenant}`));
    const exported = await answers((tenant) => auditor('POST', `${AUDIT}/exports`, { tenant }));
    expect(exported).to.match(/^field 'tenant': you may not read the history of a tenant 't2'/);
    expect(own).to.not.equal(undefined);
  });

  it('are granted to the subject that the refusal names', async () => {
    const { admin, callerFor, order, settled } = stage;
    await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await settled();
    const outside = await callerFor({ user: 'olga', roles: ['auditor'] });
    const paths = [
      'events',
      'events/x',
      'events/x/proof',
      'resources/cluster/x',
      'resources/cluster/x/events',
      'resources/cluster/x/diff?from=2020-01-01T00:00:00Z',
    ];
    for (const path of paths) {
      const reply = await outside('GET', `${AUDIT}/${path}`);
      expect(reasonOf(reply), path).to.equal('403 PERMISSION_DENIED');
      expect(detailOf(reply), path).to.match(/^you may read the history of no tenant; a provider admin/);
    }
    const empty = await outside('POST', `${AUDIT}/exports`, {});
    expect(reasonOf(empty)).to.equal('403 PERMISSION_DENIED');
    // What is of nobody's history he may see.
    expect((await outside('GET', `${AUDIT}/checkpoints`)).status).to.equal(200);
    const refused = await outside('GET', `${AUDIT}/events?tenant=t2`);
    const [, subject] = /audit grant (\S+) --tenant t2/.exec(detailOf(refused)) ?? [];
    const given = await admin('POST', `${AUDIT}/grants`, { subject, tenants: ['t2'], reason: 'audit' });
    expect(given.status, given.text).to.equal(200);
    const seen = itemsOf(await outside('GET', `${AUDIT}/events?tenant=t2&type=ClusterOrdered`));
    expect(seen).to.have.length(1);
  });

  it('are misspelt where somebody may read everything, and those without events are there', async () => {
    const { admin, order } = stage;
    await order(stage.alice, 'mine');
    const detail = async (query: string): Promise<string> =>
      detailOf(await admin('GET', `${AUDIT}/events?${query}`));
    expect(await detail('tenant=shard')).to.match(
      /^query parameter 'tenant': tenant 'shard' not found; did you mean shared\b/,
    );
    expect(await detail('tenant=__proto__')).to.match(/tenant '__proto__' not found$/);
    expect((await admin('GET', `${AUDIT}/events?tenant=t1,shared`)).status).to.equal(200);
    const exported = await admin('POST', `${AUDIT}/exports`, { tenant: 'shard' });
    expect(reasonOf(exported)).to.equal('400 NOTHING_TO_EXPORT');
    expect(detailOf(exported)).to.equal("tenant 'shard' has no events: nothing can be exported");
    expect(exported.json['errors']).to.deep.equal([{ field: 'tenant', description: 'check its spelling' }]);
  });

  it('have objects and events that are as absent as those that never were, at any moment', async () => {
    const { alice, auditor, callerFor, order, settled } = stage;
    await order(alice, 'mine');
    const bob: Caller = await callerFor({ user: 'bob', tenants: ['t2'] });
    const theirs = await order(bob, 'theirs');
    expect((await bob('GET', `${PUBLIC}/clusters/${theirs}`)).status).to.equal(200);
    await settled();
    const now = encodeURIComponent(new Date().toISOString());
    for (const [path, says] of [
      ['resources/cluster/ID', /^cluster \? not found in the history that you may read \(of t1\): check/],
      [`resources/cluster/ID?as_of=${now}`, /^cluster \? not found at that moment in the history that/],
      [`resources/cluster/ID/diff?from=${now}`, /^cluster \? not found at either moment in the history/],
      [
        'events/cluster-ID@0',
        /^event 'cluster-ID@0' not found in the history that you may read \(of t1\): give/,
      ],
      ['events/cluster-ID@0/proof', /^event 'cluster-ID@0' not found in the history that you may read/],
    ] as const) {
      const [foreign, absent] = [
        await auditor('GET', `${AUDIT}/${path.replaceAll('ID', theirs)}`),
        await auditor('GET', `${AUDIT}/${path.replaceAll('ID', 'nothing')}`),
      ];
      expect([foreign, absent].map(reasonOf), path).to.deep.equal(Array(2).fill('404 NOT_FOUND'));
      expect(said(foreign, theirs).replaceAll(theirs, 'ID'), path)
        .to.equal(said(absent, 'nothing').replaceAll('nothing', 'ID'))
        .and.to.match(says);
    }
    // That they were asked for shows no more (audit-foreign.test.ts: of all kinds).
    for (const id of [theirs, 'nothing'])
      expect(
        (await auditor('GET', `${AUDIT}/resources/cluster/${id}/events`)).json['items'],
        id,
      ).to.deep.equal([]);
  });
});
