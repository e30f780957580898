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
});
