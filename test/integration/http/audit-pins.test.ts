import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { verifyBundle } from '../../../src/app/audit/bundle/verify.ts';
import type { Trust } from '../../../src/app/audit/merkle/key-chain.ts';
import { openBundle } from '../../../src/cli/audit/bundle-source.ts';
import { AUDIT, startAuditStage } from '../../support/audit-callers.ts';

describe('an export of the service', () => {
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
});
