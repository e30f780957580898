import {
  HubError,
  type ClusterOrderController,
  type ClusterOrderWatchEvent,
  type ManagementCluster,
} from '../../../src/app/management-cluster.ts';
import { createCaller, type Caller, type HubWitness, type NetworkFaults, type Outcome } from './caller.ts';
import { latency, roundTrip, type Life } from './life.ts';

export type HubPortOptions = {
  readonly hub: ManagementCluster;
  readonly life: Life;
  readonly faults: () => NetworkFaults;
  readonly witness: HubWitness;
};

/** A hub as one incarnation reaches it. */
export const createHubPort = ({ hub, life, faults, witness }: HubPortOptions): ManagementCluster => {
  const { random } = life;
  const way = (): number => latency(random, faults().slow);

  const call = createCaller({
    life,
    faults,
    witness,
    where: hub.hubId,
    failure: (kind, why) => new HubError(kind, why),
    describe,
  });

  async function* watch(namespace: string, signal: AbortSignal): AsyncGenerator<ClusterOrderWatchEvent> {
    let kept: ClusterOrderWatchEvent | undefined;
    const until = AbortSignal.any([signal, life.ended]);
    for await (const event of hub.watchClusterOrders(namespace, until)) {
      await Promise.race([roundTrip(life, way()), life.never]);
      if (!life.isAlive()) await life.never;
      if (signal.aborted) return;
      const shuffled = event.type !== 'synced' && random.chance(faults().shuffled);
      if (shuffled && kept === undefined && random.chance(0.5)) {
        kept = event;
        continue;
      }
      yield event;
      if (shuffled) yield event;
      if (kept !== undefined) {
        yield kept;
        kept = undefined;
      }
    }
    if (!life.isAlive()) await life.never;
  }

  return {
    hubId: hub.hubId,
    simulated: hub.simulated,
    createClusterOrder: (manifest, by) =>
      call(`create ${manifest.name}`, true, (options) => hub.createClusterOrder(manifest, options), by),
    patchClusterOrder: (ref, spec, by) =>
      call(`patch ${ref.name}`, true, (options) => hub.patchClusterOrder(ref, spec, options), by),
    deleteClusterOrder: (ref, by) =>
      call(`delete ${ref.name}`, true, (options) => hub.deleteClusterOrder(ref, options), by),
    getClusterOrder: (ref, by) =>
      call(`get ${ref.name}`, false, (options) => hub.getClusterOrder(ref, options), by),
    findClusterOrders: (namespace, clusterId, by) =>
      call(`find ${clusterId}`, false, (options) => hub.findClusterOrders(namespace, clusterId, options), by),
    getHostedCluster: (ref, by) =>
      call(`get hosted ${ref.name}`, false, (options) => hub.getHostedCluster(ref, options), by),
    readSecret: (ref, by) =>
      call(`read secret ${ref.name}`, false, (options) => hub.readSecret(ref, options), by),
    readMark: (by) => call('read mark', false, (options) => hub.readMark(options), by),
    // No moment to die in: drills count those of the orders, and a service may die while it gives its marks back. But one
    // that has died, and whose last answer still arrives, keeps no mark.
    writeMark: (mark, over, by) =>
      life.isAlive()
        ? call('write mark', false, (options) => hub.writeMark(mark, over, options), by)
        : life.never,
    check: (by) => call('check', false, (options) => hub.check(options), by),
    inventory: (by) => call('inventory', false, (options) => hub.inventory(options), by),
    ensureTenantNamespace: (namespace, by) =>
      call(
        `namespace ${namespace.name}`,
        true,
        (options) => hub.ensureTenantNamespace(namespace, options),
        by,
      ),
    readClusterOrder: (place, by) =>
      call(`read ${place.name}`, false, (options) => hub.readClusterOrder(place, options), by),
    ...(hub.controller === undefined ? {} : { controller: controllerPort(hub.controller, call) }),
    watchClusterOrders: watch,
    close: async () => undefined,
  };
};

const describe = (outcome: Outcome): string => {
  if ('error' in outcome) {
    const { error } = outcome;
    return error instanceof HubError ? error.kind : String(error);
  }
  const { value } = outcome;
  if (value === undefined || value === false) return 'nothing there';
  return Array.isArray(value) ? `${value.length} found` : 'done';
};

const controllerPort = (controller: ClusterOrderController, call: Caller): ClusterOrderController => ({
  prepare: (place, by) =>
    call(`prepare ${place.name}`, true, (options) => controller.prepare(place, options), by),
  writeStatus: (place, status, by) =>
    call(`write status ${place.name}`, true, (options) => controller.writeStatus(place, status, options), by),
  release: (place, by) =>
    call(`release ${place.name}`, true, (options) => controller.release(place, options), by),
});
