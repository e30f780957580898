import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import { verifyConsistency, verifyInclusion } from '../../../src/app/audit/merkle/proofs.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { AUDIT, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { itemsOf, textAt, type Caller, type Json, type TestService } from '../../support/http/service.ts';

/** What `/api/audit/v1` answers, over the real command runner, tree and signer. */
describe('audit API', () => {
  let stage: AuditStage;
  let service: TestService;
  let admin: Caller;
  let auditor: Caller;
  let alice: Caller;

  const start = async (): Promise<void> => {
    stage = await startAuditStage();
    ({ service, admin, auditor, alice } = stage);
  };
  afterEach(() => service.close());

  const other = (options: Parameters<TestService['token']>[0]): Promise<Caller> => stage.callerFor(options);
  const settled = (): Promise<void> => stage.settled();
  const order = (caller: Caller, name: string): Promise<string> => stage.order(caller, name);
  const numbers = (json: Json | undefined): { [name: string]: number } =>
    json as unknown as { [name: string]: number };
  const buffers = (json: Json | undefined): Buffer[] =>
    (json as unknown as string[]).map((text) => Buffer.from(text, 'base64'));

  it('lists and shows who did what in the own tenant, in clear, and nothing of others', async () => {
    await start();
    const id = await order(alice, 'mine');
    await order(await other({ user: 'bob', tenants: ['t2'] }), 'theirs');
    await settled();
    const listed = await auditor('GET', `${AUDIT}/events?type=ClusterOrdered`);
    expect(listed.status, listed.text).to.equal(200);
    const [event, ...more] = itemsOf(listed);
    expect(more).to.deep.equal([]);
    expect(event).to.deep.include({ kind: 'cluster', resource_id: id, tenant: 't1', outcome: 'accepted' });
    expect(event?.['actor']?.['personal']).to.deep.equal({ user_name: 'alice' });
    expect(textAt(event, 'source', 'ip')).to.match(/127\.0\.0\.1$/);
    const shown = await auditor('GET', `${AUDIT}/events/${textAt(event, 'id')}`);
    expect(shown.json).to.deep.equal(event);
    const byName = await auditor('GET', `${AUDIT}/events/${textAt(event, 'event')}`);
    expect(byName.json).to.deep.equal(event);
    const theirs = itemsOf(await admin('GET', `${AUDIT}/events?type=ClusterOrdered&tenant=t2`));
    expect(theirs.map((each) => textAt(each, 'tenant'))).to.deep.equal(['t2']);
    const foreign = textAt(theirs[0], 'id');
    const answers = await Promise.all(
      ['', '/proof'].flatMap((end) =>
        [foreign, '0190fdc2-bf52-71b8-8c36-977f348f4436'].map((each) =>
          auditor('GET', `${AUDIT}/events/${each}${end}`),
        ),
      ),
    );
    expect(answers.map(reasonOf)).to.deep.equal(Array(4).fill('404 NOT_FOUND'));
    const byTenant = async (tenant: string): Promise<Json> =>
      (await auditor('GET', `${AUDIT}/events?tenant=${tenant}`)).json['items'] as Json;
    expect(await byTenant('t2')).to.deep.equal(await byTenant('nobody'));
  });

  it('proves an event against a signed head that was pinned, and heads against each other', async () => {
    await start();
    await order(alice, 'first');
    await settled();
    const pin = itemsOf(await auditor('GET', `${AUDIT}/checkpoints`))[0];
    await order(alice, 'second');
    await settled();
    const [event] = itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered&limit=1`));
    const { json: proof } = await auditor('GET', `${AUDIT}/events/${textAt(event, 'id')}/proof`);
    const leafHash = Buffer.from(textAt(proof, 'leaf_hash'), 'base64');
    const at = numbers(proof['checkpoint'])['size'] ?? 0;
    const inMain = { index: numbers(proof)['index'] ?? 0, size: at, leafHash, path: buffers(proof['path']) };
    const root = Buffer.from(textAt(proof, 'checkpoint', 'root'), 'base64');
    expect(verifyInclusion({ ...inMain, root })).to.equal(true);
    const tenant = proof['tenant'];
    const { index = 0, size = 0 } = numbers(tenant);
    const inTenant = { index, size, leafHash, path: buffers(tenant?.['path']) };
    expect(verifyInclusion({ ...inTenant, root: Buffer.from(textAt(tenant, 'root'), 'base64') })).to.equal(
      true,
    );

    const latest = itemsOf(await auditor('GET', `${AUDIT}/checkpoints`))[0];
    const [from, to] = [numbers(pin)['size'] ?? 0, numbers(latest)['size'] ?? 0];
    expect(to).to.be.greaterThan(from);
    const between = await auditor('GET', `${AUDIT}/consistency?from=${from}&to=${to}`);
    const [fromRoot, toRoot] = [pin, latest].map((head) => Buffer.from(textAt(head, 'root'), 'base64'));
    const path = buffers(between.json['path']);
    expect(
      verifyConsistency({ from, to, path, fromRoot: fromRoot as Buffer, toRoot: toRoot as Buffer }),
    ).to.equal(true);
    const wrong = await auditor('GET', `${AUDIT}/consistency?from=2&to=1`);
    expect(reasonOf(wrong)).to.equal('400 INVALID_ARGUMENT');
    const beyond = await auditor('GET', `${AUDIT}/consistency?from=1&to=99999`);
    expect(textAt(beyond.json, 'detail')).to.match(/^query parameter 'to' is larger than the tree/);
    const heads = itemsOf(await auditor('GET', `${AUDIT}/checkpoints?after=0&limit=2`));
    expect(numbers(heads[0])['size']).to.be.at.most(from);
  });

  it('exports what can be verified offline, resumes downloads, and discards', async () => {
    await start();
    await order(alice, 'exported');
    await settled();
    const token = await service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
    const trust = (await auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;
    const state = await stage.exported(auditor, { format: 'ocsf' });
    expect(textAt(state, 'state'), JSON.stringify(state)).to.equal('complete');
    const bytes = await stage.fetched(token, state);
    expect(createHash('sha256').update(bytes).digest('hex')).to.equal(textAt(state, 'sha256'));
    const file = join(service.audit?.directory ?? '', 'copy.tar');
    await writeFile(file, bytes);
    const report = await verifyBundle(await openBundle(file), { trust });
    expect(report.findings).to.deep.equal([]);
    expect(report).to.deep.include({ ok: true, keys: 'pinned', pin: 'continued' });
    expect(report.counts.full).to.be.greaterThan(0);

    const part = await fetch(service.url + textAt(state, 'file'), {
      headers: {
        authorization: `Bearer ${token}`,
        range: 'bytes=100-299',
        'if-range': `"sha256-${textAt(state, 'sha256')}"`,
      },
    });
    expect(part.status).to.equal(206);
    expect(part.headers.get('content-range')).to.equal(`bytes 100-299/${bytes.length}`);
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(100, 300))).to.equal(true);
    const beyond = await auditor('GET', textAt(state, 'file'), undefined, {
      range: `bytes=${bytes.length}-`,
    });
    expect(reasonOf(beyond)).to.equal('416 RANGE_NOT_SATISFIABLE');

    const downloads = async (): Promise<number> => {
      await settled();
      return itemsOf(await admin('GET', `${AUDIT}/events?type=AuditExportDownloaded`)).length;
    };
    const before = await downloads();
    // Nothing was handed over: who asked is on record as of any look, and a range that there is not as refused.
    const looks = async (): Promise<number> =>
      itemsOf(await admin('GET', `${AUDIT}/events?type=AuditRead&limit=500`)).filter(
        (event) => textAt(event, 'data', 'what') === 'export',
      ).length;
    const looked = await looks();
    const url = service.url + textAt(state, 'file');
    const authorization = `Bearer ${token}`;
    const head = await fetch(url, { method: 'HEAD', headers: { authorization } });
    expect([head.status, head.headers.get('content-length')]).to.deep.equal([200, String(bytes.length)]);
    const known = { authorization, 'if-none-match': `"sha256-${textAt(state, 'sha256')}"` };
    expect((await fetch(url, { headers: known })).status).to.equal(304);
    expect((await fetch(url, { headers: { authorization, range: 'bytes=99999999999-' } })).status).to.equal(
      416,
    );
    expect(await downloads()).to.equal(before);
    expect(await looks()).to.equal(looked + 2);
    const headers = { 'idempotency-key': 'same', 'if-match': '"cluster-1"', 'x-dry-run': 'maybe' };
    for (let i = 0; i < 2; i += 1)
      expect((await auditor('GET', textAt(state, 'file'), undefined, headers)).status).to.equal(200);
    expect(await downloads()).to.equal(before + 2);

    const stranger = await other({ user: 'anna', tenants: ['t1'], roles: ['auditor'] });
    const path = `${AUDIT}/exports/${textAt(state, 'id')}`;
    expect(reasonOf(await stranger('GET', path))).to.equal('404 NOT_FOUND');
    expect(reasonOf(await stranger('GET', `${path}/file`))).to.equal('404 NOT_FOUND');
    expect((await auditor('DELETE', path)).json).to.include({ state: 'discarded' });
    expect(reasonOf(await auditor('GET', `${path}/file`))).to.equal('400 EXPORT_NOT_COMPLETE');
  });
});
