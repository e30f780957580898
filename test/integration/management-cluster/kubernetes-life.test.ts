import { expect } from 'chai';
import { createWorkerChannel } from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import {
  clusterNamespace,
  CLUSTER_ORDER_UUID_LABEL,
  type CallOptions,
  type ClusterOrderManifest,
  type ClusterOrderWatchEvent,
  type ManagementCluster,
} from '../../../src/app/management-cluster.ts';
import { kubeClient } from '../../support/kube-client.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import {
  connectionOf,
  hubAccessOf,
  kubernetesHub,
  rbacOf,
  recordingLogger,
  secretRef,
} from '../../support/kubernetes-hub.ts';
import { failure, untilHolds } from './contract-kit.ts';

const NS = 'osac-hub';
const PULL_SECRET = '{"auths":{"r":{"auth":"canary-pull-secret"}}}';

describe('life with a Kubernetes hub', function () {
  this.timeout(20_000);
  let server: KubeApiServer;
  const closers: (() => Promise<void>)[] = [];
  beforeEach(async () => {
    server = await startKubeApiServer({ namespaces: [NS], objects: rbacOf('hub-access', NS) });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
    await server.close();
  });

  const by = (more: Partial<CallOptions> = {}): CallOptions => ({
    effectId: 'run-1/apply/1',
    deadlineMs: 5_000,
    signal: new AbortController().signal,
    ...more,
  });
  const manifestOf = (name: string, clusterId = `id-of-${name}`): ClusterOrderManifest => ({
    name,
    namespace: NS,
    labels: { [CLUSTER_ORDER_UUID_LABEL]: clusterId },
    annotations: {},
    spec: {
      templateID: 'osac.templates.ocp_small',
      templateParameters: '{}',
      nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
      pullSecret: PULL_SECRET,
      releaseImage: 'registry.example/ocp/release:4.22.0',
    },
  });
  const placeOf = (name: string) => ({ namespace: NS, name });
  const tokenOf = (): string => server.tokenFor(hubAccessOf(NS));
  const open = (options: Partial<Parameters<typeof kubernetesHub>[0]> = {}) => {
    const fixture = kubernetesHub({
      kubeconfigs: { '1': server.kubeconfig({ token: tokenOf() }) },
      namespace: NS,
      watch: { backoffMs: 10, backoffMaxMs: 100 },
      ...options,
    });
    closers.push(() => fixture.clusters.close());
    return fixture;
  };
  const follow = (cluster: ManagementCluster) => {
    const abort = new AbortController();
    const seen: ClusterOrderWatchEvent[] = [];
    const ended = (async () => {
      for await (const event of cluster.watchClusterOrders(NS, abort.signal)) seen.push(event);
    })();
    closers.push(async () => {
      abort.abort();
      await ended;
    });
    const until = (holds: (event: ClusterOrderWatchEvent) => boolean) =>
      untilHolds(
        () => Promise.resolve(seen.find(holds)),
        (event) => event !== undefined,
        5_000,
      );
    return { seen, until };
  };
  const isApplied = (name: string) => (event: ClusterOrderWatchEvent) =>
    event.type === 'applied' && event.order.name === name;
  const audited = (part: string) => server.audit().filter(({ user }) => user.includes(part));

  it('other credentials are used without a restart, and running watches go on with them', async () => {
    const [old, next] = [tokenOf(), tokenOf()];
    const { clusters, hub } = open({
      kubeconfigs: { '1': server.kubeconfig({ token: old }), '2': server.kubeconfig({ token: next }) },
    });
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    server.revoke(old);
    expect((await failure(hub.getClusterOrder(placeOf('a'), by()))).kind).to.equal('unauthorized');
    expect(clusters.of(connectionOf(NS, { revision: 2, kubeconfig: secretRef('2') }))).to.equal(hub);
    await hub.createClusterOrder(manifestOf('order-a'), by());
    await watching.until(isApplied('order-a'));
    // An older wording of the hub that comes late changes nothing.
    clusters.of(connectionOf(NS, { revision: 1, kubeconfig: secretRef('1') }));
    expect((await hub.getClusterOrder(placeOf('order-a'), by()))?.clusterId).to.equal('id-of-order-a');
  });

  it('credentials that cannot be used stop the hub, and good ones start it again', async () => {
    const { clusters, hub } = open({
      kubeconfigs: { '1': 'not: a kubeconfig', '2': server.kubeconfig({ token: tokenOf() }) },
    });
    const watching = follow(hub);
    const refused = await failure(hub.createClusterOrder(manifestOf('order-a'), by()));
    expect([refused.kind, refused.message]).to.deep.equal([
      'unauthorized',
      'kubeconfig refused: current-context names no entry of contexts',
    ]);
    clusters.of(connectionOf(NS, { revision: 2, kubeconfig: secretRef('2') }));
    await hub.createClusterOrder(manifestOf('order-a'), by());
    await watching.until(isApplied('order-a'));
  });

  it('looking at a hub does not make another connection of it', async () => {
    const { clusters, hub } = open();
    await hub.getClusterOrder(placeOf('a'), by());
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    const before = server.audit().length;
    for (let revision = 2; revision < 10; revision += 1) clusters.of(connectionOf(NS, { revision }));
    await hub.getClusterOrder(placeOf('a'), by());
    expect(server.audit().length - before).to.equal(1);
  });

  it('the thread that dies is started again; watches list anew, and a write under way is in doubt', async () => {
    const logger = recordingLogger();
    const program = new URL('../../support/dying-hub-worker.ts', import.meta.url);
    const channel = createWorkerChannel({ logger, program });
    closers.push(() => channel.close());
    const { hub } = open({ channel });
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    server.faults.next({ verb: 'create', resource: 'clusterorders' }, { kind: 'hang' });
    const write = failure(hub.createClusterOrder(manifestOf('order-a'), by()));
    await untilHolds(
      () => Promise.resolve(audited(':hub-access').some(({ method }) => method === 'POST')),
      Boolean,
      5_000,
    );
    const died = failure(hub.getClusterOrder(placeOf('a'), by({ effectId: 'die' })));
    expect((await died).kind).to.equal('unavailable');
    expect((await write).kind).to.equal('unknown-outcome');
    server.faults.clear();
    await hub.createClusterOrder(manifestOf('order-b'), by());
    await watching.until(isApplied('order-b'));
  });

  it('no call, error or log shows a secret, whatever the hub answers', async () => {
    const token = `canary-token-${tokenOf()}`;
    const { hub, logger } = open({ kubeconfigs: { '1': server.kubeconfig({ token }) } });
    const told: unknown[] = [];
    const tell = async (work: Promise<unknown>): Promise<void> => {
      const error = await failure(work);
      told.push([error.message, error.facts, String(error.stack), error.order]);
    };
    await tell(hub.createClusterOrder(manifestOf('order-a'), by()));
    for (const text of [`denied: ${PULL_SECRET}`, JSON.stringify({ echo: token, pullSecret: PULL_SECRET })]) {
      const message = `spec.pullSecret: Invalid value: ${JSON.stringify(text)} for Bearer ${token}`;
      for (const code of [400, 403, 422, 500])
        for (const fault of [{ message }, { text }]) {
          server.faults.next({}, { kind: 'answer', code, ...fault });
          await tell(hub.createClusterOrder(manifestOf('order-a'), by()));
        }
    }
    const watching = follow(hub);
    await untilHolds(
      () => Promise.resolve(logger.lines.length),
      (lines) => lines > 0,
      5_000,
    );
    expect(JSON.stringify([told, logger.lines, watching.seen, await hub.check(by())])).to.not.include(
      'canary',
    );
  });

  it('never sends status, finalizers, null or an empty list; a patch is a merge patch of what changes', async () => {
    const { hub } = open();
    await hub.createClusterOrder(manifestOf('order-a'), by());
    const spec = { nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 3 }], sshPublicKey: '' };
    await hub.patchClusterOrder(placeOf('order-a'), spec, by());
    const sent = audited(':hub-access').filter(({ method }) => method === 'POST' || method === 'PATCH');
    expect(sent.map(({ contentType }) => contentType)).to.deep.equal([
      'application/json',
      'application/merge-patch+json',
    ]);
    expect(JSON.parse(sent[1]?.body ?? '')).to.deep.equal({ spec });
    for (const { body } of sent) expect(body).to.not.match(/null|\[\]|finalizers|"status"/);
  });

  it('two orders that carry one id are both shown; the later steps decide', async () => {
    const { hub } = open();
    await hub.createClusterOrder(manifestOf('order-a', 'one'), by());
    await hub.createClusterOrder(manifestOf('order-b', 'one'), by());
    const found = await hub.findClusterOrders(NS, 'one', by());
    expect(found.map(({ name }) => name)).to.have.members(['order-a', 'order-b']);
    for (const id of ['', 'a,b', 'x'.repeat(64), '__proto__'])
      expect(await hub.findClusterOrders(NS, id, by())).to.deep.equal([]);
  });

  it('a kind that is not there is another thing than an object that is not', async () => {
    const { hub } = open();
    server.faults.next(
      { resource: 'clusterorders' },
      { kind: 'answer', code: 404, text: '404 page not found\n' },
    );
    expect((await failure(hub.deleteClusterOrder(placeOf('a'), by()))).kind).to.equal('not-ready');
    expect(await hub.deleteClusterOrder(placeOf('a'), by())).to.equal(false);
  });

  it('a server that says to come later is not asked before', async () => {
    const { hub } = open();
    server.faults.next({}, { kind: 'answer', code: 429, retryAfterSeconds: 7 });
    const error = await failure(hub.createClusterOrder(manifestOf('order-a'), by()));
    expect([error.kind, error.retryAfterMs]).to.deep.equal(['throttled', 7_000]);
  });

  it('reads are asked again on another connection when kept ones were closed', async () => {
    const { hub } = open();
    await Promise.all([1, 2, 3].map(() => hub.getClusterOrder(placeOf('a'), by())));
    server.cutConnections();
    expect(await hub.getClusterOrder(placeOf('a'), by())).to.equal(undefined);
  });

  it('lists of more than a page are read whole, also when their token ends on the way', async () => {
    for (let index = 0; index < 1_200; index += 1)
      server.seed({
        apiVersion: 'osac.openshift.io/v1alpha1',
        kind: 'ClusterOrder',
        metadata: { name: `order-${index}`, namespace: NS, labels: { [CLUSTER_ORDER_UUID_LABEL]: 'many' } },
        spec: { templateID: 'a' },
      });
    const { hub } = open();
    expect(await hub.findClusterOrders(NS, 'many', by())).to.have.length(1_200);
    const slow = server.faults.next({ verb: 'list' }, { kind: 'held-answer' });
    const listing = hub.findClusterOrders(NS, 'many', by());
    await untilHolds(
      () => Promise.resolve(slow.held()),
      (held) => held > 0,
      5_000,
    );
    server.expirePages();
    slow.release();
    expect(new Set((await listing).map(({ name }) => name)).size).to.equal(1_200);
  });

  it('counts hosts by class: free, with an order of ours, and taken by others', async () => {
    for (const object of rbacOf('controller-ledger', NS)) server.seed(object);
    const { hub } = open();
    await hub.createClusterOrder(manifestOf('order-a'), by());
    const agent = (name: string, labels: { [key: string]: string }) =>
      server.seed({
        apiVersion: 'agent-install.openshift.io/v1beta1',
        kind: 'Agent',
        metadata: { name, namespace: 'default', labels },
        spec: {},
      });
    const of = (resourceClass: string, more = {}) => ({
      'osac.openshift.io/resource_class': resourceClass,
      ...more,
    });
    agent('a1', of('fc430'));
    agent('a2', of('fc430', { 'osac.openshift.io/clusterorder': 'order-a' }));
    agent('a3', of('fc430', { 'osac.openshift.io/clusterorder': 'order-of-somebody' }));
    agent('a4', of('h100', { 'agent-install.openshift.io/clusterdeployment-namespace': 'x' }));
    agent('a5', {});
    expect(await hub.inventory(by())).to.deep.equal({
      fc430: { free: 1, ours: 1, foreign: 1 },
      h100: { free: 0, ours: 0, foreign: 1 },
    });
  });

  it('without the right to see hosts or node pools it does not try', async () => {
    const { hub } = open();
    expect(await hub.inventory(by())).to.equal(undefined);
    await hub.getHostedCluster({ namespace: 'a', name: 'b' }, by());
    expect(audited(':hub-access').some(({ code }) => code === 403)).to.equal(false);
  });

  it('makes the namespace of a tenant once, and nobody is let into the namespace of somebody else', async () => {
    const { hub } = open();
    const mine = { name: 'osac-acme', tenant: 'acme' };
    expect(await hub.ensureTenantNamespace(mine, by())).to.deep.equal({ created: true });
    expect(await hub.ensureTenantNamespace(mine, by())).to.deep.equal({ created: false });
    expect(server.find('namespaces', '', 'osac-acme')?.metadata.labels).to.include({
      'osac.openshift.io/tenant-ref': 'acme',
      'osac.openshift.io/project': NS,
    });
    for (const other of [
      { name: 'osac-acme', tenant: 'rival' },
      { name: 'kube-system', tenant: 'acme' },
    ])
      expect((await failure(hub.ensureTenantNamespace(other, by()))).kind).to.equal('already-exists');
    for (const bad of [
      { name: 'Osac', tenant: 'acme' },
      { name: 'x'.repeat(64), tenant: 'acme' },
    ])
      expect((await failure(hub.ensureTenantNamespace(bad, by()))).kind).to.equal('invalid');
  });

  describe('as controller', () => {
    const place = placeOf('order-a');
    const own = clusterNamespace(place);
    const STATUS = {
      phase: 'Progressing',
      conditions: [{ type: 'Accepted', status: 'True', reason: 'Initialized' }],
      desiredConfigVersion: '0123456789abcdef',
    } as const;
    let hub: ReturnType<typeof open>['hub'];
    beforeEach(async () => {
      for (const object of rbacOf('controller-ledger', NS)) server.seed(object);
      ({ hub } = open());
      await hub.createClusterOrder(manifestOf('order-a'), by());
    });
    afterEach('needed no right that controller-ledger.yaml does not grant', () => {
      expect(audited(':hub-access').filter(({ code }) => code === 403)).to.deep.equal([]);
    });

    it('makes what a cluster needs, repeats nothing, and uses nothing that is not the order’s', async () => {
      const first = await hub.controller.prepare(place, by());
      expect(first.created).to.have.length(5);
      expect(await hub.controller.prepare(place, by())).to.deep.equal({ created: [] });
      expect(server.find('rolebindings', own, 'hub-access')?.['roleRef']).to.deep.include({
        name: `${NS}-hub-access-hosted-clusters`,
      });
      server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: `${NS}-order-b` } });
      await hub.createClusterOrder(manifestOf('order-b'), by());
      const refused = await failure(hub.controller.prepare(placeOf('order-b'), by()));
      expect([refused.kind, refused.message]).to.deep.equal([
        'already-exists',
        `namespace ${NS}-order-b is there and not of order order-b`,
      ]);
    });

    it('writes status only when it differs, and keeps conditions and finalizers of others', async () => {
      await hub.controller.prepare(place, by());
      const at = '2026-01-01T00:00:00Z';
      const foreign = {
        type: 'ClusterStorageReady',
        status: 'True',
        reason: 'Ok',
        message: '',
        lastTransitionTime: at,
      };
      const order = server.find('clusterorders', NS, 'order-a');
      server.seed({
        ...(order as unknown as Parameters<typeof server.seed>[0]),
        metadata: {
          ...order?.metadata,
          finalizers: ['osac.openshift.io/finalizer', 'osac.openshift.io/infrastructure'],
        },
        status: { conditions: [foreign] },
      } as unknown as Parameters<typeof server.seed>[0]);
      await hub.controller.writeStatus(place, STATUS, by());
      const before = server.version();
      await hub.controller.writeStatus(place, STATUS, by());
      expect(server.version()).to.equal(before);
      const seen = await hub.getClusterOrder(place, by());
      expect(seen?.conditions.map(({ type }) => type)).to.have.members(['ClusterStorageReady', 'Accepted']);
      expect(seen?.clusterReference).to.deep.equal({ namespace: own, hostedClusterName: 'order-a' });
      expect(seen?.finalizers).to.have.length(2);
    });

    it('lets an order go once its HostedCluster and namespace are gone, and never a living one', async () => {
      await hub.controller.prepare(place, by());
      expect((await failure(hub.controller.release(place, by()))).kind).to.equal('conflict');
      server.seed({
        apiVersion: 'hypershift.openshift.io/v1beta1',
        kind: 'HostedCluster',
        metadata: { name: 'order-a', namespace: own },
        spec: {},
      });
      await hub.deleteClusterOrder(place, by());
      expect(await hub.controller.release(place, by())).to.deep.equal({
        released: false,
        waitingFor: [`HostedCluster ${own}/order-a`],
      });
      expect(server.find('namespaces', '', own)?.metadata.deletionTimestamp).to.equal(undefined);
      const admin = kubeClient({ url: server.url, ca: server.ca, token: server.adminToken });
      await admin.delete(`/apis/hypershift.openshift.io/v1beta1/namespaces/${own}/hostedclusters/order-a`);
      admin.close();
      const asked = await hub.controller.release(place, by());
      expect([asked.released, asked.waitingFor[0]]).to.deep.equal([false, `namespace ${own}`]);
      await server.settled();
      expect(await hub.controller.release(place, by())).to.deep.equal({ released: true, waitingFor: [] });
      expect(await hub.getClusterOrder(place, by())).to.equal(undefined);
      expect(await hub.controller.release(place, by())).to.deep.equal({ released: true, waitingFor: [] });
    });
  });
});
