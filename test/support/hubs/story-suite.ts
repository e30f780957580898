import { expect } from 'chai';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { ORDER_LABEL, PREFIX } from '../kube-controllers/api.ts';
import { createE2eHub, HUB, HUB_NAMESPACE, type E2eHub, type HubCase, type HubServer } from './served-hub.ts';
import { CLUSTERS, isReady, until, untilCluster, untilGone, type ClusterBody } from '../service/stack.ts';
import type { KubeObject } from '../kube-apiserver/types.ts';

const UUID_LABEL = `${PREFIX}clusterorder-uuid`;
const ORDERS = 'clusterorders';
/** A request may be looked for until it must have arrived and been acted on: 60 s, and some for the machine. */
const LOST_MS = 90_000;

export type HubStory = HubCase & {
  /** What `ledgerctl orders show` must tell of how the cluster was built, in this order. */
  readonly built: readonly RegExp[];
  /** And of how it was removed. */
  readonly removed: readonly RegExp[];
};

const MADE_BY_US = (namespace: string): RegExp =>
  new RegExp(`The ledger prepared hub "munich" for the order and made .*namespace ${namespace}-order-`);
const WEBHOOKS = {
  built: [/was asked to build or change the cluster by a webhook/],
  removed: [/was asked to tear down the cluster by a webhook/],
};
const JOBS = {
  built: [/was asked to build or change the cluster: job \d+ of template osac-create-hosted-cluster/],
  removed: [/was asked to tear down the cluster: job \d+ of template osac-delete-hosted-cluster/],
};

/** The ways in which a hub can be registered. */
export const HUB_STORIES = {
  operator: { mode: 'operator', controller: 'operator', built: [], removed: [] },
  edaWithOperator: { mode: 'eda', controller: 'operator', ...WEBHOOKS },
  edaAlone: {
    mode: 'eda',
    controller: 'ledger',
    ...WEBHOOKS,
    built: [MADE_BY_US('osac-hub'), ...WEBHOOKS.built],
  },
  aapWithOperator: { mode: 'aap', controller: 'operator', ...JOBS },
  aapAlone: { mode: 'aap', controller: 'ledger', ...JOBS, built: [MADE_BY_US('osac-hub'), ...JOBS.built] },
  tenantNamespaces: {
    mode: 'eda',
    controller: 'ledger',
    tenantNamespaces: true,
    built: [MADE_BY_US('acme')],
    removed: WEBHOOKS.removed,
  },
} as const satisfies { readonly [name: string]: HubStory };

/** Sequences that must be found in order: what a killed process asked for is only written down when it was looked up. */
const told = ({ built, removed }: HubStory): readonly (readonly RegExp[])[] => [
  [
    /Cluster "story" was ordered from template ocp-small.*\(workers 2 nodes of type fc430\)/,
    /Hub "munich" was selected from \d candidates/,
    /The order is being sent to its hub, munich/,
    /The cluster is ready/,
    /The kubeconfig was shown/,
    /Node set "workers" is to be resized from 2 to 3 nodes/,
    /The hub "munich" stored the changed specification/,
    /Ready nodes: workers 3/,
    /The cluster is degraded: disks are slow/,
    /The cluster has recovered/,
    /Deletion was requested/,
    /The cluster was deleted; its hub confirmed that nothing is left/,
    /Step release:.* is done/,
  ],
  [...built, /The hub "munich" stored the changed specification/],
  [/Deletion was requested/, ...removed, /Step release:.* is done/],
];

/**
 * A hub registered by `ledgerctl`, and a tenant's cluster on it from its order to its end, with a SIGKILL while it is
 * built. One file per mode, so that they run beside each other. `startServer`: another API server than the stand-in's.
 */
export const hubStory = (title: string, story: HubStory, startServer?: () => Promise<HubServer>): void => {
  describe(title, function () {
    this.timeout(150_000);
    const { mode, controller, tenantNamespaces = false } = story;
    let hub: E2eHub;
    let alice: ApiClient;
    let id: string;
    /** Names that orders on the hub ever had. */
    const names = new Set<string>();
    /** Of each life of the service. */
    const logs: (readonly string[])[] = [];

    before(async () => {
      hub = await createE2eHub(story, startServer);
      await hub.stack.start();
      alice = await hub.stack.client({ tenant: 'acme', user: 'alice' });
    });
    after(() => hub?.dispose());

    /** The orders of the cluster on the hub now; fails when there are two. */
    const onHub = async (): Promise<KubeObject | undefined> => {
      const orders = await hub.list(ORDERS);
      for (const order of orders) names.add(order.metadata.name);
      expect(orders.length, 'orders on the hub').to.be.at.most(1);
      return orders[0];
    };
    const asked = (kind: 'create' | 'delete'): number =>
      hub.asked().filter((one) => one.kind === kind).length;
    /** So many requests are on record. */
    const requested = async (times: number): Promise<boolean> => {
      const admin = await hub.stack.client({ admin: true, user: 'root' });
      const { timeline } = await admin.get<{ timeline: { type: string }[] }>(`/api/ledger/v1/orders/${id}`);
      return timeline.filter(({ type }) => type === 'AutomationRequested').length === times;
    };
    const degraded = ({ status }: ClusterBody): boolean =>
      status?.conditions?.some(
        ({ type, status: is }) => type.endsWith('_DEGRADED') && is?.endsWith('_TRUE'),
      ) === true;
    /** What changes on a HostedCluster alone is seen at the next timed read, within a minute; a touch hastens it. */
    const touch = async (value: string): Promise<void> => {
      const order = await onHub();
      if (order === undefined) throw new Error('the order is not on the hub');
      const metadata = { annotations: { 'example.com/looked-at': value } };
      const { namespace = '', name } = order.metadata;
      await hub.play.api.merge(ORDERS, namespace, name, { metadata });
    };

    it('is registered when its check finds nothing wrong', async () => {
      const { code, out, err } = await hub.ledgerctl('hubs', 'add', ...hub.registration);
      expect(code, err).to.equal(0);
      expect(out).to.include(`hub ${HUB}: registered`);
      // Before it was looked at, orders go to hubs that are known to be there.
      const admin = await hub.stack.client({ admin: true, user: 'root' });
      type Shown = { readonly health: string };
      const healthy = async (): Promise<boolean> =>
        (await admin.get<Shown>(`/api/ledger/v1/hubs/${HUB}`)).health === 'ok';
      await until('it was looked at', healthy);
    });

    it('builds what was ordered, although the service is killed in the middle', async () => {
      // Where we are not the ones who ask, the order's arrival is the middle.
      const killed = Promise.withResolvers<void>();
      const kill = async (): Promise<void> => {
        hub.onAsked(undefined);
        logs.push(hub.stack.service().log);
        await hub.stack.stop('SIGKILL');
        killed.resolve();
      };
      if (mode !== 'operator') hub.onAsked(kill);
      const body = { metadata: { name: 'story' }, spec: { template: { id: 'osac.templates.ocp_small' } } };
      const key = { 'idempotency-key': '"story"' };
      ({ id } = await alice.send<ClusterBody>('POST', CLUSTERS, body, key));
      if (mode === 'operator') {
        await until('the order is on the hub', async () => (await onHub()) !== undefined);
        await kill();
      }
      await killed.promise;
      await hub.stack.start();
      logs.push(hub.stack.service().log);
      alice = await hub.stack.client({ tenant: 'acme', user: 'alice' });
      const again = await alice.send<ClusterBody>('POST', CLUSTERS, body, key);
      expect(again.id).to.equal(id);

      const ready = await untilCluster(alice, id, isReady);
      expect(ready.status?.node_sets?.['workers']?.size).to.equal(2);
      const order = await onHub();
      expect(order?.metadata.labels).to.deep.equal({ [UUID_LABEL]: id });
      expect(order?.metadata.namespace).to.equal(tenantNamespaces ? 'acme' : HUB_NAMESPACE);
      const name = order?.metadata.name ?? '';
      const { api_url: apiUrl } = ready.status as { api_url?: string };
      expect(apiUrl).to.equal(`https://api.${name}.bench.example:6443`);
      expect(await alice.text(`${CLUSTERS}/${id}/kubeconfig`))
        .to.include('kind: Config')
        .and.to.include(`current-context: ${name}`);
      expect(await alice.text(`${CLUSTERS}/${id}/password`)).to.equal(`password-of-${name}`);
      expect(asked('create')).to.equal(1);
    });

    // What became of a webhook whose answer was lost is seen at the node pools; rights beside an operator do not show them.
    const loses = mode === 'aap' || controller === 'ledger';
    it(`is scaled, with one more run of the automation${loses ? ', although its answer is lost' : ''}`, async () => {
      if (loses) await hub.loseNextAnswer();
      const mask = 'update_mask=spec.node_sets.workers.size';
      await alice.send('PATCH', `${CLUSTERS}/${id}?${mask}`, {
        spec: { node_sets: { workers: { size: 3 } } },
      });
      const grown = (pool: KubeObject): boolean => objectAt(pool as JsonObject, 'status')['replicas'] === 3;
      await until('the pool has grown', async () => (await hub.list('nodepools')).some(grown));
      await touch('scaled');
      await untilCluster(
        alice,
        id,
        (seen) => isReady(seen) && seen.status?.node_sets?.['workers']?.size === 3,
      );
      expect((await onHub())?.['spec']).to.have.deep.property('nodeRequests', [
        { resourceClass: 'fc430', numberOfNodes: 3 },
      ]);
      if (mode !== 'operator') await until('what was asked for is known', () => requested(2), LOST_MS);
      expect(asked('create')).to.equal(2);
    });

    const whyReady = ({ status }: ClusterBody): string =>
      status?.conditions?.find(({ type }) => type.endsWith('_READY'))?.message ?? '';
    if (mode === 'operator')
      it('stays READY when a change of it fails, says so, and takes the next change', async () => {
        const resize = (size: number): Promise<unknown> =>
          alice.send('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size } } } });
        const fault = { result: 'failed', afterMs: 50, traceback: 'no hosts', idle: true } as const;
        hub.play.ansible.failNext('create', fault);
        await resize(4);
        const failed = await untilCluster(alice, id, (seen) => isReady(seen) && whyReady(seen) !== '');
        expect(whyReady(failed)).to.match(
          /^resize of node set 'workers' from 3 to 4 failed: the provider's automation failed \(correlation id \S+\)$/,
        );
        await resize(3);
        await untilCluster(alice, id, (seen) => isReady(seen) && whyReady(seen) === '');
        expect(asked('create')).to.equal(4);
      });

    it('is DEGRADED while its hosted cluster is, and not after that', async () => {
      const name = (await onHub())?.metadata.name ?? '';
      hub.play.hypershift.afflict(name, { type: 'Degraded', reason: 'EtcdSlow', message: 'disks are slow' });
      await until('HyperShift says so', () => hostedIs(hub, name, 'Degraded', 'True'));
      await touch('degraded');
      const sick = await untilCluster(alice, id, degraded);
      expect(JSON.stringify(sick.status?.conditions)).to.include('disks are slow');
      hub.play.hypershift.heal(name);
      await until('HyperShift says so', () => hostedIs(hub, name, 'Degraded', 'False'));
      await touch('healed');
      await untilCluster(alice, id, (seen) => isReady(seen) && !degraded(seen));
    });

    it('goes, and leaves nothing behind', async () => {
      const { namespace = '', name = '' } = (await onHub())?.metadata ?? {};
      const place = `${namespace}-${name}`;
      await alice.send('DELETE', `${CLUSTERS}/${id}`);
      await untilGone(alice, id);
      expect(await onHub()).to.equal(undefined);
      expect(await hub.play.api.get('namespaces', '', place)).to.equal(undefined);
      expect(await hub.list('hostedclusters')).to.deep.equal([]);
      expect(asked('delete')).to.equal(1);
      expect(asked('create')).to.equal(mode === 'operator' ? 4 : 2);
      expect([...names], 'one order from first to last').to.have.length(1);
      expect(hub.play.failure()).to.equal(undefined);
    });

    it('is told as a story', async () => {
      const { out, err } = await hub.ledgerctl('orders', 'show', id);
      expect(err).to.equal('');
      for (const sequence of told(story)) {
        let rest = out;
        for (const line of sequence) {
          expect(rest, out).to.match(line);
          rest = rest.slice((line.exec(rest)?.index ?? 0) + 1);
        }
      }
    });

    it(`asks the hub for nothing that its rights do not grant (${mode}, ${controller})`, () => {
      expect(hub.seen().length).to.be.greaterThan(10);
      expect(hub.seen().filter(({ code }) => code === 403)).to.deep.equal([]);
    });

    it('lets neither token nor key of the automation into a log', () => {
      expect(logs).to.have.length(2);
      for (const secret of hub.secrets) expect(logs.flat().join('\n')).not.to.include(secret);
    });
  });
};

const hostedIs = async (hub: E2eHub, name: string, type: string, status: string): Promise<boolean> => {
  const hosted = (await hub.list('hostedclusters')).find(
    (one) => one.metadata.labels?.[ORDER_LABEL] === name,
  );
  const { conditions = [] } = (hosted?.['status'] ?? {}) as {
    conditions?: { type: string; status: string }[];
  };
  return conditions.some((one) => one.type === type && one.status === status);
};
