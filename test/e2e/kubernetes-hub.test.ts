import { expect } from 'chai';
import type { ApiClient } from '../../src/cli/api-client.ts';
import {
  CLUSTERS,
  PRIVATE,
  createStack,
  isReady,
  until,
  untilCluster,
  untilGone,
  type ClusterBody,
  type Stack,
} from '../support/e2e-stack.ts';
import { startKubeApiServer, type KubeApiServer } from '../support/kube-apiserver/start.ts';
import { hubAccessOf, rbacOf } from '../support/kubernetes-hub.ts';
import { startQuickOperator } from '../support/quick-operator.ts';

const NS = 'osac-hub';

describe('a cluster order on a Kubernetes hub, over HTTP', function () {
  this.timeout(60_000);
  let stack: Stack;
  let alice: ApiClient;
  let admin: ApiClient;
  let server: KubeApiServer;
  let stopOperator: () => Promise<void>;

  before(async () => {
    server = await startKubeApiServer({ namespaces: [NS], objects: rbacOf('hub-access', NS) });
    stopOperator = startQuickOperator({ url: server.url, ca: server.ca, token: server.adminToken }, NS);
    stack = await createStack('sqlite');
    await stack.start();
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    admin = await stack.client({ admin: true, user: 'root' });
  });
  after(async () => {
    await stack.dispose();
    await stopOperator();
    await server.close();
  });

  it('becomes READY, is scaled, shows its credentials, and is gone after its deletion', async () => {
    const kubeconfig = server.kubeconfig({ token: server.tokenFor(hubAccessOf(NS)) });
    await admin.send('POST', `${PRIVATE}/hubs`, {
      id: 'munich',
      spec: { namespace: NS, kubeconfig: Buffer.from(kubeconfig).toString('base64') },
    });
    type HubBody = { status?: { conditions?: readonly { type: string; status: string }[] } };
    // Nothing is placed on a hub that was not looked at; until then a simulated one is as good as any.
    await until('the hub was looked at', async () => {
      const hub = await admin.get<HubBody>(`${PRIVATE}/hubs/munich`);
      return (
        hub.status?.conditions?.some(
          (one) => one.type === 'Ready' && one.status === 'CONDITION_STATUS_TRUE',
        ) === true
      );
    });
    const ordered = await alice.send<ClusterBody>('POST', CLUSTERS, {
      metadata: { name: 'on-kubernetes' },
      spec: { template: { id: 'osac.templates.ocp_small' } },
    });
    await untilCluster(alice, ordered.id, isReady);
    const [order] = server.list('clusterorders', NS);
    expect(order?.metadata.labels).to.deep.equal({ 'osac.openshift.io/clusterorder-uuid': ordered.id });
    expect(await alice.text(`${CLUSTERS}/${ordered.id}/kubeconfig`)).to.include('kind: Config');
    expect(await alice.text(`${CLUSTERS}/${ordered.id}/password`)).to.equal('four-words-and-more');

    await alice.send('PATCH', `${CLUSTERS}/${ordered.id}`, { spec: { node_sets: { workers: { size: 4 } } } });
    await untilCluster(alice, ordered.id, (c) => isReady(c) && c.spec.node_sets['workers']?.size === 4);
    const spec = server.list('clusterorders', NS)[0]?.['spec'] as { nodeRequests: object[] };
    expect(spec.nodeRequests).to.deep.equal([{ resourceClass: 'fc430', numberOfNodes: 4 }]);

    await alice.send('DELETE', `${CLUSTERS}/${ordered.id}`);
    await untilGone(alice, ordered.id);
    expect(server.list('clusterorders', NS)).to.deep.equal([]);
    const calls = server.audit().filter(({ user }) => user.includes(':hub-access'));
    expect(calls.filter(({ code }) => code === 403)).to.deep.equal([]);
  });
});
