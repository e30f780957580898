import { expect } from 'chai';
import { AUDIT, startAuditStage, until, type AuditStage } from '../../support/audit/stage.ts';
import { PRIVATE, PUBLIC, textAt, type Caller, type Reply } from '../../support/http/service.ts';

/** What the record of a refused write says of what was sent, whoever refused it: the surface, or the decider of the object. */
describe('refused writes: what was sent', () => {
  let stage: AuditStage;
  before(async () => {
    stage = await startAuditStage({ audit: { refusals: true } });
  });
  after(() => stage.service.close());

  const SPEC = { template: { id: 'osac.templates.small' } };
  let count = 0;
  const name = (): string => `summary-${(count += 1)}`;

  /** What is stored of the refusal that a call is answered with. */
  const refusalOf = async (call: () => Promise<Reply>, status: number): Promise<Record<string, unknown>> => {
    const { store } = stage.service;
    const before = (await store.lastPosition()) ?? '';
    const reply = await call();
    expect(reply.status, reply.text).to.equal(status);
    let found: Record<string, unknown> | undefined;
    await until(async () => {
      for await (const { type, data } of store.readAll({ after: before, limit: 100 }))
        if (type === 'RequestRefused') found = data;
      return found !== undefined;
    });
    return found ?? {};
  };
  const ordered = async (caller: Caller, wanted = name()): Promise<string> => {
    const reply = await caller('POST', `${PUBLIC}/clusters`, { metadata: { name: wanted }, spec: SPEC });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };

  it('of a creation is the names of its fields, and a hash', async () => {
    const { alice } = stage;
    const taken = name();
    await ordered(alice, taken);
    const create = (body: object) => () => alice('POST', `${PUBLIC}/clusters`, body);
    const fields = ['metadata.name', 'metadata.labels', 'spec.template'];
    const sent = (wanted: string, template: object) => ({
      metadata: { name: wanted, labels: { hush: 'hush' } },
      spec: { template },
    });
    const decided = await refusalOf(create(sent(taken, SPEC.template)), 409);
    expect(decided).to.deep.include({ code: 'ALREADY_EXISTS', command: 'OrderCluster', fields });
    const refused = await refusalOf(create(sent(name(), { id: 'nothing' })), 400);
    expect(refused).to.deep.include({ command: '/osac.public.v1.Clusters/Create', fields });
    for (const each of [decided, refused]) expect(each['bodyHash']).to.match(/^[0-9a-f]{64}$/);
  });

  it('of a change is the names of its fields, as the message calls them', async () => {
    const { alice } = stage;
    const id = await ordered(alice);
    const locked = (body: object) => () => alice('PATCH', `${PUBLIC}/clusters/${id}?lock=true`, body);
    const change = (body: object) => () => alice('PATCH', `${PUBLIC}/clusters/${id}`, body);
    const decided = await refusalOf(
      change({ metadata: { labels: {} }, spec: { nodeSets: { hush: { size: 3 } } } }),
      400,
    );
    expect(decided).to.deep.include({
      command: 'ReviseCluster',
      resourceId: id,
      fields: ['metadata.labels', 'spec.node_sets'],
    });
    expect(decided['bodyHash']).to.match(/^[0-9a-f]{64}$/);
    const unmade = await refusalOf(change({ spec: { template: { id: 'other' } } }), 400);
    expect(unmade).to.deep.include({ kind: 'cluster', resourceId: id, fields: ['spec.template'] });
    const refused = await refusalOf(change({ metadata: { version: 40, nonsense: 1 } }), 400);
    expect(refused).not.to.have.property('fields');
    const stale = await refusalOf(locked({ metadata: { version: 40, labels: {} } }), 409);
    expect(stale).to.deep.include({ fields: ['metadata.version', 'metadata.labels'] });
  });

  it('of a deletion is that nothing was sent', async () => {
    const { alice } = stage;
    const refused = await refusalOf(
      () => alice('DELETE', `${PUBLIC}/clusters/0193a1b2-0000-7000-8000-0000000000ee`),
      404,
    );
    expect(refused).not.to.have.property('fields');
  });

  it('repeats no key that the caller chose, however deep it stands', async () => {
    const { admin } = stage;
    const sent = {
      metadata: { name: 'Not A Name' },
      data: { hush: 'aHVzaA==' },
      coordinates: { hush2: 'x' },
    };
    const refused = await refusalOf(() => admin('POST', `${PRIVATE}/secrets`, sent), 400);
    expect(refused).to.deep.include({ fields: ['metadata.name', 'data', 'coordinates'] });
    expect(JSON.stringify(refused)).not.to.include('hush');
  });

  it('of a call of operators is the same, and no value of theirs', async () => {
    const { admin } = stage;
    const post = (path: string, body: object) => () => admin('POST', `/api/ledger/v1/${path}`, body);
    const checked = await refusalOf(
      post('hubs/check', {
        kubeconfig: 'hush',
        mode: 'hush',
        namespace: 'orders',
        automation: { token: 'hush' },
        hush: 1,
      }),
      400,
    );
    expect(checked).to.deep.include({
      command: 'POST /ledger.v1/hubs/check',
      fields: ['kubeconfig', 'mode', 'automation', 'namespace'],
    });
    expect(checked['bodyHash']).to.match(/^[0-9a-f]{64}$/);
    expect(JSON.stringify(checked)).not.to.include('hush');
    const rebuilt = await refusalOf(post('projections/nothing/rebuild', { force: true }), 404);
    expect(rebuilt).to.deep.include({ fields: ['force'] });
    const retried = await refusalOf(post('orders/0193a1b2-0000-7000-8000-0000000000ee/retry', {}), 404);
    expect(retried).not.to.have.property('fields');
  });

  it('of a call of the audit surface is the same, by whomever it is refused', async () => {
    const { admin, alice, settled } = stage;
    await ordered(alice);
    await settled();
    const [subject, reason] = ['5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1', 'why'];
    const refused = await refusalOf(() => admin('POST', `${AUDIT}/holds`, { reason }), 400);
    expect(refused).to.deep.include({ command: 'POST /audit.v1/holds', fields: ['reason'] });
    expect(refused['bodyHash']).to.match(/^[0-9a-f]{64}$/);
    const scope = { kind: 'tenant', id: 't1' };
    const held = await admin('POST', `${AUDIT}/holds`, { scope, reason });
    expect(held.status, held.text).to.equal(200);
    const alices = (await alice('GET', `${PUBLIC}/clusters?limit=1`)).json['items'] as unknown as object[];
    const who = textAt(alices[0] as never, 'metadata', 'creator');
    const decided = await refusalOf(
      () => admin('POST', `${AUDIT}/erasures`, { subject_id: who, tenant: 't1', reason }),
      400,
    );
    expect(decided).to.deep.include({ code: 'LEGAL_HOLD', fields: ['subject_id', 'tenant', 'reason'] });
    const grant = await refusalOf(() => admin('POST', `${AUDIT}/grants`, { subject, tenants: [] }), 400);
    expect(grant).to.deep.include({ fields: ['subject', 'tenants'] });
  });
});
