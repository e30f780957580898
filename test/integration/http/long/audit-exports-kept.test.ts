import { expect } from 'chai';
import { AUDIT, startAuditStage, until } from '../../../support/audit/stage.ts';
import { textAt, type Caller } from '../../../support/http/service.ts';

describe('audit exports of a tenant that are kept', function () {
  this.timeout(60_000);

  it('are so many: the oldest goes first, and those of others stay', async () => {
    const stage = await startAuditStage({ audit: { exportsKept: 2 } });
    const { alice, auditor, admin, callerFor, order, exported, settled } = stage;
    try {
      await order(alice, 'one');
      const bob = await callerFor({ user: 'bob', tenants: ['t2'] });
      await order(bob, 'two');
      await settled();
      const theirs = await callerFor({ user: 'tara', tenants: ['t2'], roles: ['auditor'] });
      const made: [caller: Caller, id: string][] = [];
      for (const caller of [theirs, auditor, admin, auditor, auditor])
        made.push([caller, textAt(await exported(caller, {}), 'id')]);
      const states = async (): Promise<string[]> => {
        const found: string[] = [];
        for (const [caller, id] of made)
          found.push(textAt((await caller('GET', `${AUDIT}/exports/${id}`)).json, 'state'));
        return found;
      };
      await until(async () => (await states())[1] === 'discarded');
      expect(await states()).to.deep.equal(['complete', 'discarded', 'complete', 'complete', 'complete']);
      const [, [, id] = [auditor, '']] = made;
      expect((await auditor('GET', `${AUDIT}/exports/${id}`)).text).to.include(
        'the newest 2 of a tenant are kept',
      );
      expect((await auditor('GET', `${AUDIT}/exports/${id}/file`)).status).to.be.within(400, 410);
    } finally {
      await stage.service.close();
    }
  });
});
