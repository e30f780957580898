import { expect } from 'chai';
import { digestOfLook } from '../../../src/app/hubs/management-cluster.ts';
import {
  CLUSTER_ORDER,
  CLUSTER_ORDER_LABEL,
  clusterNamespace,
  HOSTED_CLUSTER,
} from '../../../src/domain/clusters/hub-objects.ts';
import { RESOURCE_CLASS_LABEL } from '../../../src/domain/hubs/hub-objects.ts';
import { rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { by, kubernetesStage, manifestOf, NS, placeOf } from './kubernetes-stage.ts';

const NAMES = ['order-a', 'order-b'];
const lookAt = (name: string) => {
  const place = placeOf(name);
  return { place, beside: { namespace: clusterNamespace(place), name } };
};
const looks = [...NAMES, 'nobody'].map(lookAt);

describe('many orders of a Kubernetes hub, compared at once', function () {
  this.timeout(20_000);
  const stage = kubernetesStage();

  const seedBeside = (name: string, replicas: number): void => {
    const { namespace } = lookAt(name).beside;
    const labels = { [CLUSTER_ORDER_LABEL]: name };
    const of = (kind: string, metadata: object, more: object) =>
      stage.server.seed({
        apiVersion: 'hypershift.openshift.io/v1beta1',
        kind,
        metadata: { name, namespace, labels, ...metadata },
        ...more,
      });
    stage.server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    of('HostedCluster', {}, { spec: { dns: { baseDomain: 'a.example' } } });
    const pool = { labels: { ...labels, [RESOURCE_CLASS_LABEL]: 'fc430' } };
    of('NodePool', pool, { spec: { replicas: 2 }, status: { replicas } });
  };

  it('given no right to list HostedClusters, then they have to be read one by one', async () => {
    const { hub } = stage.open();
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    expect(await hub.digests?.(CLUSTER_ORDER, looks, by())).to.equal(undefined);
  });

  it('given that right, then each with its HostedCluster and node pools is told in three lists', async () => {
    for (const object of rbacOf('controller-ledger', NS)) stage.server.seed(object);
    const { hub } = stage.open();
    for (const name of NAMES) {
      await hub.create(CLUSTER_ORDER, manifestOf(name), by());
      seedBeside(name, 2);
    }
    const read = async (name: string) => {
      const { place, beside } = lookAt(name);
      const [order, hosted] = [
        await hub.get(CLUSTER_ORDER, place, by()),
        await hub.get(HOSTED_CLUSTER, beside, by()),
      ];
      expect(hosted?.nodePools).to.have.length(1);
      return order === undefined ? undefined : digestOfLook(order, hosted);
    };
    const before = stage.audited('hub-access').filter(({ verb }) => verb === 'list').length;
    const told = await hub.digests?.(CLUSTER_ORDER, looks, by());
    expect(stage.audited('hub-access').filter(({ verb }) => verb === 'list').length - before).to.equal(3);
    expect(told).to.deep.equal([await read('order-a'), await read('order-b'), undefined]);
    seedBeside('order-b', 1);
    const after = await hub.digests?.(CLUSTER_ORDER, looks, by());
    expect(after?.[0]).to.equal(told?.[0]);
    expect(after?.[1]).to.not.equal(told?.[1]);
  });
});
