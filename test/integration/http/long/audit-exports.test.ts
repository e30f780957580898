import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import type { BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import { proofsSchema } from '../../../../src/app/audit/bundle/format.ts';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { openBundle } from '../../../../src/cli/audit/bundle-source.ts';
import {
  AUDIT,
  detailOf,
  reasonOf,
  startAuditStage,
  until,
  type AuditStage,
} from '../../../support/audit/stage.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt, type Json } from '../../../support/http/service.ts';

/** Exports over `/api/audit/v1` and what can become of them. */
describe('audit API: exports', function () {
  // Some wait for a signed head, which comes every ten seconds.
  this.timeout(60_000);
  let stage: AuditStage;
  const start = async (audit: { signs?: boolean; exports?: boolean } = {}): Promise<void> => {
    stage = await startAuditStage({ audit });
  };
  afterEach(() => stage.service.close());

  const auditorToken = (): Promise<string> =>
    stage.service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
  const verified = async (token: string, state: Json): Promise<BundleReport> => {
    const trust = (await stage.auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;
    const file = join(stage.service.audit?.directory ?? '', 'copy.tar');
    await writeFile(file, await stage.fetched(token, state));
    return verifyBundle(await openBundle(file), { trust: { origin: trust.origin, keys: trust.keys } });
  };

  it('says of an export of nothing that there is nothing, and exports a time in which nothing was', async () => {
    await start();
    const nobody = await stage.admin('POST', `${AUDIT}/exports`, { tenant: 'nobody' });
    expect(reasonOf(nobody)).to.equal('400 NOTHING_TO_EXPORT');
    const token = await auditorToken();
    await stage.order(stage.alice, 'outside');
    const quiet = { from: '2020-01-01T00:00:00Z', to: '2020-02-01T00:00:00Z' };
    const empty = await stage.exported(stage.auditor, quiet);
    expect(empty).to.include({ state: 'complete', events: 0 });
    const report = await verified(token, empty);
    expect(report.findings).to.deep.equal([]);
    expect(report.counts.events).to.equal(0);
    const later = await stage.exported(stage.auditor, { from: '2999-01-01T00:00:00Z' });
    expect(later).to.include({ state: 'complete', events: 0 });
  });

  it('is of one signed head while events arrive, and holds all that was stored when it was asked for', async () => {
    await start();
    const id = await stage.order(stage.alice, 'before');
    let going = true;
    const arriving = (async () => {
      for (let i = 0; going; i += 1) {
        await stage.alice('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { n: String(i) } } });
        await pause(10);
      }
    })();
    const state = await stage.exported(stage.auditor, { filter: { kind: 'clusters' } });
    going = false;
    await arriving;
    expect(textAt(state, 'state'), JSON.stringify(state)).to.equal('complete');
    const report = await verified(await auditorToken(), state);
    expect(report.findings).to.deep.equal([]);
    expect(report.checkpoint?.size).to.equal(state['tree_size']);
    expect(report.counts.full).to.be.greaterThan(0);
    expect(report.counts.withheld).to.be.greaterThan(0);
  });

  it('shows that it continues earlier exports of the tenant, pins that were named for them, and the newest heads', async () => {
    await start();
    const { auditor, alice, order, exported } = stage;
    const sizeOf = (state: Json): number => Number(state['tree_size']);
    const pinsOf = async (state: Json): Promise<readonly number[]> => {
      const file = join(stage.service.audit?.directory ?? '', 'copy.tar');
      await writeFile(file, await stage.fetched(await auditorToken(), state));
      const texts: Uint8Array[] = [];
      for await (const bytes of (await openBundle(file)).read('proofs.json')) texts.push(bytes);
      return proofsSchema.parse(JSON.parse(Buffer.concat(texts).toString())).pins.map(({ size }) => size);
    };
    await order(alice, 'one');
    const first = await exported(auditor, { pins: [3, 1, 2, 4, 5, 6] });
    await order(alice, 'three');
    const second = await exported(auditor, {});
    const pins = await pinsOf(second);
    expect(pins).to.include(sizeOf(first));
    expect(pins, 'some of those that were named').to.include.members([3, 1, 2, 4]);
    expect(pins, 'and no more').not.to.include.members([5, 6]);
    const heads = itemsOf(await auditor('GET', `${AUDIT}/checkpoints?after=0&limit=1000`)).map(({ size }) =>
      Number(size),
    );
    const before = Math.max(...heads.filter((size) => size < sizeOf(second)));
    expect(pins, `newest head below ${sizeOf(second)}`).to.include(before);
    expect(pins.length).to.be.at.most(96);
    expect(await pinsOf(first)).to.include.members([3, 1, 2, 4, 5, 6]);
  });

  it('is made again after a crash, and what a crash left is removed', async () => {
    await start({ exports: false });
    await stage.order(stage.alice, 'one');
    const asked = await stage.auditor('POST', `${AUDIT}/exports`, {});
    const id = textAt(asked.json, 'id');
    expect(asked.json).to.include({ state: 'waiting' });
    const directory = stage.service.audit?.directory ?? '';
    const stranded = '0190fdc2-bf52-71b8-8c36-977f348f4436';
    await writeFile(join(directory, `${stranded}.wanted`), '');
    await mkdir(join(directory, `${id}.parts`));
    await writeFile(join(directory, `${id}.parts`, 'manifest.json'), 'half of it');
    const again = await stage.service.audit?.restarted();
    await until(async () => (await again?.exports.state(id))?.status === 'complete');
    const state = (await stage.auditor('GET', `${AUDIT}/exports/${id}`)).json;
    expect((await verified(await auditorToken(), state)).findings).to.deep.equal([]);
    await rm(join(directory, `${id}.tar`));
    expect(reasonOf(await stage.auditor('GET', `${AUDIT}/exports/${id}/file`))).to.equal(
      '404 EXPORT_ELSEWHERE',
    );
  });

  it('is one for one key, another request with the key is refused, and too many wait for no more', async () => {
    await start({ exports: false });
    const ask = (body: object, key: string) =>
      stage.auditor('POST', `${AUDIT}/exports`, body, { 'idempotency-key': key });
    const [first, second] = [await ask({}, 'one'), await ask({}, 'one')];
    expect(textAt(second.json, 'id')).to.equal(textAt(first.json, 'id'));
    expect(reasonOf(await ask({ format: 'ocsf' }, 'one'))).to.equal('422 IDEMPOTENCY_MISMATCH');
    for (let i = 0; i < 4; i += 1) expect((await ask({}, `n${i}`)).status).to.equal(202);
    const refused = await ask({}, 'one-too-many');
    expect(reasonOf(refused)).to.equal('429 EXPORTS_BUSY');
    expect(refused.headers.get('retry-after')).to.equal('30');
    const anna = await stage.callerFor({ user: 'anna', tenants: ['t1'], roles: ['auditor'] });
    expect((await anna('POST', `${AUDIT}/exports`, {})).status).to.equal(202);
    const path = `${AUDIT}/exports/${textAt(first.json, 'id')}`;
    expect(reasonOf(await stage.auditor('GET', `${path}/file`))).to.equal('400 EXPORT_NOT_COMPLETE');
    expect((await stage.auditor('DELETE', path)).json).to.include({ state: 'discarded' });
    expect(itemsOf(await stage.auditor('GET', `${AUDIT}/exports`)).length).to.equal(5);
  });

  it('holds as events of one cluster what lists find of it', async () => {
    await start();
    const { auditor, alice, order, settled } = stage;
    const id = await order(alice, 'one');
    await order(alice, 'other');
    await auditor('GET', `${AUDIT}/resources/cluster/${id}`);
    await settled();
    const listed = itemsOf(await auditor('GET', `${AUDIT}/resources/cluster/${id}/events?limit=500`));
    expect(listed.map((event) => textAt(event, 'type'))).to.include.members(['ClusterOrdered', 'AuditRead']);
    expect(listed.find((event) => textAt(event, 'type') === 'AuditRead')?.['also_about']).to.deep.equal([
      { kind: 'cluster', resource_id: id },
    ]);
    const filter = { kind: 'cluster', resource_id: id, types: ['ClusterOrdered', 'AuditRead'] };
    const state = await stage.exported(auditor, { filter });
    const { counts, findings } = await verified(await auditorToken(), state);
    expect(findings).to.deep.equal([]);
    // The order, the look at it, and the list of its events.
    expect(counts.full + counts.redacted).to.equal(3);
  });

  it('refuses what it cannot understand, by name', async () => {
    await start({ exports: false });
    const detail = async (body: object): Promise<string> =>
      detailOf(await stage.auditor('POST', `${AUDIT}/exports`, body));
    expect(await detail({ tenants: 't1' })).to.match(/^unknown field 'tenants'/);
    expect(await detail({ filter: { type: 'X' } })).to.match(/^unknown field 'filter.type'/);
    expect(await detail({ format: 'csv' })).to.equal("field 'format' must be native or ocsf");
    expect(await detail({ from: 'x' })).to.match(/^field 'from' must be a time/);
    expect(await detail({ pins: ['1'] })).to.match(/^field 'pins' must be a list/);
    const size = stage.service.models.audit?.size() ?? 0;
    for (const pins of [[99_999], [1, 99_999, 2]])
      expect(await detail({ pins })).to.match(
        /^field 'pins': 99999 is larger than the tree, which has \d+ leaves\. Either no head of that size was signed here, or history is m/,
      );
    const [, told] = / has (\d+) leaves/.exec(await detail({ pins: [99_999] })) ?? [];
    expect(Number(told)).to.be.at.least(size);
    expect(await detail({ filter: { types: 'X' } })).to.match(/^field 'filter.types' must be a list/);
  });

  it('and proofs wait for a signature: nothing is said to be proven that is not', async () => {
    await start({ signs: false });
    await stage.order(stage.alice, 'unsigned');
    await stage.settled(false);
    const [event] = itemsOf(await stage.auditor('GET', `${AUDIT}/events?type=ClusterOrdered`));
    const proof = await stage.auditor('GET', `${AUDIT}/events/${textAt(event, 'id')}/proof`);
    expect(reasonOf(proof)).to.equal('503 NOT_SIGNED_YET');
    expect(proof.headers.get('retry-after')).to.equal('5');
    expect(reasonOf(await stage.auditor('GET', `${AUDIT}/checkpoint`))).to.equal('503 NOT_SIGNED_YET');
    expect(itemsOf(await stage.auditor('GET', `${AUDIT}/checkpoints`))).to.deep.equal([]);
  });
});

/** Legal holds and erasures over `/api/audit/v1`. */
describe('audit API: holds and erasures', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  it('a hold keeps what an erasure then destroys: reads say so, and proofs stand', async () => {
    const { admin, auditor, alice, order, settled, exported, fetched, service } = stage;
    const email = 'old@mail.example';
    await order(await stage.callerFor({ user: 'alice', tenants: ['t1'], claims: { email } }), 'before');
    await settled();
    const list = async (): Promise<Json[]> => [
      ...itemsOf(await auditor('GET', `${AUDIT}/events?type=ClusterOrdered`)),
    ];
    const [event] = await list();
    const subject = textAt(event, 'actor', 'subject');
    expect(event?.['actor']?.['personal']).to.deep.equal({ user_name: 'alice', email });
    const token = await service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
    expect((await fetched(token, await exported(auditor, {}))).includes(email)).to.equal(true);

    const hold = await admin('POST', `${AUDIT}/holds`, {
      scope: { kind: 'tenant', id: 't1' },
      reason: 'a case',
      ticket: 'L-1',
    });
    expect(hold.status, hold.text).to.equal(200);
    const wanted = { subject_id: subject, tenant: 't1', reason: 'asked for it', request_id: 'R-17' };
    const erase = (body: object, key: string) =>
      admin('POST', `${AUDIT}/erasures`, body, { 'idempotency-key': key });
    expect(reasonOf(await erase(wanted, 'a'))).to.equal('400 LEGAL_HOLD');
    expect(itemsOf(await admin('GET', `${AUDIT}/holds`))).to.deep.equal([hold.json]);
    const path = `${AUDIT}/holds/${textAt(hold.json, 'id')}?reason=closed`;
    expect((await admin('DELETE', path)).status).to.equal(200);
    expect(reasonOf(await admin('DELETE', path))).to.equal('404 HOLD_NOT_FOUND');

    expect(reasonOf(await erase({ ...wanted, tenant: 't2' }, 'b'))).to.equal('404 SUBJECT_NOT_FOUND');
    const done = await erase(wanted, 'c');
    expect(done.status, done.text).to.equal(200);
    expect(done.json).to.include({ state: 'complete', subject_id: subject, request_id: 'R-17' });
    const recorded = async (): Promise<number> =>
      (await Array.fromAsync(service.store.readStream('retention-deployment'))).length;
    const before = await recorded();
    const again = await erase(wanted, 'd');
    expect(again.status, again.text).to.equal(200);
    expect(again.json).to.include({ id: textAt(done.json, 'id'), state: 'complete', already: true });
    expect(textAt(again.json, 'completed_at')).to.match(/^20/);
    expect(textAt(again.json, 'by')).to.match(/^[0-9a-f-]{36}$/);
    expect(await recorded(), 'no new event').to.equal(before);
    const back = await order(alice, 'after');
    expect((await erase(wanted, 'c')).json).to.deep.equal(done.json);
    await settled();
    const told = await admin('GET', `${AUDIT}/erasures/${textAt(done.json, 'id')}`);
    expect(told.json).to.include({ state: 'complete', tenant: 't1' });
    expect(itemsOf(await admin('GET', `${AUDIT}/erasures`)).length).to.equal(1);

    const [after, anew] = await list();
    expect(anew).to.deep.include({ resource_id: back });
    expect(anew?.['actor']?.['personal']).to.deep.equal({ user_name: 'alice' });
    expect(after?.['actor']?.['personal']).to.deep.equal({ erased: true });
    expect(after?.['source']).to.deep.equal({ erased: true });
    const state = await exported(auditor, {});
    const bytes = await fetched(token, state);
    expect(bytes.includes(email)).to.equal(false);
    const file = join(service.audit?.directory ?? '', 'copy.tar');
    await writeFile(file, bytes);
    expect((await verifyBundle(await openBundle(file))).findings).to.deep.equal([]);
  });

  it('a hold over any tenant in which the person acted keeps the data, whichever is named; files of all are removed', async () => {
    const { admin, auditor, settled, exported, callerFor } = stage;
    const wanda = await callerFor({ user: 'wanda', tenants: ['t1', 't2'] });
    for (const tenant of ['t1', 't2']) {
      const ordered = await wanda('POST', `${PUBLIC}/clusters`, {
        metadata: { name: `of-${tenant}`, tenant },
        spec: { template: { id: 'osac.templates.small' } },
      });
      expect(ordered.status, ordered.text).to.equal(200);
    }
    await settled();
    const listed = await admin('GET', `${AUDIT}/events?type=ClusterOrdered&tenant=t1`);
    const subject = textAt(itemsOf(listed)[0], 'actor', 'subject');
    const file = textAt(await exported(auditor, {}), 'file');
    const hold = async (id: string): Promise<string> => {
      const placed = await admin('POST', `${AUDIT}/holds`, {
        scope: { kind: 'tenant', id },
        reason: 'a case',
      });
      return `${AUDIT}/holds/${textAt(placed.json, 'id')}?reason=closed`;
    };
    const erase = (tenant: string) =>
      admin('POST', `${AUDIT}/erasures`, { subject_id: subject, tenant, reason: 'asked for it' });
    for (const held of ['t1', 't2']) {
      const path = await hold(held);
      for (const named of ['t1', 't2'])
        expect(reasonOf(await erase(named)), `${held} is held, ${named} named`).to.equal('400 LEGAL_HOLD');
      expect((await admin('DELETE', path)).status).to.equal(200);
    }
    const third = await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't3' } });
    expect(third.status, third.text).to.equal(200);
    await hold('t3');
    const done = await erase('t2');
    expect(done.status, done.text).to.equal(200);
    expect(done.json['tenants']).to.deep.equal(['t2', 't1']);
    expect(reasonOf(await auditor('GET', file))).to.equal('400 EXPORT_NOT_COMPLETE');
    await settled();
    expect(
      (await admin('GET', `${AUDIT}/erasures/${textAt(done.json, 'id')}`)).json['tenants'],
    ).to.deep.equal(['t2', 't1']);
    const theirs = await callerFor({ user: 'tara', tenants: ['t2'], roles: ['auditor'] });
    const begun = itemsOf(await theirs('GET', `${AUDIT}/events?type=ErasureBegun`));
    expect(begun.map((event) => textAt(event, 'shown'))).to.deep.equal(['redacted']);
    expect(begun[0]?.['data']).not.to.have.property('tenants');
  });

  it('are of people: the service, which acts in every tenant, is nobody who could be held or erased', async () => {
    const { admin, alice, order, settled } = stage;
    await order(alice, 'one');
    await settled();
    const done = itemsOf(await admin('GET', `${AUDIT}/events?subject=system&tenant=t1`));
    expect(done, 'something that the service did for the tenant').to.not.deep.equal([]);
    for (const tenant of ['t1', '']) {
      const erased = await admin('POST', `${AUDIT}/erasures`, {
        subject_id: 'system',
        tenant,
        reason: 'asked for it',
      });
      expect(reasonOf(erased), `of '${tenant}'`).to.equal('404 SUBJECT_NOT_FOUND');
    }
    const held = await admin('POST', `${AUDIT}/holds`, {
      scope: { kind: 'subject', id: 'system' },
      reason: 'a case',
    });
    expect(reasonOf(held)).to.equal('400 SUBJECT_NOT_FOUND');
  });

  it('refuses what it cannot understand, by name', async () => {
    const { admin } = stage;
    const detail = async (path: string, body: object): Promise<string> =>
      detailOf(await admin('POST', `${AUDIT}/${path}`, body));
    expect(await detail('holds', { scope: { kind: 'tenant' }, reason: 'r' })).to.match(
      /^field 'scope' must be/,
    );
    expect(await detail('holds', { scope: { kind: 'all' } })).to.equal("field 'reason' is needed");
    expect(await detail('erasures', { tenant: 't1', reason: 'r' })).to.equal("field 'subject_id' is needed");
    const subject = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';
    expect(await detail('grants', { subject, tenants: [], reason: 'r' })).to.match(
      /^field 'tenants' must name/,
    );
    expect(await detail('grants', { subject, tenants: 't1', reason: 'r' })).to.match(
      /^field 'tenants' must be/,
    );
  });
});
