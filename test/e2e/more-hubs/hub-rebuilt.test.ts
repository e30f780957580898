import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { CLUSTER_ANNOTATION } from '../../../src/domain/hubs/identity.ts';
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
const HUB = 'munich';
const HUBS = '/api/ledger/v1/hubs';
const TOKEN = 'a-token-that-both-clusters-take';
type Condition = { readonly type: string; readonly status: string };
type HubBody = { readonly status?: { readonly conditions?: readonly Condition[] } };
type Check = { readonly problems: readonly { readonly code: string }[]; readonly cluster?: string };

/** Somebody installs the hub anew under its address: its orders are not there, and that says nothing about them. */
describe('a Kubernetes hub that turns out to be another cluster, over HTTP', function () {
  this.timeout(90_000);
  let stack: Stack;
  let alice: ApiClient;
  let admin: ApiClient;
  let ours: KubeApiServer;
  let other: KubeApiServer;
  let stopOperator: () => Promise<void>;
  let kept: ClusterBody;
  let leaving: ClusterBody;

  const start = (port = 0): Promise<KubeApiServer> =>
    startKubeApiServer({
      port,
      namespaces: [NS],
      objects: rbacOf('hub-access', NS),
      tokens: { [TOKEN]: hubAccessOf(NS) },
    });
  const kubeconfigOf = (server: KubeApiServer): string => {
    const config = parse(server.kubeconfig({ token: TOKEN })) as { clusters: { cluster: object }[] };
    for (const each of config.clusters)
      each.cluster = { server: server.url, 'insecure-skip-tls-verify': true };
    return Buffer.from(stringify(config)).toString('base64');
  };
  const order = (name: string): Promise<ClusterBody> =>
    alice.send<ClusterBody>('POST', CLUSTERS, {
      metadata: { name },
      spec: { template: { id: 'osac.templates.ocp_small' } },
    });
  const patchHub = (body: object): Promise<unknown> => admin.send('PATCH', `${PRIVATE}/hubs/${HUB}`, body);
  const sameClusterIs = (status: 'TRUE' | 'FALSE'): Promise<void> =>
    until(`SameCluster is ${status}`, async () => {
      const hub = await admin.get<HubBody>(`${PRIVATE}/hubs/${HUB}`);
      const known = hub.status?.conditions?.find(({ type }) => type === 'SameCluster');
      return known?.status === `CONDITION_STATUS_${status}`;
    });

  before(async () => {
    ours = await start();
    other = ours;
    stopOperator = startQuickOperator({ url: ours.url, ca: ours.ca, token: ours.adminToken }, NS);
    stack = await createStack('sqlite');
    await stack.start();
    alice = await stack.client({ tenant: 'acme', user: 'alice' });
    admin = await stack.client({ admin: true, user: 'root' });
    const spec = { namespace: NS, kubeconfig: kubeconfigOf(ours) };
    await admin.send('POST', `${PRIVATE}/hubs`, { id: HUB, spec });
    await sameClusterIs('TRUE');
    kept = await order('kept');
    leaving = await order('leaving');
    for (const { id } of [kept, leaving]) await untilCluster(alice, id, isReady);
  });
  after(async () => {
    await stack.dispose();
    await stopOperator();
    await other.close();
  });

  it('is given no credentials of another cluster', async () => {
    const elsewhere = await start();
    const refused = await refusal(patchHub({ spec: { kubeconfig: kubeconfigOf(elsewhere) } }));
    expect(refused.message).to.include('another cluster answers');
    await elsewhere.close();
    expect((await admin.send<Check>('POST', `${HUBS}/${HUB}/check`, {})).problems).to.deep.equal([]);
  });

  it('loses no order when the other cluster answers at its address, and is sent none', async () => {
    const port = Number(new URL(ours.url).port);
    await stopOperator();
    await ours.close();
    other = await start(port);
    stopOperator = startQuickOperator({ url: other.url, ca: other.ca, token: other.adminToken }, NS);
    // The watch has listed what is there: nothing of ours.
    await until('the watch was there', async () =>
      other.audit().some(({ path, user }) => path.endsWith('/kube-system') && user.includes(':hub-access')),
    );
    await alice.send('DELETE', `${CLUSTERS}/${leaving.id}`);
    await sameClusterIs('FALSE');
    await until('its lane is parked', async () => {
      const { lane } = await admin.get<{ lane?: { breaker: string } }>(`${HUBS}/${HUB}`);
      return lane?.breaker === 'open';
    });
    const check = await admin.send<Check>('POST', `${HUBS}/${HUB}/check`, {});
    expect(check.problems.map(({ code }) => code)).to.deep.equal(['DifferentCluster']);
    const shown = await alice.get<ClusterBody>(`${CLUSTERS}/${leaving.id}`);
    expect(shown.status?.state).to.equal('CLUSTER_STATE_DELETING');
    expect(isReady(await alice.get<ClusterBody>(`${CLUSTERS}/${kept.id}`))).to.equal(true);
    expect(other.list('clusterorders', NS)).to.deep.equal([]);
  });

  it('that was rebuilt is accepted by name: what was deleted is gone, what is lost is there to be seen', async () => {
    const { cluster = '' } = await admin.send<Check>('POST', `${HUBS}/${HUB}/check`, {});
    await patchHub({ metadata: { annotations: { [CLUSTER_ANNOTATION]: cluster } } });
    await sameClusterIs('TRUE');
    await untilGone(alice, leaving.id);
    await untilCluster(alice, kept.id, ({ status }) => status?.state === 'CLUSTER_STATE_FAILED');
    await until('only what is lost has a place there', async () => {
      const { items } = await admin.get<{ items: { id: string }[] }>(`${HUBS}/${HUB}/orders`);
      return items.length === 1 && items[0]?.id === kept.id;
    });
    expect(other.list('clusterorders', NS), 'nothing is made a second time by itself').to.deep.equal([]);
  });
});
