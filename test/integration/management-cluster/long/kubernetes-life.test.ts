import { expect } from 'chai';
import { createWorkerChannel } from '../../../../src/adapters/management-cluster/kubernetes/channel.ts';
import {
  CLUSTER_ORDER,
  CLUSTER_ORDER_UUID_LABEL,
  HOSTED_CLUSTER,
} from '../../../../src/domain/clusters/hub-objects.ts';
import { connectionOf, rbacOf, recordingLogger, secretRef } from '../../../support/hubs/kubernetes-hub.ts';
import { eventually } from '../../../support/eventually.ts';
import { failure, untilHolds } from '../contract-kit.ts';
import { by, isApplied, kubernetesStage, manifestOf, NS, placeOf, PULL_SECRET } from '../kubernetes-stage.ts';

describe('life with a Kubernetes hub', function () {
  const stage = kubernetesStage();
  const { closers, tokenOf, open, follow, audited } = stage;

  it('other credentials are used without a restart, and running watches go on with them', async () => {
    const [old, next] = [tokenOf(), tokenOf()];
    const { clusters, hub } = open({
      kubeconfigs: {
        '1': stage.server.kubeconfig({ token: old }),
        '2': stage.server.kubeconfig({ token: next }),
      },
    });
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    stage.server.revoke(old);
    expect((await failure(hub.get(CLUSTER_ORDER, placeOf('a'), by()))).kind).to.equal('unauthorized');
    expect(clusters.of(connectionOf(NS, { revision: 2, kubeconfig: secretRef('2') }))).to.equal(hub);
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    await watching.until(isApplied('order-a'));
    // An older wording of the hub that comes late changes nothing.
    clusters.of(connectionOf(NS, { revision: 1, kubeconfig: secretRef('1') }));
    expect((await hub.get(CLUSTER_ORDER, placeOf('order-a'), by()))?.id).to.equal('id-of-order-a');
  });

  it('credentials that cannot be used stop the hub, and good ones start it again', async () => {
    const { clusters, hub } = open({
      kubeconfigs: { '1': 'not: a kubeconfig', '2': stage.server.kubeconfig({ token: tokenOf() }) },
    });
    const watching = follow(hub);
    const refused = await failure(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()));
    expect([refused.kind, refused.message]).to.deep.equal([
      'unauthorized',
      'kubeconfig refused: current-context names no entry of contexts',
    ]);
    clusters.of(connectionOf(NS, { revision: 2, kubeconfig: secretRef('2') }));
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    await watching.until(isApplied('order-a'));
  });

  it('looking at a hub does not make another connection of it', async () => {
    const { clusters, hub } = open();
    await hub.get(CLUSTER_ORDER, placeOf('a'), by());
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    // It is synced by its list, and its watch is a request of its own, which follows.
    await untilHolds(
      () => Promise.resolve(stage.server.audit().some(({ verb }) => verb === 'watch')),
      Boolean,
      5_000,
    );
    const before = stage.server.audit().length;
    for (let revision = 2; revision < 10; revision += 1) clusters.of(connectionOf(NS, { revision }));
    await hub.get(CLUSTER_ORDER, placeOf('a'), by());
    expect(stage.server.audit().length - before).to.equal(1);
  });

  it('a hub that is not registered any more is let go with its credentials and connections', async () => {
    const { clusters, hub } = open();
    await hub.get(CLUSTER_ORDER, placeOf('a'), by());
    clusters.forget(hub.hubId);
    expect((await failure(hub.get(CLUSTER_ORDER, placeOf('a'), by()))).message).to.contain('closed');
    const again = clusters.of(connectionOf(NS, { revision: 9 }));
    expect(again).to.not.equal(hub);
    expect(await again?.get(CLUSTER_ORDER, placeOf('a'), by())).to.equal(undefined);
  });

  it('the thread that dies is started again; watches list anew, and a write under way is in doubt', async () => {
    const logger = recordingLogger();
    const program = new URL('../../../support/hubs/dying-hub-worker.ts', import.meta.url);
    const channel = createWorkerChannel({ logger, program });
    closers.push(() => channel.close());
    const { hub } = open({ channel });
    const watching = follow(hub);
    await watching.until(({ type }) => type === 'synced');
    stage.server.faults.next({ verb: 'create', resource: 'clusterorders' }, { kind: 'hang' });
    const write = failure(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()));
    await untilHolds(
      () => Promise.resolve(audited(':hub-access').some(({ method }) => method === 'POST')),
      Boolean,
      5_000,
    );
    const died = failure(hub.get(CLUSTER_ORDER, placeOf('a'), by({ effectId: 'die' })));
    expect((await died).kind).to.equal('unavailable');
    expect((await write).kind).to.equal('unknown-outcome');
    stage.server.faults.clear();
    await hub.create(CLUSTER_ORDER, manifestOf('order-b'), by());
    await watching.until(isApplied('order-b'));
  });

  it('no call, error or log shows a secret, whatever the hub answers', async () => {
    const token = `canary-token-${tokenOf()}`;
    const { hub, logger } = open({ kubeconfigs: { '1': stage.server.kubeconfig({ token }) } });
    const told: unknown[] = [];
    const tell = async (work: Promise<unknown>): Promise<void> => {
      const error = await failure(work);
      told.push([error.message, error.facts, String(error.stack), error.object]);
    };
    await tell(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()));
    for (const text of [`denied: ${PULL_SECRET}`, JSON.stringify({ echo: token, pullSecret: PULL_SECRET })]) {
      const message = `spec.pullSecret: Invalid value: ${JSON.stringify(text)} for Bearer ${token}`;
      for (const code of [400, 403, 422, 500])
        for (const fault of [{ message }, { text }]) {
          stage.server.faults.next({}, { kind: 'answer', code, ...fault });
          await tell(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()));
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
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    const spec = { nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 3 }], sshPublicKey: '' };
    await hub.patch(CLUSTER_ORDER, placeOf('order-a'), spec, by());
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
    await hub.create(CLUSTER_ORDER, manifestOf('order-a', 'one'), by());
    await hub.create(CLUSTER_ORDER, manifestOf('order-b', 'one'), by());
    const found = await hub.find(CLUSTER_ORDER, NS, 'one', by());
    expect(found.map(({ name }) => name)).to.have.members(['order-a', 'order-b']);
    for (const id of ['', 'a,b', 'x'.repeat(64), '__proto__'])
      expect(await hub.find(CLUSTER_ORDER, NS, id, by())).to.deep.equal([]);
  });

  it('a kind that is not there is another thing than an object that is not', async () => {
    const { hub } = open();
    stage.server.faults.next(
      { resource: 'clusterorders' },
      { kind: 'answer', code: 404, text: '404 page not found\n' },
    );
    expect((await failure(hub.delete(CLUSTER_ORDER, placeOf('a'), by()))).kind).to.equal('not-ready');
    expect(await hub.delete(CLUSTER_ORDER, placeOf('a'), by())).to.equal(false);
  });

  it('a server that says to come later is not asked before', async () => {
    const { hub } = open();
    stage.server.faults.next({}, { kind: 'answer', code: 429, retryAfterSeconds: 7 });
    const error = await failure(hub.create(CLUSTER_ORDER, manifestOf('order-a'), by()));
    expect([error.kind, error.retryAfterMs]).to.deep.equal(['throttled', 7_000]);
  });

  it('reads are asked again on another connection when kept ones were closed', async () => {
    const { hub } = open();
    await Promise.all([1, 2, 3].map(() => hub.get(CLUSTER_ORDER, placeOf('a'), by())));
    stage.server.cutConnections();
    expect(await hub.get(CLUSTER_ORDER, placeOf('a'), by())).to.equal(undefined);
  });

  it('lists of more than a page are read whole, also when their token ends on the way', async () => {
    for (let index = 0; index < 1_200; index += 1)
      stage.server.seed({
        apiVersion: 'osac.openshift.io/v1alpha1',
        kind: 'ClusterOrder',
        metadata: { name: `order-${index}`, namespace: NS, labels: { [CLUSTER_ORDER_UUID_LABEL]: 'many' } },
        spec: { templateID: 'a' },
      });
    const { hub } = open();
    expect(await hub.find(CLUSTER_ORDER, NS, 'many', by())).to.have.length(1_200);
    const slow = stage.server.faults.next({ verb: 'list' }, { kind: 'held-answer' });
    const listing = hub.find(CLUSTER_ORDER, NS, 'many', by());
    await untilHolds(
      () => Promise.resolve(slow.held()),
      (held) => held > 0,
      5_000,
    );
    stage.server.expirePages();
    slow.release();
    expect(new Set((await listing).map(({ name }) => name)).size).to.equal(1_200);
  });

  it('counts hosts by class: free, with an order of ours, and taken by others', async () => {
    for (const object of rbacOf('controller-ledger', NS)) stage.server.seed(object);
    const { hub } = open();
    await hub.create(CLUSTER_ORDER, manifestOf('order-a'), by());
    const agent = (name: string, labels: { [key: string]: string }) =>
      stage.server.seed({
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

  it('with namespaces of tenants, orders in each of them are ours', async () => {
    for (const file of ['controller-ledger', 'tenant-namespaces'] as const)
      for (const object of rbacOf(file, NS)) stage.server.seed(object);
    const { hub } = open({ connection: { tenantNamespaces: true } });
    await hub.ensureTenantNamespace({ name: 'osac-acme', tenant: 'acme' }, by());
    await hub.create(CLUSTER_ORDER, { ...manifestOf('order-a'), namespace: 'osac-acme' }, by());
    stage.server.seed({
      apiVersion: 'agent-install.openshift.io/v1beta1',
      kind: 'Agent',
      metadata: {
        name: 'a1',
        namespace: 'default',
        labels: { 'osac.openshift.io/resource_class': 'fc430', 'osac.openshift.io/clusterorder': 'order-a' },
      },
      spec: {},
    });
    expect(await hub.inventory(by())).to.deep.equal({ fc430: { free: 0, ours: 1, foreign: 0 } });
  });

  it('without the right to see hosts or node pools it does not try', async () => {
    const { hub } = open();
    expect(await hub.inventory(by())).to.equal(undefined);
    await hub.get(HOSTED_CLUSTER, { namespace: 'a', name: 'b' }, by());
    expect(audited(':hub-access').some(({ code }) => code === 403)).to.equal(false);
  });

  it('a hub that lets nobody ask for his rights works all the same; a check takes new ones over at once', async () => {
    const { hub } = open();
    const asking = { resource: 'selfsubjectaccessreviews' };
    stage.server.faults.next(asking, { kind: 'answer', code: 403, message: 'no' });
    expect(await hub.inventory(by())).to.equal(undefined);
    for (const object of rbacOf('controller-ledger', NS)) stage.server.seed(object);
    expect(await hub.inventory(by())).to.equal(undefined);
    expect((await hub.check(by())).canReadAgents).to.equal(true);
    expect(await hub.inventory(by())).to.deep.equal({});
  });

  it('makes the namespace of a tenant once, and nobody is let into the namespace of somebody else', async () => {
    const { hub } = open();
    const mine = { name: 'osac-acme', tenant: 'acme' };
    expect(await hub.ensureTenantNamespace(mine, by())).to.deep.equal({ created: true });
    expect(await hub.ensureTenantNamespace(mine, by())).to.deep.equal({ created: false });
    expect(stage.server.find('namespaces', '', 'osac-acme')?.metadata.labels).to.include({
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

  it('removes the namespace of a tenant, and none that is somebody else’s or another service’s', async () => {
    const { hub } = open();
    const mine = { name: 'osac-leaving', tenant: 'leaving' };
    await hub.ensureTenantNamespace(mine, by());
    for (const other of [
      { name: 'osac-leaving', tenant: 'rival' },
      { name: 'kube-system', tenant: 'leaving' },
      { name: 'osac-nowhere', tenant: 'leaving' },
    ])
      expect(await hub.removeTenantNamespace(other, by()), other.name).to.deep.equal({ existed: false });
    expect(await hub.removeTenantNamespace(mine, by())).to.deep.equal({ existed: true });
    await eventually(
      'it is gone',
      async () => (await hub.removeTenantNamespace(mine, by())).existed === false,
    );
    expect(stage.server.find('namespaces', '', 'osac-leaving')).to.equal(undefined);
    expect(stage.server.find('namespaces', '', 'kube-system')).to.not.equal(undefined);
  });
});
