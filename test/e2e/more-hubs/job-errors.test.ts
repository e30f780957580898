import { expect } from 'chai';
import { callerOf } from '../../support/service/caller.ts';
import { ledgerctlOn } from '../../support/service/ledgerctl.ts';
import { CLUSTERS, createStack, until, untilCluster, type Stack } from '../../support/service/stack.ts';

const WORDS = 'simulated: no hosts on aap.internal';

/** What a failed job said is the provider's to know, unless the provider says otherwise. */
describe('the error text of a job', function () {
  this.timeout(60_000);
  let stack: Stack;

  before(async () => {
    stack = await createStack('sqlite');
    await stack.start();
  });
  after(() => stack.dispose());

  /** An order whose first job fails, as its tenant sees it then. */
  const failed = async (name: string): Promise<{ id: string; seen: string; told: string | undefined }> => {
    const call = await callerOf(stack, { tenant: 'acme', user: 'alice' });
    const simulation = `factor=0.05,failInstall=all,failText=${WORDS},retry=1h`;
    const posted = await call('POST', CLUSTERS, {
      body: {
        metadata: { name, annotations: { simulation } },
        spec: { template: { id: 'osac.templates.ocp_ci_small' } },
      },
      headers: { 'x-request-id': `request-of-${name}` },
    });
    expect(posted.status, posted.text).to.equal(200);
    const id = String(posted.json()['id']);
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    const cluster = await untilCluster(alice, id, (c) => c.status?.state === 'CLUSTER_STATE_FAILED');
    const { metadata: _metadata, ...shown } = cluster;
    let timeline = '';
    await until('the timeline tells of it', async () =>
      (timeline = await alice.text(`${CLUSTERS}/${id}/timeline`)).includes('ClusterFailed'),
    );
    const condition = cluster.status?.conditions?.find(
      ({ type }) => type === 'CLUSTER_CONDITION_TYPE_FAILED',
    );
    const asOrdered = timeline.replaceAll(simulation, '');
    return { id, seen: JSON.stringify(shown) + asOrdered, told: condition?.message };
  };

  it('is told to the operator, and to the tenant that the automation failed, with the correlation id', async () => {
    const { id, seen, told } = await failed('kept');
    expect(told).to.equal("the provider's automation failed (correlation id request-of-kept)");
    expect(seen).to.include('correlation id request-of-kept').and.to.not.include('aap.internal');
    const { out } = await ledgerctlOn(stack)('orders', 'show', id);
    expect(out).to.match(new RegExp(`^The hub said: job \\d+ ended as Failed: .*${WORDS}$`, 'm'));
  });

  it('is told to the tenant, too, where LEDGER_TENANTS_SEE_JOB_ERRORS says so', async () => {
    await stack.stop();
    await stack.start({ LEDGER_TENANTS_SEE_JOB_ERRORS: 'true' });
    const { seen, told } = await failed('shown');
    expect(told).to.match(
      /^the provider's automation failed: job \d+ ended as Failed: .*aap\.internal \(correlation id request-of-shown\)$/,
    );
    expect(seen.split('aap.internal').length, 'in conditions and timeline').to.be.greaterThan(2);
  });
});
