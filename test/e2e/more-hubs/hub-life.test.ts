import { expect } from 'chai';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { DECOMMISSION_ANNOTATION } from '../../../src/domain/hubs/hub.resource.ts';
import {
  CLUSTERS,
  PRIVATE,
  createStack,
  isReady,
  refusal,
  until,
  untilCluster,
  untilGone,
  type ClusterBody,
  type Stack,
} from '../../support/service/stack.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { hubAccessOf, rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { startQuickOperator } from '../../support/hubs/quick-operator.ts';

const NS = 'osac-hub';
const HUBS = '/api/ledger/v1/hubs';
type Condition = {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly last_transition_time?: string;
};
type HubBody = { readonly status?: { readonly conditions?: readonly Condition[] } };
type Check = { readonly ok: boolean; readonly problems: readonly { readonly code: string }[] };

describe('the life of a Kubernetes hub, over HTTP', function () {
  this.timeout(180_000);
  let stack: Stack;
  let alice: ApiClient;
  let admin: ApiClient;
  let server: KubeApiServer;
  let stopOperator: () => Promise<void>;
  let token: string;

  before(async () => {
    server = await startKubeApiServer({ namespaces: [NS], objects: rbacOf('hub-access', NS) });
    stopOperator = startQuickOperator({ url: server.url, ca: server.ca, token: server.adminToken }, NS);
    stack = await createStack('sqlite');
    await stack.start();
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    admin = await stack.client({ admin: true, user: 'root' });
    token = server.tokenFor(hubAccessOf(NS));
  });
  after(async () => {
    await stack.dispose();
    await stopOperator();
    await server.close();
  });

  const kubeconfigWith = (given: string): string =>
    Buffer.from(server.kubeconfig({ token: given })).toString('base64');
  const conditionIs = (type: string, status: 'TRUE' | 'FALSE', reason?: string): Promise<void> =>
    until(`${type} is ${status}`, async () => {
      const { status: shown } = await admin.get<HubBody>(`${PRIVATE}/hubs/munich`);
      const condition = shown?.conditions?.find((each) => each.type === type);
      const asked = condition?.status === `CONDITION_STATUS_${status}`;
      return asked && (reason === undefined || condition.reason === reason);
    });
  const order = (name: string): Promise<ClusterBody> =>
    alice.send<ClusterBody>('POST', CLUSTERS, {
      metadata: { name },
      spec: { template: { id: 'osac.templates.ocp_small' } },
    });
  const patchHub = (body: object): Promise<unknown> => admin.send('PATCH', `${PRIVATE}/hubs/munich`, body);
  let first: ClusterBody;

  it('is checked before it is registered, and looked at at once when it is', async () => {
    const wrong = { namespace: NS, kubeconfig: kubeconfigWith('a-token-that-nobody-gave') };
    const refused = await admin.send<Check>('POST', `${HUBS}/check`, wrong);
    expect(refused.problems.map(({ code }) => code)).to.deep.equal(['CredentialsRefused']);
    const right = { namespace: NS, kubeconfig: kubeconfigWith(token) };
    expect(await admin.send<Check>('POST', `${HUBS}/check`, right)).to.deep.include({ ok: true });
    const elsewhere = await admin.send<Check>('POST', `${HUBS}/check`, { ...right, namespace: 'nowhere' });
    expect(elsewhere.ok).to.equal(false);
    await admin.send('POST', `${PRIVATE}/hubs`, { id: 'munich', spec: right });
    await conditionIs('Ready', 'TRUE');
    first = await order('first');
    await untilCluster(alice, first.id, isReady);
  });

  it('whose credentials are refused says so, parks what is to be done there, and goes on with new ones', async () => {
    server.revoke(token);
    await alice.send('PATCH', `${CLUSTERS}/${first.id}`, { spec: { node_sets: { workers: { size: 3 } } } });
    await conditionIs('CredentialsAccepted', 'FALSE', 'CredentialsRefused');
    await conditionIs('Ready', 'FALSE');
    const waiting = await order('waits-for-the-hub');
    token = server.tokenFor(hubAccessOf(NS));
    const rotated = { kubeconfig: kubeconfigWith(token) };
    expect(await admin.send<Check>('POST', `${HUBS}/munich/check`, rotated)).to.deep.include({ ok: true });
    await patchHub({ spec: rotated });
    await conditionIs('Ready', 'TRUE');
    await untilCluster(alice, first.id, (c) => isReady(c) && c.spec.node_sets['workers']?.size === 3);
    await untilCluster(alice, waiting.id, isReady);
  });

  it('whose API server starts again and refuses all for a moment goes on within seconds, and lacks nothing', async () => {
    const complete = async (): Promise<Condition | undefined> => {
      const { status: shown } = await admin.get<HubBody>(`${PRIVATE}/hubs/munich`);
      return shown?.conditions?.find(({ type }) => type === 'Compatible');
    };
    const before = await complete();
    expect(before?.status).to.equal('CONDITION_STATUS_TRUE');
    const { name: user } = hubAccessOf(NS);
    const looks = server.faults.always({ user, path: '/version' }, { kind: 'answer', code: 403 });
    server.faults.always({ user }, { kind: 'answer', code: 403 });
    await alice.send('PATCH', `${CLUSTERS}/${first.id}`, { spec: { node_sets: { workers: { size: 4 } } } });
    await until('the hub was looked at', () => Promise.resolve(looks.hits() > 0));
    server.faults.clear();
    const from = Date.now();
    await untilCluster(alice, first.id, (c) => isReady(c) && c.spec.node_sets['workers']?.size === 4);
    expect(Date.now() - from).to.be.lessThan(25_000);
    expect(await complete()).to.deep.equal(before);
  });

  it('that is cordoned takes no new orders until it is opened again', async () => {
    await patchHub({ spec: { scheduling: 'cordoned' } });
    const held = await order('held');
    type Order = { readonly waiting?: { readonly decision: object } };
    await until('it waits', async () => {
      const { waiting } = await admin.get<Order>(`/api/ledger/v1/orders/${held.id}`);
      return JSON.stringify(waiting?.decision ?? {}).includes('hub is cordoned');
    });
    await patchHub({ spec: { scheduling: 'open' } });
    await untilCluster(alice, held.id, isReady);
  });

  it('that has orders goes only when it is given up, and then with the last of them', async () => {
    const refused = await refusal(admin.send('DELETE', `${PRIVATE}/hubs/munich`));
    expect(refused.message).to.match(/3 orders have a place on it/);
    await patchHub({ metadata: { annotations: { [DECOMMISSION_ANNOTATION]: 'force' } } });
    await admin.send('DELETE', `${PRIVATE}/hubs/munich`);
    await conditionIs('Leaving', 'TRUE');
    const { items } = await admin.get<{ items: { id: string }[] }>(`${HUBS}/munich/orders`);
    expect(items).to.have.lengthOf(3);
    for (const { id } of items) await alice.send('DELETE', `${CLUSTERS}/${id}`);
    for (const { id } of items) await untilGone(alice, id);
    await until('the hub is gone', async () =>
      admin.get(`${PRIVATE}/hubs/munich`).then(
        () => false,
        (error: unknown) => (error as { status?: number }).status === 404,
      ),
    );
    expect(server.list('clusterorders', NS)).to.deep.equal([]);
  });
});
