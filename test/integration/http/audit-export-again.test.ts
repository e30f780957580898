import { expect } from 'chai';
import { AUDIT, reasonOf, startAuditStage, until, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Reply } from '../../support/http/service.ts';

const SUBJECT = { filter: { subject: 'alice' } };

/** A lost answer is asked for again with the same key: the export that was asked for then is the answer, whatever is so by now. */
describe('audit API: an export that is asked for again', () => {
  let stage: AuditStage;
  afterEach(() => stage.service.close());

  /** `signs`: without heads exports wait for one. */
  const start = async ({ signs }: { readonly signs: boolean }): Promise<void> => {
    stage = await startAuditStage({ audit: { signs } });
    await stage.order(stage.alice, 'before');
    await stage.settled(signs);
  };
  const ask = (key: string, body: object = SUBJECT): Promise<Reply> =>
    stage.auditor('POST', `${AUDIT}/exports`, body, { 'idempotency-key': `"${key}"` });
  const accepted = async (reply: Promise<Reply>): Promise<string> => {
    const { status, text, json } = await reply;
    expect(status, text).to.equal(202);
    return textAt(json, 'id');
  };

  it('is that of then, although the name that it was asked by leads to nobody any more', async () => {
    await start({ signs: true });
    const first = await ask('k1');
    const id = textAt(first.json, 'id');
    const subject = textAt(first.json, 'request', 'filter', 'subject');
    const erasure = { subject_id: subject, tenant: 't1', reason: 'own request' };
    const erased = await stage.admin('POST', `${AUDIT}/erasures`, erasure);
    expect(erased.status, erased.text).to.equal(200);
    expect(reasonOf(await ask('k2'))).to.equal('400 INVALID_ARGUMENT');
    const again = await ask('k1');
    expect(await accepted(Promise.resolve(again))).to.equal(id);
    expect(textAt(again.json, 'request', 'filter', 'subject')).to.equal(subject);
    expect(reasonOf(await ask('k1', { filter: { subject: 'bob' } }))).to.equal('422 IDEMPOTENCY_MISMATCH');
    expect(itemsOf(await stage.auditor('GET', `${AUDIT}/exports`))).to.have.length(1);
  });

  it('is that of then, however many others wait by now', async () => {
    await start({ signs: false });
    const id = await accepted(ask('k1'));
    const path = `${AUDIT}/exports/${id}`;
    expect((await stage.auditor('DELETE', path)).status).to.equal(200);
    await until(async () => (await stage.auditor('GET', path)).json['events_done'] === undefined);
    for (const key of ['k2', 'k3', 'k4', 'k5', 'k6']) await accepted(ask(key));
    expect(reasonOf(await ask('k7'))).to.equal('429 EXPORTS_BUSY');
    expect(await accepted(ask('k1'))).to.equal(id);
    expect(await accepted(ask('k2'))).not.to.equal(id);
  });
});
