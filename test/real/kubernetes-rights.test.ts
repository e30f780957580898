import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import { type CallOptions, HubError } from '../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER, clusterNamespace, HOSTED_CLUSTER } from '../../src/domain/clusters/hub-objects.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { objectAt, stringAt } from '../../src/domain/json-tools.ts';
import { untilHolds } from '../integration/management-cluster/contract-kit.ts';
import { by as call, manifestOf, NS, placeOf } from '../integration/management-cluster/kubernetes-stage.ts';
import { loadDefinitions } from '../support/kube-apiserver/start.ts';
import { kubeClient, type KubeClient } from '../support/kube-apiserver/client.ts';
import { kubernetesHub, rbacOf, type KubernetesFixture } from '../support/hubs/kubernetes-hub.ts';
import { notRunHere } from '../support/not-run-here.ts';

/** The wider roles of ops/rbac on a real kube-apiserver, whose rules about granting rights a stand-in may get wrong. */
const binary = kubeBinary((line) => console.log(`  ${line}`));
const PATIENCE_MS = 60_000;
const by = (): CallOptions => call({ deadlineMs: 20_000 });

const COLLECTIONS: { readonly [kind: string]: string } = {
  ServiceAccount: `/api/v1/namespaces/${NS}/serviceaccounts`,
  Secret: `/api/v1/namespaces/${NS}/secrets`,
  Role: `/apis/rbac.authorization.k8s.io/v1/namespaces/${NS}/roles`,
  RoleBinding: `/apis/rbac.authorization.k8s.io/v1/namespaces/${NS}/rolebindings`,
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  CustomResourceDefinition: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
};

describe('hubs of other settings on a real kube-apiserver', function () {
  this.timeout(120_000);
  let servers: KubeServers;
  let admin: KubeClient;
  let fixture: KubernetesFixture;
  let kubeconfig: string;

  const post = async (object: JsonObject): Promise<void> => {
    const path = COLLECTIONS[stringAt(object, 'kind')] ?? '';
    const { code, text } = await admin.post(path, object);
    expect(code, text).to.equal(201);
  };

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    servers = await startKubeServers(binary.path);
    admin = kubeClient({ url: servers.url, ca: servers.ca, token: servers.adminToken });
    for (const definition of loadDefinitions()) await post(definition);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NS } };
    await admin.post('/api/v1/namespaces', namespace);
    for (const object of rbacOf('hub-access', NS)) await post(object);
    const token = await untilHolds(
      async () => (await admin.get(`/api/v1/namespaces/${NS}/secrets/hub-access`)).body,
      (secret) => stringAt(objectAt(secret, 'data'), 'token') !== '',
      PATIENCE_MS,
    );
    const text = Buffer.from(stringAt(objectAt(token, 'data'), 'token'), 'base64').toString();
    kubeconfig = servers.kubeconfig(text);
    fixture = kubernetesHub({
      kubeconfigs: { '1': kubeconfig },
      namespace: NS,
      connection: { controller: 'ledger', tenantNamespaces: true },
    });
  });
  after(async () => {
    await fixture?.clusters.close();
    admin?.close();
    await servers?.close();
  });

  it('with the stock rights the cluster says which one it is; of another one no absence is believed', async () => {
    const { body } = await admin.get('/api/v1/namespaces/kube-system');
    const uid = stringAt(objectAt(body, 'metadata'), 'uid');
    expect(uid).to.not.equal('');
    const report = async (cluster: string) => {
      const { clusters, hub } = kubernetesHub({
        kubeconfigs: { '1': kubeconfig },
        namespace: NS,
        connection: { cluster },
      });
      try {
        const { problems, cluster: seen } = await hub.check(by());
        const look = await hub.get(CLUSTER_ORDER, placeOf('nobody'), by()).catch((error: unknown) => error);
        return [seen, problems.map(({ code }) => code), look instanceof HubError ? look.kind : look];
      } finally {
        await clusters.close();
      }
    };
    expect(await report(uid)).to.deep.equal([uid, [], undefined]);
    expect(await report('another')).to.deep.equal([uid, ['DifferentCluster'], 'other-cluster']);
  });

  it('the recommended rights beside an operator show node pools and hosts', async () => {
    const { clusters, hub } = kubernetesHub({ kubeconfigs: { '1': kubeconfig }, namespace: NS });
    try {
      const before = await hub.check(by());
      expect(before).to.include({ canReadNodePools: false, canReadAgents: false });
      for (const object of rbacOf('node-counts', NS)) await post(object);
      const after = await untilHolds(
        () => hub.check(by()),
        ({ canReadNodePools }) => canReadNodePools === true,
        PATIENCE_MS,
      );
      expect(after).to.deep.include({ problems: [], canReadAgents: true });
      for (const object of rbacOf('node-counts', NS)) {
        const collection = COLLECTIONS[stringAt(object, 'kind')] ?? '';
        await admin.delete(`${collection}/${stringAt(objectAt(object, 'metadata'), 'name')}`);
      }
      await untilHolds(
        () => hub.check(by()),
        ({ canReadNodePools }) => canReadNodePools === false,
        PATIENCE_MS,
      );
    } finally {
      await clusters.close();
    }
  });

  it('a check names each right that is missing, and nothing once the roles are there', async () => {
    const subjects = (await fixture.hub.check(by())).problems.map(
      ({ code, subject }) => `${code} ${subject}`,
    );
    expect(subjects).to.include.members([
      'RightMissing create clusterorders.osac.openshift.io in every namespace',
      'RightMissing patch clusterorders/status.osac.openshift.io in every namespace',
      'RightMissing create serviceaccounts in every namespace',
      'RightMissing create rolebindings.rbac.authorization.k8s.io in every namespace',
      'RightMissing list nodepools.hypershift.openshift.io in every namespace',
    ]);
    for (const file of ['controller-ledger', 'tenant-namespaces'] as const)
      for (const object of rbacOf(file, NS)) await post(object);
    const report = await untilHolds(
      () => fixture.hub.check(by()),
      ({ problems }) => problems.length === 0,
      PATIENCE_MS,
    );
    expect(report).to.include({ canReadNodePools: true, canReadAgents: true });
  });

  it('the controller’s part: made, repeated without effect, written once, released in the end', async () => {
    const { hub } = fixture;
    const place = placeOf('order-a');
    const own = clusterNamespace(place);
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    expect((await hub.controller.prepare(CLUSTER_ORDER, place, by())).created).to.have.length(5);
    expect(await hub.controller.prepare(CLUSTER_ORDER, place, by())).to.deep.equal({ created: [] });
    const status = {
      phase: 'Progressing',
      conditions: [{ type: 'Accepted', status: 'True' }],
      desiredConfigVersion: '0123456789abcdef',
      jobs: [{ jobId: '1', type: 'provision', state: 'Running', timestamp: '2026-11-21T20:00:00.123Z' }],
    } as const;
    await hub.controller.writeStatus(CLUSTER_ORDER, place, status, by());
    const written = await hub.get(CLUSTER_ORDER, place, by());
    await hub.controller.writeStatus(CLUSTER_ORDER, place, status, by());
    expect((await hub.get(CLUSTER_ORDER, place, by()))?.resourceVersion).to.equal(written?.resourceVersion);
    expect(written?.clusterReference).to.deep.equal({ namespace: own, hostedClusterName: 'order-a' });
    await hub.delete(CLUSTER_ORDER, place, by());
    await untilHolds(
      () => hub.controller.release(CLUSTER_ORDER, place, by()),
      ({ released }) => released,
      PATIENCE_MS,
    );
    expect(await hub.get(CLUSTER_ORDER, place, by())).to.equal(undefined);
    expect((await admin.get(`/api/v1/namespaces/${own}`)).code).to.equal(404);
  });

  it('hosts are counted, and orders in a namespace of a tenant are ours', async () => {
    const { hub } = fixture;
    const tenant = { name: 'osac-acme', tenant: 'acme' };
    expect(await hub.ensureTenantNamespace(tenant, by())).to.deep.equal({ created: true });
    expect(await hub.ensureTenantNamespace(tenant, by())).to.deep.equal({ created: false });
    await hub.create(CLUSTER_ORDER, { ...manifestOf('order-b'), namespace: 'osac-acme' }, by());
    for (const [name, labels] of [
      ['a1', {}],
      ['a2', { 'osac.openshift.io/clusterorder': 'order-b' }],
      ['a3', { 'osac.openshift.io/clusterorder': 'order-of-somebody' }],
    ] as const)
      await admin.post('/apis/agent-install.openshift.io/v1beta1/namespaces/default/agents', {
        apiVersion: 'agent-install.openshift.io/v1beta1',
        kind: 'Agent',
        metadata: { name, labels: { 'osac.openshift.io/resource_class': 'fc430', ...labels } },
        spec: {},
      });
    // A server answers 429 for a while to lists of a kind that is new to it.
    const counted = await untilHolds(
      () => hub.inventory(by()).catch((error: unknown) => (error instanceof HubError ? error.kind : 'fault')),
      (counts) => counts !== 'throttled',
      PATIENCE_MS,
    );
    expect(counted).to.deep.equal({ fc430: { free: 1, ours: 1, foreign: 1 } });
  });

  it('a field that the CRD does not have is named', async () => {
    const path = `${COLLECTIONS['CustomResourceDefinition']}/clusterorders.osac.openshift.io`;
    const { body } = await admin.get(path);
    const old = JSON.parse(JSON.stringify(body), (key: string, value: unknown) =>
      key === 'sshPublicKey' ? undefined : value,
    ) as JsonObject;
    const { code, text } = await admin.put(path, old);
    expect(code, text).to.equal(200);
    const report = await untilHolds(
      () => fixture.hub.check({ ...by(), thorough: true }),
      ({ problems }) => problems.length > 0,
      PATIENCE_MS,
    );
    expect(report.problems.map(({ code: problem, subject }) => `${problem} ${subject}`)).to.deep.equal([
      'CrdMissing clusterorders.osac.openshift.io spec.sshPublicKey',
    ]);
  });

  it('a kind that the hub does not have is told from an object that is not there, and holds back no end', async () => {
    const { hub } = fixture;
    const place = placeOf('order-c');
    const hosted = { namespace: clusterNamespace(place), name: place.name };
    await hub.create(CLUSTER_ORDER, manifestOf('order-c'), by());
    await hub.controller.prepare(CLUSTER_ORDER, place, by());
    expect(await hub.get(HOSTED_CLUSTER, hosted, by())).to.equal(undefined);
    await hub.delete(CLUSTER_ORDER, place, by());
    await admin.delete(`${COLLECTIONS['CustomResourceDefinition']}/hostedclusters.hypershift.openshift.io`);
    await untilHolds(
      () =>
        hub
          .get(HOSTED_CLUSTER, hosted, by())
          .catch((error: unknown) => (error instanceof HubError ? error.kind : 'fault')),
      (kind) => kind === 'not-ready',
      PATIENCE_MS,
    );
    await untilHolds(
      () => hub.controller.release(CLUSTER_ORDER, place, by()),
      ({ released }) => released,
      PATIENCE_MS,
    );
    expect(await hub.get(CLUSTER_ORDER, place, by())).to.equal(undefined);
  });
});
