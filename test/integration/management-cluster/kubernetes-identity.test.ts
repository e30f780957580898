import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import {
  CLUSTER_ORDER,
  HOSTED_CLUSTER,
  type ObservedClusterOrder,
} from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import {
  connectionOf,
  hubAccessOf,
  kubernetesHub,
  rbacOf,
  secretRef,
} from '../../support/hubs/kubernetes-hub.ts';
import { failure, untilHolds } from './contract-kit.ts';
import { by, isApplied, manifestOf, NS, placeOf } from './kubernetes-stage.ts';

const TOKEN = 'a-token-that-both-clusters-take';

/** A hub is a cluster, not an address: of another one no absence is believed, and nothing is done there. */
describe('which cluster a Kubernetes hub is', function () {
  this.timeout(20_000);
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });

  /** With exactly the stock rights (ops/rbac/hub-access.yaml). */
  const start = async (port = 0): Promise<KubeApiServer> => {
    const server = await startKubeApiServer({
      port,
      namespaces: [NS],
      objects: rbacOf('hub-access', NS),
      tokens: { [TOKEN]: hubAccessOf(NS) },
    });
    closers.push(() => server.close());
    return server;
  };
  const uidOf = (server: KubeApiServer): string =>
    server.find('namespaces', '', 'kube-system')?.metadata.uid ?? '';
  /** Takes whoever answers at the address, as one that trusts both clusters' authority does. */
  const kubeconfigOf = (server: KubeApiServer): string => {
    const config = parse(server.kubeconfig({ token: TOKEN })) as { clusters: { cluster: object }[] };
    for (const each of config.clusters)
      each.cluster = { server: server.url, 'insecure-skip-tls-verify': true };
    return stringify(config);
  };
  const open = (kubeconfigs: { readonly [version: string]: string }, cluster?: string) => {
    const fixture = kubernetesHub({
      kubeconfigs,
      namespace: NS,
      connection: cluster === undefined ? {} : { cluster },
      watch: { backoffMs: 10, backoffMaxMs: 50 },
    });
    closers.push(() => fixture.clusters.close());
    return fixture;
  };
  const follow = (hub: ReturnType<typeof open>['hub']) => {
    const abort = new AbortController();
    const seen: HubObjectEvent<ObservedClusterOrder>[] = [];
    const ended = (async () => {
      for await (const event of hub.watch(CLUSTER_ORDER, NS, abort.signal)) seen.push(event);
    })();
    closers.push(async () => {
      abort.abort();
      await ended;
    });
    return seen;
  };
  const until = (holds: () => boolean) =>
    untilHolds(
      () => Promise.resolve(holds()),
      (held) => held,
      5_000,
    );
  const refusedByHub = (server: KubeApiServer) =>
    server.audit().filter(({ code, user }) => code === 403 && user.includes(':hub-access'));

  it('is told by a look with the stock rights, and by nothing where they do not show it', async () => {
    const server = await start();
    const { hub } = open({ '1': kubeconfigOf(server) });
    expect(await hub.identify(by())).to.equal(uidOf(server));
    expect(await hub.check(by())).to.deep.include({ problems: [], cluster: uidOf(server) });
    expect(refusedByHub(server)).to.deep.equal([]);
    server.faults.always({ resource: 'namespaces', name: 'kube-system' }, { kind: 'answer', code: 403 });
    expect(await hub.identify(by())).to.equal(undefined);
    const report = await hub.check(by());
    expect([report.problems, 'cluster' in report]).to.deep.equal([[], false]);
  });

  it('other credentials that lead elsewhere: every call is refused, and nothing is sent but the question', async () => {
    const [ours, other] = [await start(), await start()];
    const kubeconfigs = { '1': kubeconfigOf(ours), '2': kubeconfigOf(other) };
    const { clusters, hub } = open(kubeconfigs, uidOf(ours));
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    const seen = follow(hub);
    await until(() => seen.some(({ type }) => type === 'synced'));
    const before = seen.length;
    clusters.of(connectionOf(NS, { cluster: uidOf(ours), kubeconfig: secretRef('2'), revision: 2 }));
    const calls = [
      () => hub.get(CLUSTER_ORDER, placeOf('order-a'), by()),
      () => hub.find(CLUSTER_ORDER, NS, 'id-of-order-a', by()),
      () => hub.delete(CLUSTER_ORDER, placeOf('order-a'), by()),
      () => hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()),
      () => hub.patch(CLUSTER_ORDER, placeOf('order-a'), { sshPublicKey: 'k' }, by()),
      () => hub.get(HOSTED_CLUSTER, { namespace: `${NS}-order-a`, name: 'order-a' }, by()),
      () => hub.readSecret({ namespace: NS, name: 'a', key: 'b' }, by()),
      () => hub.inventory(by()),
      () => hub.controller.release(CLUSTER_ORDER, placeOf('order-a'), by()),
    ];
    for (const call of calls) {
      const error = await failure(call());
      expect(error.kind).to.equal('other-cluster');
      expect(error.message).to.include(uidOf(ours)).and.include(uidOf(other)).and.not.include(TOKEN);
    }
    const asked = new Set(other.audit().map(({ method, path }) => `${method} ${path}`));
    expect([...asked]).to.deep.equal(['GET /api/v1/namespaces/kube-system']);
    const report = await hub.check(by());
    expect(report.problems.map(({ code, subject }) => `${code} ${subject ?? ''}`)).to.deep.equal([
      `DifferentCluster ${uidOf(other)}`,
    ]);
    expect(seen.slice(before)).to.deep.equal([]);
    // Back again: what was under way goes on, and nothing was lost.
    clusters.of(connectionOf(NS, { cluster: uidOf(ours), kubeconfig: secretRef('1'), revision: 3 }));
    expect((await hub.get(CLUSTER_ORDER, placeOf('order-a'), by()))?.name).to.equal('order-a');
    expect(refusedByHub(ours)).to.deep.equal([]);
  });

  it('a cluster that was installed anew at the same address: nothing is observed as absent from it', async () => {
    const ours = await start();
    const uid = uidOf(ours);
    const { clusters, hub } = open({ '1': kubeconfigOf(ours) }, uid);
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    const seen = follow(hub);
    await until(() => seen.some(({ type }) => type === 'synced'));
    const before = seen.length;
    const port = Number(new URL(ours.url).port);
    await ours.close();
    const other = await start(port);
    // The watch lists what is there, and asks who says so.
    await until(() => other.audit().some(({ path }) => path.endsWith('/namespaces/kube-system')));
    expect(other.audit().some(({ path }) => path.includes('/clusterorders'))).to.equal(true);
    const absent = [
      () => hub.get(CLUSTER_ORDER, placeOf('order-a'), by()),
      () => hub.find(CLUSTER_ORDER, NS, 'id-of-order-a', by()),
      () => hub.delete(CLUSTER_ORDER, placeOf('order-a'), by()),
      () => hub.patch(CLUSTER_ORDER, placeOf('order-a'), { sshPublicKey: 'k' }, by()),
      () => hub.get(HOSTED_CLUSTER, { namespace: `${NS}-order-a`, name: 'order-a' }, by()),
    ];
    for (const look of absent) expect((await failure(look())).kind).to.equal('other-cluster');
    expect((await hub.check(by())).problems.map(({ code }) => code)).to.deep.equal(['DifferentCluster']);
    expect(seen.slice(before)).to.deep.equal([]);
    expect((await failure(hub.create(CLUSTER_ORDER, manifestOf('order-b'), by()))).kind).to.equal(
      'other-cluster',
    );
    // The hub was rebuilt, and its operator says so.
    clusters.of(connectionOf(NS, { cluster: uidOf(other), revision: 2 }));
    expect(await hub.get(CLUSTER_ORDER, placeOf('order-a'), by())).to.equal(undefined);
    await until(() =>
      seen.slice(before).some((event) => event.type === 'synced' && event.names.length === 0),
    );
  });

  it('that it becomes known does not begin a watch anew', async () => {
    const server = await start();
    const { clusters, hub } = open({ '1': kubeconfigOf(server) });
    const seen = follow(hub);
    await until(() => seen.some(({ type }) => type === 'synced'));
    clusters.of(connectionOf(NS, { cluster: uidOf(server), revision: 1 }));
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    await until(() => seen.some(isApplied('order-a')));
    expect(seen.filter(({ type }) => type === 'synced')).to.have.length(1);
  });

  it('once known it must stay visible: without the right nothing could be compared any more', async () => {
    const server = await start();
    const { hub } = open({ '1': kubeconfigOf(server) }, uidOf(server));
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    server.faults.always({ resource: 'namespaces', name: 'kube-system' }, { kind: 'answer', code: 403 });
    expect((await failure(hub.get(CLUSTER_ORDER, placeOf('order-b'), by()))).kind).to.equal('unauthorized');
    expect(
      (await hub.check(by())).problems.map(({ code, subject }) => `${code} ${subject ?? ''}`),
    ).to.deep.equal(['RightMissing get namespaces kube-system']);
  });
});
