import { expect } from 'chai';
import { createMetrics } from '../../../src/adapters/metrics/metrics.ts';
import type { SignerStatus } from '../../../src/app/audit/signer.ts';
import { measureDamage, watchfulOf } from '../../../src/composition/auditing.ts';

/** What an instance tells of a log that was changed, whichever instance signs. */
describe('damage that an instance has found itself', () => {
  const gauge = async (state: SignerStatus['state'] | undefined, changed?: string): Promise<string> => {
    const metrics = createMetrics();
    try {
      const auditing = state === undefined ? undefined : { status: () => ({ state, failures: 0 }) };
      measureDamage(metrics, { status: () => changed }, auditing);
      const line = (await metrics.text())
        .split('\n')
        .find((each) => each.startsWith('ledger_audit_tree_mismatch'));
      return line?.split(' ')[1] ?? '';
    } finally {
      metrics.close();
    }
  };

  it('raises the alarm where a read has found it, also on a standby, or without the role', async () => {
    expect(await gauge('standby')).to.equal('0');
    expect(await gauge(undefined)).to.equal('0');
    expect(await gauge('standby', 'the event a@1 is another one')).to.equal('1');
    expect(await gauge(undefined, 'the event a@1 is another one')).to.equal('1');
    expect(await gauge('signing', 'the event a@1 is another one')).to.equal('1');
    expect(await gauge('mismatch')).to.equal('1');
  });

  it('is told to both who watch over it, and stands in the status where the signer has nothing to tell', () => {
    const told: string[] = [];
    let status: SignerStatus = { state: 'standby', failures: 0 };
    let changed: string | undefined;
    const auditing = watchfulOf(
      { status: () => status, suspect: (event) => told.push(`signer ${event}`) },
      { status: () => changed, suspect: (event) => told.push(`instance ${event}`) },
    );
    auditing.suspect('a@1');
    expect(told.toSorted()).to.deep.equal(['instance a@1', 'signer a@1']);
    expect(auditing.status()).to.deep.equal({ state: 'standby', failures: 0 });
    changed = 'the event a@1 is another one';
    expect(auditing.status()).to.deep.equal({ state: 'standby', failures: 0, error: changed });
    status = { state: 'mismatch', failures: 1, error: 'the root is another one' };
    expect(auditing.status()).to.deep.equal(status);
  });
});
