import { expect } from 'chai';
import { verifyStoppedStore } from '../../src/composition/stopped-store.ts';
import { ledgerctlOn } from '../support/e2e-cli.ts';
import { AS_DEPLOYED, CLUSTERS, createStack, until, type Stack } from '../support/e2e-stack.ts';

/** Heads are 10 s apart while the service runs: what happened since the last one is signed when it stops. */
describe('a service that was stopped in order', function () {
  this.timeout(120_000);
  let stack: Stack;
  before(async () => {
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
  });
  after(() => stack.dispose());

  it('leaves no event behind that no head covers', async () => {
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const order = (id: string): Promise<unknown> =>
      alice.send('POST', CLUSTERS, { id, metadata: { name: id }, spec: { template: { name: 'ocp-small' } } });
    await order('first');
    await until('a head is signed', async () => {
      const { out } = await ledgerctlOn(stack)('audit', 'tree', '--json');
      return (JSON.parse(out) as { signed_size: number }).signed_size > 0;
    });
    await order('last');
    expect(await stack.stop('SIGTERM')).to.equal(0);
    const { ok, leaves, signed, remarks } = await verifyStoppedStore({ dataDir: stack.dataDir });
    expect(leaves).to.be.greaterThan(0);
    expect([ok, signed, remarks]).to.deep.equal([true, leaves, []]);
  });
});
