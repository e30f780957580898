import { expect } from 'chai';
import { CLUSTER_ORDER, clusterNamespace, HOSTED_CLUSTER } from '../../../src/domain/clusters/hub-objects.ts';
import { kubeClient } from '../../support/kube-apiserver/client.ts';
import { rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { failure } from './contract-kit.ts';
import { by, kubernetesStage, manifestOf, NS, placeOf } from './kubernetes-stage.ts';

describe('the controller’s part on a Kubernetes hub', function () {
  this.timeout(20_000);
  const stage = kubernetesStage();
  const { open, audited } = stage;

  const place = placeOf('order-a');
  const own = clusterNamespace(place);
  const STATUS = {
    phase: 'Progressing',
    conditions: [{ type: 'Accepted', status: 'True', reason: 'Initialized' }],
    desiredConfigVersion: '0123456789abcdef',
  } as const;
  let hub: ReturnType<typeof open>['hub'];
  /** Of this kind a test itself has something refused. */
  let planted: string | undefined;
  beforeEach(async () => {
    planted = undefined;
    for (const object of rbacOf('controller-ledger', NS)) stage.server.seed(object);
    ({ hub } = open());
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
  });
  afterEach('needed no right that controller-ledger.yaml does not grant', () => {
    const refused = audited(':hub-access').filter(
      ({ code, resource }) => code === 403 && resource !== planted,
    );
    expect(refused).to.deep.equal([]);
  });

  it('makes what a cluster needs, repeats nothing, and uses nothing that is not the order’s', async () => {
    const first = await hub.controller.prepare(CLUSTER_ORDER, place, by());
    expect(first.created).to.have.length(5);
    expect(await hub.controller.prepare(CLUSTER_ORDER, place, by())).to.deep.equal({ created: [] });
    expect(stage.server.find('rolebindings', own, 'hub-access')?.['roleRef']).to.deep.include({
      name: `${NS}-hub-access-hosted-clusters`,
    });
    stage.server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: `${NS}-order-b` } });
    await hub.create(CLUSTER_ORDER, manifestOf('order-b'), by());
    const refused = await failure(hub.controller.prepare(CLUSTER_ORDER, placeOf('order-b'), by()));
    expect([refused.kind, refused.message]).to.deep.equal([
      'already-exists',
      `namespace ${NS}-order-b belongs to another owner: it has no label osac.openshift.io/clusterorder=order-b`,
    ]);
  });

  it('writes status only when it differs, and keeps conditions and finalizers of others', async () => {
    await hub.controller.prepare(CLUSTER_ORDER, place, by());
    const at = '2026-01-01T00:00:00Z';
    const foreign = {
      type: 'ClusterStorageReady',
      status: 'True',
      reason: 'Ok',
      message: '',
      lastTransitionTime: at,
    };
    const order = stage.server.find('clusterorders', NS, 'order-a');
    stage.server.seed({
      ...(order as unknown as Parameters<typeof stage.server.seed>[0]),
      metadata: {
        ...order?.metadata,
        finalizers: ['osac.openshift.io/finalizer', 'osac.openshift.io/infrastructure'],
      },
      status: { conditions: [foreign] },
    } as unknown as Parameters<typeof stage.server.seed>[0]);
    await hub.controller.writeStatus(CLUSTER_ORDER, place, STATUS, by());
    const before = stage.server.version();
    await hub.controller.writeStatus(CLUSTER_ORDER, place, STATUS, by());
    expect(stage.server.version()).to.equal(before);
    const seen = await hub.get(CLUSTER_ORDER, place, by());
    expect(seen?.conditions.map(({ type }) => type)).to.have.members(['ClusterStorageReady', 'Accepted']);
    expect(seen?.clusterReference).to.deep.equal({ namespace: own, hostedClusterName: 'order-a' });
    expect(seen?.finalizers).to.have.length(2);
  });

  it('lets an order go once its HostedCluster and namespace are gone, and never a living one', async () => {
    await hub.controller.prepare(CLUSTER_ORDER, place, by());
    expect((await failure(hub.controller.release(CLUSTER_ORDER, place, by()))).kind).to.equal('conflict');
    stage.server.seed({
      apiVersion: 'hypershift.openshift.io/v1beta1',
      kind: 'HostedCluster',
      metadata: { name: 'order-a', namespace: own },
      spec: {},
    });
    await hub.delete(CLUSTER_ORDER, place, by());
    expect(await hub.controller.release(CLUSTER_ORDER, place, by())).to.deep.equal({
      released: false,
      waitingFor: [`HostedCluster ${own}/order-a`],
    });
    expect(stage.server.find('namespaces', '', own)?.metadata.deletionTimestamp).to.equal(undefined);
    const admin = kubeClient({ url: stage.server.url, ca: stage.server.ca, token: stage.server.adminToken });
    await admin.delete(`/apis/hypershift.openshift.io/v1beta1/namespaces/${own}/hostedclusters/order-a`);
    admin.close();
    const asked = await hub.controller.release(CLUSTER_ORDER, place, by());
    expect([asked.released, asked.waitingFor[0]]).to.deep.equal([false, `namespace ${own}`]);
    await stage.server.settled();
    expect(await hub.controller.release(CLUSTER_ORDER, place, by())).to.deep.equal({
      released: true,
      waitingFor: [],
    });
    expect(await hub.get(CLUSTER_ORDER, place, by())).to.equal(undefined);
    expect(await hub.controller.release(CLUSTER_ORDER, place, by())).to.deep.equal({
      released: true,
      waitingFor: [],
    });
  });

  it('lets an order go on a hub that has no HostedClusters, and not where it may not look for them', async () => {
    await hub.controller.prepare(CLUSTER_ORDER, place, by());
    await hub.delete(CLUSTER_ORDER, place, by());
    planted = 'hostedclusters';
    stage.server.faults.next({ resource: planted }, { kind: 'answer', code: 403 });
    expect((await failure(hub.controller.release(CLUSTER_ORDER, place, by()))).kind).to.equal('unauthorized');
    expect(stage.server.find('namespaces', '', own)?.metadata.deletionTimestamp).to.equal(undefined);
    const admin = kubeClient({ url: stage.server.url, ca: stage.server.ca, token: stage.server.adminToken });
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await admin.delete(`${crds}/hostedclusters.hypershift.openshift.io`);
    admin.close();
    await stage.server.settled();
    const hosted = { namespace: own, name: 'order-a' };
    expect((await failure(hub.get(HOSTED_CLUSTER, hosted, by()))).kind).to.equal('not-ready');
    expect((await hub.controller.release(CLUSTER_ORDER, place, by())).waitingFor[0]).to.equal(
      `namespace ${own}`,
    );
    await stage.server.settled();
    expect(await hub.controller.release(CLUSTER_ORDER, place, by())).to.deep.equal({
      released: true,
      waitingFor: [],
    });
  });
});
