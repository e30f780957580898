import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { verifyBundle } from '../../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../../src/app/audit/merkle/key-chain.ts';
import { openBundle } from '../../../../src/cli/audit/bundle-source.ts';
import { AUDIT, startAuditStage, until } from '../../../support/audit/stage.ts';
import { PRIVATE, type Caller } from '../../../support/http/service.ts';

describe('an export of the service', function () {
  // Some wait for a signed head, which comes every ten seconds.
  this.timeout(60_000);
  it('continues a pin of the auditor, the log and the tree of the tenant, and has the OCSF records of its events', async () => {
    const stage = await startAuditStage({ audit: {} });
    try {
      await stage.order(stage.alice, 'before');
      await stage.exported(stage.auditor, {});
      const trust = (await stage.auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;
      await stage.order(stage.alice, 'behind');
      const state = await stage.exported(stage.auditor, { format: 'ocsf' });
      const file = join(stage.service.audit?.directory ?? '', 'pinned.tar');
      const token = await stage.service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
      await writeFile(file, await stage.fetched(token, state));
      const report = await verifyBundle(await openBundle(file), { trust });
      expect(report.findings).to.deep.equal([]);
      expect(report.pin).to.equal('continued');
      expect(report.checkpoint?.note).not.to.equal(trust.pin);
    } finally {
      await stage.service.close();
    }
  });

  it('is held against a pin that covers all that was recorded when it was asked for', async () => {
    const stage = await startAuditStage({ audit: {} });
    try {
      for (const name of ['first', 'second', 'third']) {
        await stage.order(stage.alice, name);
        const stored = Number(await stage.service.store.lastPosition());
        const { pin = '' } = (await stage.auditor('GET', `${AUDIT}/trust.json`)).json as unknown as Trust;
        // Later than the order, by the asking, which is an event of the tenant too.
        expect(Number(/^position (.+)$/m.exec(pin)?.[1])).to.be.greaterThan(stored);
      }
    } finally {
      await stage.service.close();
    }
  });

  it('says what to do about a pin from before the first event of the tenant, and that helps', async () => {
    const stage = await startAuditStage({ audit: {} });
    try {
      await stage.settled();
      const late = await stage.callerFor({ user: 'lea', tenants: ['t9'], roles: ['auditor'] });
      const token = await stage.service.token({ user: 'lea', tenants: ['t9'], roles: ['auditor'] });
      const trustOf = async (caller: Caller, query: string): Promise<Trust> =>
        (await caller('GET', `${AUDIT}/trust.json${query}`)).json as unknown as Trust;
      const old = await trustOf(stage.admin, '?newest=true');
      const made = await stage.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't9' } });
      expect(made.status, made.text).to.equal(200);
      const checked = async (trust: Trust): Promise<Awaited<ReturnType<typeof verifyBundle>>> => {
        const state = await stage.exported(late, {});
        const file = join(stage.service.audit?.directory ?? '', 'late.tar');
        await writeFile(file, await stage.fetched(token, state));
        return verifyBundle(await openBundle(file), { trust });
      };
      const refused = await checked(old);
      expect(refused.pin).to.equal('not shown');
      expect(refused.findings[0]?.message).to.match(
        /A pin from before the first event of tenant t9 cannot be used: take a new one over a way that you trust \(audit trust -o <new file>/,
      );
      const renewed = await checked(await trustOf(late, ''));
      expect([renewed.findings, renewed.pin]).to.deep.equal([[], 'continued']);
    } finally {
      await stage.service.close();
    }
  });

  it('has no pin that covers it while nobody signs: an older one is given to who asks for it', async () => {
    const stage = await startAuditStage({ audit: { signs: false } });
    try {
      const reply = await stage.auditor('GET', `${AUDIT}/trust.json?newest=true`);
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json).not.to.have.property('pin');
    } finally {
      await stage.service.close();
    }
  });

  it('gives the waiting up without a word when its auditor has gone, and with one when the instance stops', async () => {
    const stopped = new AbortController();
    const stage = await startAuditStage({ audit: { signs: false }, ending: stopped.signal });
    try {
      const token = await stage.service.token({ user: 'audrey', tenants: ['t1'], roles: ['auditor'] });
      const headers = { authorization: `Bearer ${token}` };
      const before = await stage.service.store.lastPosition();
      const gone = new AbortController();
      const call = fetch(`${stage.service.url}${AUDIT}/trust.json`, { headers, signal: gone.signal });
      const left = call.catch((error: unknown) => (error as Error).name);
      await until(async () => (await stage.service.store.lastPosition()) !== before);
      gone.abort();
      expect(await left).to.equal('AbortError');
      const waiting = stage.auditor('GET', `${AUDIT}/trust.json`);
      const between = await stage.service.store.lastPosition();
      await until(async () => (await stage.service.store.lastPosition()) !== between);
      stopped.abort();
      const reply = await waiting;
      expect([reply.status, reply.json['code']]).to.deep.equal([503, 'SHUTTING_DOWN']);
      expect(stage.service.logger.lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
    } finally {
      await stage.service.close();
    }
  });
});
