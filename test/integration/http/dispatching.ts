import { byKind, type FakeOrders } from '../../support/hubs/fake-orders.ts';
import { expect } from 'chai';
import { HubError, type ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import type { ClusterCommand } from '../../../src/domain/clusters/commands.ts';
import { clusterAggregate } from '../../../src/domain/kinds.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import {
  callerOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

export const LEDGER = '/api/ledger/v1';
export const AT = '2026-11-21T12:00:00.000Z';

/** The lines of an answer that is lines of JSON. */
export const linesOf = (reply: Reply): Json[] =>
  reply.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Json);

/** A hub of which only what a reveal reads is there. */
const readableHub = () => {
  const hub = {
    secrets: new Map<string, string>(),
    hosted: false,
    down: false,
    /** Whether anybody told where the HostedCluster is. */
    reference: true,
    asked: [] as string[],
    registered: true,
    /** Whose label the object has that is under the order's name. */
    owner: '',
    /** What is found by the label. */
    labelled: [] as { readonly name: string; readonly clusterId: string }[],
  };
  const orders = {
    getClusterOrder: async ({ name }: { name: string }) => {
      if (hub.down) throw new HubError('unavailable', 'connection refused', { retryAfterMs: 4000 });
      const order = { name, id: hub.owner };
      if (!hub.hosted || !hub.reference) return order;
      return { ...order, clusterReference: { namespace: 'ns', hostedClusterName: 'hc' } };
    },
    findClusterOrders: async () => hub.labelled.map(({ name, clusterId: id }) => ({ name, id })),
    getHostedCluster: async ({ namespace, name }: { namespace: string; name: string }) => {
      hub.asked.push(`${namespace}/${name}`);
      if (!hub.hosted) return undefined;
      return { name, namespace, kubeconfigSecret: 'kc', passwordSecret: 'pw', conditions: [] };
    },
  };
  const cluster = {
    hubId: 'sim-1',
    simulated: true,
    ...byKind(orders as unknown as Partial<FakeOrders>),
    readSecret: async ({ name, key }: { name: string; key: string }) => {
      const value = hub.secrets.get(`${name}/${key}`);
      return value === undefined ? undefined : Buffer.from(value);
    },
  };
  return { hub, cluster: cluster as unknown as ManagementCluster };
};

export type Dispatching = {
  readonly service: TestService;
  readonly hub: ReturnType<typeof readableHub>['hub'];
  readonly admin: Caller;
  /** Of tenant t1. */
  readonly user: Caller;
  /** Of tenant t2. */
  readonly other: Caller;
  /** Orders a cluster and tells its id. */
  readonly order: (by?: Caller, tenant?: string) => Promise<string>;
  /** What the workflow would do. */
  readonly run: (id: string, ...commands: ClusterCommand[]) => Promise<void>;
  /** An order that is on its way to the hub, which has it under our label. */
  readonly dispatched: (placed?: Promise<string>) => Promise<string>;
};

/** A service with one hub, and what brings orders there without a workflow. */
export const startDispatching = async (): Promise<Dispatching> => {
  const { hub, cluster: port } = readableHub();
  const service = await startTestService({
    get hub(): ManagementCluster {
      return (hub.registered ? port : undefined) as ManagementCluster;
    },
  });
  const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
  await seedCatalogue(admin);
  const user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  const other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  let serial = 0;

  const order = async (by = user, tenant?: string): Promise<string> => {
    const reply = await by('POST', by === user ? CLUSTERS : CLUSTERS.replace('fulfillment', 'private'), {
      metadata: { name: `l-${(serial += 1)}`, ...(tenant === undefined ? {} : { tenant }) },
      spec: SMALL,
    });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };
  const run = async (id: string, ...commands: ClusterCommand[]): Promise<void> => {
    for (const [i, command] of commands.entries()) {
      const context = fakeContext(`${id} ${command.type} ${i}`, { tenant: 't1' });
      const outcome = await service.runner.execute(clusterAggregate, id, command, context);
      expect(outcome.outcome, JSON.stringify(outcome)).to.equal('accepted');
      await service.models.waitFor('resources', outcome.loaded.position ?? '', { timeoutMs: 5000 });
      await service.models.waitFor('timeline', outcome.loaded.position ?? '', { timeoutMs: 5000 });
    }
  };
  const dispatched = async (placed = order()): Promise<string> => {
    const id = await placed;
    const decision = { weightsVersion: 1, candidates: [] };
    await run(id, {
      type: 'SelectHub',
      at: AT,
      hub: 'sim-1',
      namespace: 'osac',
      mode: 'operator',
      simulated: true,
      controller: 'operator',
      steps: {},
      orderName: 'order-abc',
      decision,
    });
    hub.owner = id;
    return id;
  };
  return { service, hub, admin, user, other, order, run, dispatched };
};
